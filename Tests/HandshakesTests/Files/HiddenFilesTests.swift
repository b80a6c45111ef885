import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct HiddenFilesTests {
    private func hidden(_ text: String, environment: [String: String] = [:]) throws -> HiddenFiles {
        try #require(Trial(text).draft).hiddenFiles { environment[$0] }
    }

    @Test func secretsAndTheStoreWithItsKey() throws {
        let hidden = try hidden(
            Trial.around(
                identity: "static: {value: \"file:/none/secrets/a\", header: X-Key}",
                route: "tls: {ca: /none/authorities/ca.pem}", top: "store: {path: /none/state/t.db}"))
        #expect(hidden.files.contains("/none/secrets/a"))
        for file in ["", "-wal", "-shm", ".key"] { #expect(hidden.files.contains("/none/state/t.db" + file)) }
        #expect(!hidden.files.contains("/none/authorities/ca.pem"))
        #expect(hidden.folders.isEmpty && hidden.alone.isEmpty)
    }

    @Test func programsThatTellSecretsButNotTheSystems() throws {
        let own = try hidden(
            Trial.around(identity: "static: {value: \"exec:/none/bin/p /none/seed -x\", header: X-Key}"))
        #expect(own.alone == ["/none/bin/p", "/none/seed"])
        let system = try hidden(
            Trial.around(identity: "static: {value: \"exec:/usr/bin/cat /none/seed\", header: X-Key}"))
        #expect(system.alone == ["/none/seed"])
    }

    @Test func whatAnArgumentNamesInAWord() throws {
        let place = #filePath
        for word in ["--file=\(place)", "-vX=\(place)", "@\(place)", "-K\(place)"] {
            let found = try hidden(
                Trial.around(
                    identity: "static: {value: \"exec:/usr/bin/cat \(word) --file=/none/seed\", header: X-Key}"))
            #expect(Set(found.alone) == [place], "\(word)")
        }
    }

    @Test func credentialsByTheirFolder() throws {
        let text = Trial.around(identity: "static: {value: \"credential:k\", header: X-Key}")
        let environment = ["CREDENTIALS_DIRECTORY": "/none/credentials"]
        #expect(try hidden(text, environment: environment).folders == ["/none/credentials"])
    }

    @Test func variablesOfIdentitiesApartFromTheOthers() throws {
        let configuration = try #require(
            Trial(
                Trial.around(
                    identity: "static: {value: \"env:API_TOKEN\", header: X-Key}",
                    top: "store: {path: /none/state/t.db, key: \"env:STORE_KEY\"}")
            ).draft)
        #expect(configuration.callersVariables == ["API_TOKEN"])
        #expect(configuration.secretVariables == ["API_TOKEN", "STORE_KEY"])
    }
}
