import FoundationEssentials
import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct ExampleTests {
    static let directory = #filePath.split(separator: "/").dropLast(4).map { "/" + $0 }.joined() + "/config/"

    /// The files of `config/` and of the folders in it, by their paths below it.
    static func names() throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: directory).filter { $0.hasSuffix(".yaml") }.sorted()
    }

    @Test func thereAreExamples() throws { #expect(try Self.names().count >= 20) }

    @Test(arguments: try names())
    func everyExampleIsClean(name: String) {
        let trial = Trial(.file(Self.directory + name))
        #expect(trial.lines == [])
        #expect(trial.result.configuration != nil)
    }

    /// A scheme says some facts at two places, because the file is judged before there is a handshake.
    @Test func everySchemeHasAnExampleAndSaysTheSameOfItselfEverywhere() throws {
        var shown: Set<String> = []
        for name in try Self.names() {
            for identity in Trial(.file(Self.directory + name)).result.configuration?.identities ?? [] {
                let scheme = try #require(identity.scheme as? any Scheme)
                let handshake = try scheme.handshake(of: identity, statuses: nil, GrantWorld())
                #expect(handshake.scheme == scheme.name)
                let kind = scheme.traits(of: identity).kind
                #expect((kind == .challengeDriven) == scheme.isChallengeDriven, "\(name): \(identity.name)")
                shown.insert(scheme.name)
            }
        }
        #expect(shown == Set(Trial.schemes))
    }

    /// That the values it shows are the defaults is not checked here, only that no key is left out.
    @Test func fullShowsEveryKey() throws {
        let bytes = try FileReader.read(Self.directory + "full.yaml", bound: 1 << 20)
        let text = String(decoding: bytes, as: UTF8.self)
        let words = Set(text.split { !($0.isLetter || $0.isNumber || $0 == "_" || $0 == "-") }.map(String.init))
        for (block, spec) in Keys.configuration(Schemes.all).everyKey {
            #expect(words.contains(spec.name), "\(block.name).\(spec.name)")
        }
    }

    @Test func theSmallestFilesOfTheDocument() {
        let webgate = Trial(
            """
            identities:
              hr:
                oam_webgate:
                  service: https://oam.example.com:14100/oic_rest/rest/mobileoamauthentication
                  user_agent_prefix: OIC-Agent
                  client_id: EdgeProxy
                  username: svc-hr
                  password: file:/run/secrets/hr-password
            routes:
              - listen: 127.0.0.1:8080
                to: https://hr.example.com
                use: hr
            """)
        #expect(webgate.errors == [])
        #expect(webgate.warnings.count == 1)
        let oauth2 = Trial(
            """
            identities:
              billing:
                oauth2:
                  token_url: https://idp.example.com/token        # or issuer: (discovery)
                  client_id: billing
                  client_secret: env:BILLING_SECRET
            routes:
              - listen: 127.0.0.1:8080
                to: https://api.example.com
                use: billing
                scopes: [invoices.read]
            """)
        #expect(oauth2.lines == [])
        #expect(oauth2.result.configuration?.routes.first?.name == "127.0.0.1:8080")
    }
}

extension Block {
    /// This block's keys and those of all blocks below.
    var everyKey: [(Block, KeySpec)] {
        keys.flatMap { spec in [(self, spec)] + spec.type.blocks.flatMap(\.everyKey) }
    }
}

extension ValueType {
    var blocks: [Block] {
        switch self {
        case .block(let block): [block]
        case .list(let type), .named(_, let type): type.blocks
        case .either(let types): types.flatMap(\.blocks)
        default: []
        }
    }
}
