import Glibc
import TemporaryFolder
import Testing

@testable import Configuration
@testable import Handshakes

/// Every secret of a file is known by its place, and looked at before a gateway relies on it.
@Suite struct SecretInventoryTests {
    private func model(_ text: String) throws -> Configuration {
        let trial = Trial(text)
        #expect(trial.errors == [])
        return try #require(trial.draft)
    }

    static let everywhere = """
        listeners:
          a: {address: "127.0.0.1:1", tls: [{certificate: /l/c.pem, key: file:/l/k.pem, client_ca: /l/ca.pem, ocsp: /l/o.der}]}
          p: {address: "127.0.0.1:2", mode: forward_proxy, intercept: {ca: /l/mint.pem, hosts: [u.example.com]}}
        identities:
          a:
            oauth2: {token_url: "https://i.example.com/t", client_id: c, client_secret: env:S}
            network: {proxy: {url: "http://p", username: u, password: env:P}, tls: {certificate: /i/c.p12, password: env:T}}
        routes:
          - listen: a
            to: https://u.example.com
            use: a
            callers: {token: env:C}
            tls: {certificate: /r/c.pem, key: file:/r/k.pem}
        store: {path: /s/t.db, key: env:K, shared: {url: "unix:/s/redis.sock", password: env:R}}
        admin: {listen: "127.0.0.1:9", token: env:A}
        audit: {path: /audit/a.log, subject_key: env:U}
        tracing: {endpoint: "https://t.example.com/v1/traces", headers: {X-Key: env:H}, network: {tls: {ca: /t/ca.pem}}}
        """

    @Test func everySecretHasItsOwnerAndKey() throws {
        let model = try model(Self.everywhere)
        #expect(
            Set(model.secrets.map { "\($0.owner): \($0.key) = \($0.reference)" }) == [
                "identity 'a': client_secret = env:S", "identity 'a': network.proxy.password = env:P",
                "identity 'a': network.tls.password = env:T", "route 'a': tls.key = file:/r/k.pem",
                "route 'a': callers.token = env:C", "listener 'a': tls.key = file:/l/k.pem",
                "listener 'p': intercept.ca = file:/l/mint.pem", "store: key = env:K",
                "store: shared.password = env:R", "admin: token = env:A", "audit: subject_key = env:U",
                "tracing: headers.X-Key = env:H",
            ])
        #expect(model.secretVariables == ["S", "P", "T", "C", "K", "R", "A", "U", "H"])
        #expect(Set(model.clientKeys.map(\.owner)) == ["identity 'a'", "route 'a'"])
        #expect(model.authorities.contains(.file("/t/ca.pem")))
        let needs = model.fileNeeds(files: ["/conf/c.yaml"], socket: "/run/s/cardea.sock") { _ in nil }
        for folder in ["/l", "/i", "/r", "/t"] { #expect(needs.rights[folder]?.contains(.read) == true, "\(folder)") }
        for folder in ["/s", "/audit"] { #expect(needs.rights[folder]?.contains(.write) == true, "\(folder)") }
    }

    private func said(_ text: String, _ environment: [String: String], root: Bool = false) throws -> [String] {
        try model(text).checkSecrets(environment: { environment[$0] }).map { "\($0.severity): \($0.message)" }
    }

    @Test func aSecretThatCanBeGuessedIsAnError() throws {
        let text = Trial.around(
            identity: "static: {value: env:V}",
            top: "admin: {listen: \"127.0.0.1:9\", token: env:A}\naudit: {path: /audit/a.log, subject_key: env:U}")
        let long = String(repeating: "k", count: 64)
        #expect(try said(text, ["V": "v", "A": long, "U": long]) == [])
        let short = try said(text, ["V": "v", "A": "short", "U": "short"])
        #expect(short.count == 2 && short.allSatisfy { $0.hasPrefix("error: ") && $0.contains("can be guessed") })
        // Without its key nothing can be written to the audit log, and a gateway does not start.
        let none = try said(text, ["V": "v", "A": long])
        #expect(none.count == 1 && none[0].contains("'subject_key' of audit") && none[0].contains("is not set"))
    }

    @Test func whatOthersCanReadIsToldAndUnderStrictRefused() throws {
        let scratch = Scratch()
        let open = scratch.write("open", "v", mode: 0o644)
        let shut = scratch.write("shut", "v")
        let text = { (file: String, top: String) in
            Trial.around(identity: "static: {value: \"file:\(file)\"}", top: top)
        }
        let reader = SecretReader(place: "file:\(open)", policy: .warn)
        // Files in memory are nobody's to change, and then there is nothing to tell.
        let exposure = reader.exposure(of: open)
        #expect(exposure == nil || exposure == "file:\(open): others can read it; chmod o-r")
        #expect(reader.exposure(of: shut) == nil && reader.exposure(of: scratch.path + "/none") == nil)
        let warned = try model(text(open, ""))
        #expect(warned.exposedSecrets { _ in nil }.map(\.reason) == [exposure].compactMap(\.self))
        #expect(try said(text(open, ""), [:]).count == (exposure == nil ? 0 : 1))
        let strict = try model(text(open, "secret_files: strict"))
        #expect(strict.exposedSecrets { _ in nil }.isEmpty, "strict refuses them where they are read")
        let refused = strict.checkSecrets { _ in nil }
        #expect(refused.count == (exposure == nil ? 0 : 1) && refused.allSatisfy { $0.severity == .error })
        #expect(try model(text(shut, "")).exposedSecrets { _ in nil }.isEmpty)
    }

    @Test func credentialsAreLookedAtWhereTheServiceHasThem() throws {
        let scratch = Scratch()
        scratch.write("k", "v", mode: 0o644)
        let model = try model(Trial.around(identity: "static: {value: \"credential:k\"}"))
        #expect(model.exposedSecrets { _ in nil }.isEmpty)
        let exposed = model.exposedSecrets { _ in scratch.path }
        #expect(exposed.allSatisfy { $0.reason.hasPrefix("credential:k: ") })
        #expect(model.missingSecrets { _ in scratch.path }.isEmpty)
        #expect(model.missingSecrets { _ in nil }.count == 1)
    }

    @Test func aMissingSecretIsFoundWithoutRunningAProgram() throws {
        let model = try model(
            """
            identities: {a: {static: {value: env:V}}, b: {static: {value: "exec:/bin/false"}}}
            routes:
              - {listen: "127.0.0.1:1", to: "https://u.example.com", use: a}
              - {listen: "127.0.0.1:2", to: "https://u.example.com", use: b}
            """)
        #expect(
            model.missingSecrets { _ in nil }.map { "\($0.secret.owner): \($0.reason)" } == [
                "identity 'a': env:V: the variable is not set"
            ])
        #expect(model.missingSecrets { _ in "v" }.isEmpty)
    }

    private func twice(_ first: String, _ second: String) -> String {
        let identity =
            "token_url: \"https://i.example.com/t\", client_id: c, client_secret: env:S, grant: refresh_token"
        return """
            identities:
              a: {oauth2: {\(identity), refresh_token: "\(first)"}}
              b: {oauth2: {\(identity), refresh_token: "\(second)"}}
            routes:
              - {listen: "127.0.0.1:1", to: "https://u.example.com", use: a}
              - {listen: "127.0.0.1:2", to: "https://u.example.com", use: b}
            store: {path: /s/t.db, key: env:K}
            """
    }

    @Test func oneFirstRefreshTokenForTwoIsToldOnce() throws {
        let values = ["A": "one", "B": "one", "C": "other"]
        let warnings = { (first: String, second: String) in
            try model(twice(first, second)).checkRefreshTokens { values[$0] }.map(\.message)
        }
        let same = try warnings("env:A", "env:B")
        #expect(same.count == 1 && same[0].contains("'a', 'b'") && !same[0].contains("one token of"))
        #expect(!same[0].contains("env:"), "a value is compared, and never shown")
        #expect(try warnings("env:A", "env:C") == [])
        // A secret that cannot be read is compared by its place, and that of a program by its command line.
        #expect(try warnings("env:NONE", "env:NONE").count == 1)
        #expect(try warnings("env:NONE", "env:NOT") == [])
        #expect(try warnings("exec:/bin/p a", "exec:/bin/p a").count == 1)
        #expect(try warnings("exec:/bin/p a", "exec:/bin/p b") == [])
    }

    @Test func aPlaceIsTheSameByEachOfItsNames() {
        let scratch = Scratch()
        let file = scratch.write("f", "x")
        let link = scratch.path + "/link"
        symlink(file, link)
        #expect(FilePlace(link).isSame(as: FilePlace(file)))
        #expect(FilePlace(link).standing != FilePlace(file).standing)
        #expect(!FilePlace(scratch.path + "/g").isSame(as: FilePlace(file)))
        #expect(
            FilePlace(scratch.path + "/../" + (scratch.path.split(separator: "/").last ?? "") + "/f").isSame(
                as: FilePlace(file)))
        #expect(FilePlace("/etc").standing == "/etc" && FilePlace("x").standing.hasSuffix("/x"))
        #expect(FilePlace("x").standing.hasPrefix("/"))
    }

    @Test func copiesAreFilesOfTheSameOctets() {
        let scratch = Scratch()
        let one = scratch.write("one", "a")
        #expect(FileReader.areCopies(one, scratch.write("two", "a")))
        #expect(!FileReader.areCopies(one, scratch.write("three", "b")))
        #expect(!FileReader.areCopies(one, scratch.path + "/none"))
        #expect(FileReader.areCopies(scratch.path, "/tmp") && !FileReader.areCopies(scratch.path, one))
        #expect(throws: FileReader.Fault.self) { try FileReader.names(in: scratch.path, bound: 2) }
        #expect((try? FileReader.names(in: scratch.path, bound: 3)) == ["one", "three", "two"])
    }
}
