import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct MobileFirstConfigurationTests {
    private static let base = "base: https://m.example.com/mfp/api"
    private static let client = "\(base), client_id: c, client_secret: env:S"
    private static let device = "\(base), mode: registered, application: app"
    private static let store = "store: {path: /var/lib/cardea/t.db, key: env:K}"

    private static func trial(_ members: String, top: String = store) -> Trial {
        Trial(Trial.around(identity: "mobilefirst: {\(members)}", top: top))
    }

    @Test(
        arguments: [
            (client, nil), (device, nil),
            (base, "needs 'client_id' in 'mode: confidential'"),
            (
                "\(client), answers: {Pin: {pin: env:P}}",
                "'answers' of identity 'a' (mobilefirst) goes only with 'mode: registered'"
            ),
            ("\(device), client_id: c", "goes only with 'mode: confidential'"),
            ("\(base), mode: registered", "needs 'application' in 'mode: registered'"),
            ("\(device), platform: android", "needs 'application_version'"),
            ("\(device), platform: android, application_version: '1.0'", nil),
            ("\(device), cooldown: 59s", "'cooldown"),
            ("\(device), cooldown: 6m", "'cooldown' of identity 'a' (mobilefirst) must be at most 5m"),
            ("\(device), assertion_lifetime: 2h", "must be at most 1h"),
            ("\(device), answers: {Pin: {}}", "has no field"),
            ("\(device), answers: {Pin: {pin: '4711'}}", "'answers' must be a reference"),
            ("\(device), answers: {appAuthenticity: {x: env:P}}", "is a check that no configured answer can pass"),
            ("\(device), min_remaining_attempts: 0", "'min_remaining_attempts"),
            ("\(base), az_base: 'http://z.example.com/mfp/api', client_id: c, client_secret: env:S", "clear text"),
            ("\(base)?x=1, client_id: c, client_secret: env:S", "must not have a query"),
            ("\(base), client_id: test, client_secret: env:S", "ships with"),
            ("\(base), client_id: 'a:b', client_secret: env:S", "without a colon"),
        ] as [(String, String?)])
    func whatGoesTogether(members: String, complaint: String?) {
        let errors = Self.trial(members).errors
        if let complaint {
            #expect(errors.contains { $0.contains(complaint) }, "\(errors)")
        } else {
            #expect(errors == [])
        }
    }

    @Test func aRegistrationWantsAStore() {
        #expect(Self.trial(Self.device).warnings == [])
        #expect(
            Self.trial(Self.device, top: "").warnings.contains { $0.contains("registers another device at each start") }
        )
        #expect(Self.trial(Self.client, top: "").warnings == [])
    }

    @Test func twoUsersAreTwoDevices() {
        func pair(_ one: String, _ two: String) -> Trial {
            Trial(
                """
                identities:
                  a: {mobilefirst: {\(Self.device), answers: {Pin: {pin: env:A}}\(one)}}
                  b: {mobilefirst: {\(Self.device), answers: {Pin: {pin: env:B}}\(two)}}
                routes:
                  - {listen: "127.0.0.1:8080", to: "https://u.example.com", use: a}
                  - {listen: "127.0.0.1:8081", to: "https://u.example.com", use: b}
                """)
        }
        #expect(pair("", "").errors.count == 1)
        #expect(pair(", min_remaining_attempts: 3", "").errors.count == 1)
        #expect(pair("", ", device: {id: till-2}").errors == [])
    }

    @Test func secretsAreKnownByCheckAndField() throws {
        let answers = "answers: {User: {name: env:N, word: env:W}, Pin: {pin: env:P}}"
        let configuration = try #require(Self.trial("\(Self.device), \(answers)").result.configuration)
        #expect(
            configuration.identities[0].secrets.map(\.key)
                == ["answers.User.name", "answers.User.word", "answers.Pin.pin"])
    }
}
