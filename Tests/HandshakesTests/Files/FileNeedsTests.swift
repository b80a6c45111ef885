import Glibc
import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct FileNeedsTests {
    private func needs(_ text: String, environment: [String: String] = [:]) throws -> FileNeeds {
        let configuration = try #require(Trial(text).draft)
        return configuration.fileNeeds(files: ["/conf/cardea/c.yaml"], socket: "/none/s/cardea.sock") {
            environment[$0]
        }
    }

    @Test func foldersOfWhatIsNamed() throws {
        let needs = try needs(
            Trial.around(
                identity: "static: {value: \"file:/none/secrets/a\", header: X-Key}",
                route: "tls: {ca: /none/authorities/ca.pem}", top: "store: {path: /none/state/t.db}"))
        #expect(needs.rights["/none/secrets"] == .read)
        #expect(needs.rights["/none/authorities"] == .read)
        #expect(needs.rights["/conf/cardea"] == .read)
        #expect(needs.rights["/none/state"] == [.read, .write])
        #expect(needs.rights["/none/s"] == .sockets)
        #expect(!needs.rights.values.contains { $0.contains(.execute) })
    }

    @Test func onlyTheFileInFoldersOfEverybody() throws {
        let needs = try needs(Trial.around(identity: "static: {value: \"file:/etc/key-of-ours\", header: X-Key}"))
        #expect(needs.rights["/etc/key-of-ours"] == .read)
        for folder in ["/", "/etc/ssl", "/usr", "/home/somebody", "/tmp", "/run", "/var/lib"] {
            #expect(FileNeeds.isEverybodys(folder))
            #expect(needs.rights[folder] == nil)
        }
        #expect(!FileNeeds.isEverybodys("/home/somebody/cardea"))
    }

    @Test func aStoreNeedsAFolderOfItsOwn() throws {
        #expect(try needs(Trial.around(top: "store: {path: /tmp/t.db}")).refused == ["/tmp/t.db"])
        #expect(try needs(Trial.around(top: "store: {path: /none/state/t.db}")).refused.isEmpty)
    }

    @Test func programsBringTheirFolders() throws {
        let needs = try needs(
            Trial.around(identity: "static: {value: \"exec:/none/bin/p /none/seed -x\", header: X-Key}"))
        #expect(needs.rights["/none/bin"] == [.read, .execute])
        #expect(needs.rights["/none/seed"] == .read)
        #expect(needs.rights["/usr"]?.contains(.execute) == true)
    }

    @Test func credentialsComeFromTheFolderOfTheService() throws {
        let text = Trial.around(identity: "static: {value: \"credential:k\", header: X-Key}")
        let needs = try needs(text, environment: ["CREDENTIALS_DIRECTORY": "/none/credentials"])
        #expect(needs.rights["/none/credentials"] == .read)
    }

    @Test func whatIsBelowIsCoveredAndWhatIsBesideIsNot() {
        var granted = FileNeeds()
        granted.add("/none/a", .read)
        granted.add("/none/a/b", .write)
        var needed = FileNeeds()
        needed.add("/none/a/c", .read)
        needed.add("/none/a/b/d", [.read, .write])
        #expect(needed.exceeding(granted).isEmpty)
        needed.add("/none/ab", .read)
        needed.add("/none/a/c", .write)
        #expect(needed.exceeding(granted) == ["/none/a/c", "/none/ab"])
    }

    /// A key that names a file is of no use in a sandbox until `fileNeeds` knows it; then it belongs here.
    @Test func everyKeyThatNamesAFileIsKnown() {
        var keys: Set<String> = []
        for (block, spec) in Keys.configuration(Schemes.all).everyKey {
            var type = spec.type
            if case .either(let alternatives) = type, let first = alternatives.first { type = first }
            if case .text(.path) = type { keys.insert("\(block.name).\(spec.name)") }
        }
        let known: Set = [
            "configuration.include", "store.path", "negotiate.cache", "audit.path", "admin.socket", "intercept.ca",
            "listener_tls.certificate", "listener_tls.client_ca", "listener_tls.ocsp", "tls.certificate",
            "signing.certificate", "client_certificate.certificate", "oam_assertion.certificate",
        ]
        #expect(keys == known)
    }
}
