import TemporaryFolder
import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct AdminSocketSearchTests {
    private func socket(_ text: String, environment: [String: String] = [:]) -> String? {
        Configuration.remains(of: .text(text)) { environment[$0] }.socket
    }

    @Test func whateverElseIsWrong() {
        #expect(socket("admin: {socket: /s}\nroutes: 5\nrutes: [}") == "/s")
        #expect(socket("routes: [}\nadmin: {socket: /s}") == "/s")
        #expect(socket("routes: [}\nadmin:\n  # here\n\n  socket: /s\nlog: {level: [}") == "/s")
        #expect(socket("admin: {socket: \"${S}\"}\na: [}", environment: ["S": "/s"]) == "/s")
        #expect(socket("admin: {socket: /s, sockets: 1, listen: nonsense}\nidentities: []") == "/s")
        #expect(socket("{\"admin\": {\"socket\": \"/s\"}, \"routes\": [}") == "/s")
        #expect(socket("a: \"no end\nadmin: {socket: /s}\n") == "/s")
        #expect(socket("admin: {socket: /s}\r\nb: [}\r\n") == "/s")
        #expect(socket("\u{FEFF}admin:\n  socket: /s\nb: [}\n") == "/s")
    }

    @Test func besideTheStore() {
        #expect(socket("a: [}\nstore: {path: /d/t.db, key: nonsense}") == "/d/cardea.sock")
        #expect(socket("store: {path: t.db}\nadmin: {socket: [}") == "./cardea.sock")
        #expect(socket("admin: off\nstore: {path: /d/t.db}\nx: 1") == "/d/cardea.sock")
        #expect(socket("a: [}\nstore: {path: /d/t.db}\nadmin: {socket: /s}") == "/s")
    }

    @Test func nothingSaysIt() {
        for text in [
            " ", "[]", "x", "a: [}", "admin: {socket: ''}", "admin: {socket: {}}", "admin: []\nstore: 5",
            "administration: {socket: /s}\na: [}", "a:\n  admin: {socket: /s}\nb: [}", "admin:\n- [\n",
            "store: {path: }\n[",
        ] {
            #expect(socket(text) == nil, "\(text)")
        }
        #expect(Configuration.remains(of: .file("/nowhere/c.yaml")) { _ in nil }.socket == nil)
        #expect(Configuration.remains(of: .environment) { _ in nil }.socket == nil)
        #expect(socket(String(repeating: "admin:\n", count: 140_000) + "[") == nil)
    }

    @Test func inIncludedFiles() {
        let scratch = Scratch()
        scratch.write("a.yaml", "admin: {socket: /s}\nlog: [}")
        let file = scratch.write("c.yaml", "include: a.yaml\nroutes: [}")
        #expect(Configuration.remains(of: .file(file)) { _ in nil }.socket == "/s")
        let missing = scratch.write("d.yaml", "include: [none.yaml, d.yaml, a.yaml]\n")
        #expect(Configuration.remains(of: .file(missing)) { _ in nil }.socket == "/s")
    }

    @Test func aFileWithoutFaultsSaysTheSame() throws {
        for top in ["", "admin: {socket: /s}", "store: {path: /d/t.db}", "store: {path: t.db}\nadmin: off"] {
            let text = Trial.around(top: top)
            let configuration = try #require(Trial(text).result.configuration)
            #expect(socket(text) == configuration.admin.socket)
        }
    }
}
