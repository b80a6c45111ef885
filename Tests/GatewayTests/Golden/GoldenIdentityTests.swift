import FoundationEssentials
import GoldenFiles
import Handshakes
import HotCache
import TLS
import Telemetry
import Testing

@testable import Configuration
@testable import DataPath
@testable import Gateway
@testable import Keeping
@testable import Tokens

/// The digests that stand in the key of every stored token, session and registration.
@Suite struct GoldenIdentityTests {
    static let cost =
        "the identity is another one after an upgrade: its stored tokens, sessions and registrations are lost, people have to log in "
        + "again, and it shares nothing with gateways of the version before."

    @Test func everyExampleHasTheDigestsThatItHad() throws {
        let folder = GoldenFile.folder + "../../config"
        var lines: [String] = []
        for name in try FileManager.default.subpathsOfDirectory(atPath: folder).sorted() where name.hasSuffix(".yaml") {
            for (identity, digest) in try Self.digests(.file(folder + "/" + name)) {
                lines.append("\(name) \(identity): \(digest)")
            }
        }
        #expect(lines.count > 30)
        let file = GoldenFile(
            "example-digests.txt", "Example, identity, and its digest in hexadecimal.", cost: Self.cost)
        if let difference = file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
    }

    /// Identities as people write them: with many keys at once, with certificates, in other spellings.
    @Test func everyWrittenIdentityHasTheDigestThatItHad() throws {
        var lines: [String] = []
        for (identity, digest) in try Self.digests(.file(GoldenFile.folder + "identities.yaml")) {
            lines.append("\(identity): \(digest)")
        }
        let file = GoldenFile(
            "identity-digests.txt", "Identity of identities.yaml, and its digest in hexadecimal.", cost: Self.cost)
        if let difference = file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
        #expect(lines.contains { $0.hasPrefix("same-") })
        let same = lines.filter { $0.hasPrefix("same-") }.compactMap { $0.split(separator: " ").last }
        #expect(Set(same).count == 1, "one identity in several spellings")
    }

    /// Whose sessions, registrations and attempts they are: the rest of what stands in those keys.
    @Test func everyIdentityHasTheAccountsThatItHad() throws {
        var lines: [String] = []
        for identity in try Self.compiled(.file(GoldenFile.folder + "identities.yaml")).identities {
            let name = identity.plan.name
            lines.append("\(name) issuer: \(identity.issuer.map { "\($0)" } ?? "none")")
            lines.append("\(name) account: \(identity.account.map { "\($0.user) at \($0.issuer)" } ?? "none")")
            for (secret, account) in identity.policy.attemptAccounts {
                lines.append("\(name) account of secret '\(secret)': \(account.user) at \(account.issuer)")
            }
            for secret in identity.policy.attemptSecrets ?? [] {
                lines.append("\(name) counts attempts of '\(secret)'")
            }
            if let key = identity.sessionKey(subject: nil) {
                lines.append("\(name) session key: \(readable(KeyCodec.encode(key).dropFirst(38)))")
            }
        }
        let file = GoldenFile(
            "identity-accounts.txt",
            "Identity of identities.yaml, and whose sessions and attempts it has; of a session's key what stands behind the digest.",
            cost:
                "sessions are looked for under other names, and marks of refused passwords are another account's: people log in again, and a "
                + "refused password is sent once more.")
        if let difference = file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
    }

    @Test func everyRouteHasTheKeyThatItHad() throws {
        let compiled = try Self.compiled(.file(GoldenFile.folder + "identities.yaml"))
        let names = NameTable()
        var compiler = GatewayCompiler(
            configuration: compiled.configuration, identities: compiled.identities, identityCompiler: compiled.compiler,
            cache: HotCache(readers: 1, slots: 256, byteLimit: 1 << 20), loops: 1, routeNames: names, faultNames: names)
        _ = try compiler.compile()
        let lines = compiler.keptRoutes.compactMap { route in
            route.key(of: "R").map { key in
                "\(route.name), \(route.realm.map { "realm \($0)" } ?? "no realm"), bound to the \(route.bindsToURL ? "URL" : "realm"): "
                    + readable(KeyCodec.encode(key).dropFirst(38))
            }
        }
        #expect(lines.count > 8)
        let file = GoldenFile(
            "route-keys.txt", "Route of identities.yaml, and its tokens' key for the realm R behind the digest.",
            cost: "stored tokens of a route are not found after an upgrade, or a token is taken for another route's.")
        if let difference = file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
    }

    static func digests(_ source: ConfigurationSource) throws -> [(name: String, digest: String)] {
        try compiled(source).identities.map { ($0.plan.name, hexadecimal($0.digest.bytes)) }
    }

    private struct Compiled {
        let configuration: Configuration
        let compiler: IdentityCompiler
        let identities: [KeptIdentity]
    }

    private static func compiled(_ source: ConfigurationSource) throws -> Compiled {
        let environment = { (name: String) -> String? in name == "GOLDEN_FOLDER" ? GoldenFile.folder : nil }
        let faults = Configuration.load(source, environment: environment).errors.map(\.message)
        // The file has one identity in several spellings, which a check refuses in one file.
        #expect(faults.filter { !$0.contains("differs from 'same-") } == [])
        var loader = Loader(schemes: Schemes.all, environment: environment)
        let configuration = try #require(loader.load(source).0)
        let compiler = IdentityCompiler(environment: { _ in "secret" }, secretFiles: .warn, persists: true)
        return Compiled(
            configuration: configuration, compiler: compiler, identities: try compiler.compile(configuration.identities)
        )
    }
}
