import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct HostileFileTests {
    private func read(_ text: String) -> [String] { read(Array(text.utf8)) }
    private func read(_ bytes: [UInt8]) -> [String] {
        YAMLReader.read(bytes, file: "f").diagnostics.map { "\($0.mark.line):\($0.mark.column) \($0.message)" }
    }

    @Test func depthIsBounded() {
        let nested = { String(repeating: "[", count: $0) + String(repeating: "]", count: $0) }
        #expect(read(nested(32)) == [])
        #expect(read(nested(33)) == ["1:33 nested deeper than 32 levels"])
        #expect(read(nested(200_000)) == ["1:33 nested deeper than 32 levels"])
        let block = (0..<40).map { String(repeating: " ", count: $0) + "a:\n" }.joined()
        #expect(read(block) == ["33:33 nested deeper than 32 levels"])
        #expect(read(String(repeating: "- ", count: 100)).count == 1)
        #expect(read(String(repeating: "{a: ", count: 100)).count == 1)
    }

    @Test func sizeIsBounded() {
        #expect(read([UInt8](repeating: 0x23, count: 1 << 20)) == [])
        #expect(read([UInt8](repeating: 0x23, count: 1 << 20 + 1)) == ["0:0 the file is larger than 1 MiB"])
        #expect(
            read("[" + String(repeating: "a,", count: 70000) + "]") == ["1:131072 more than 65536 values in one file"])
    }

    @Test func aliasesAreRefused() {
        let bomb = "a: &a [x, x]\nb: [*a, *a]\n"
        #expect(read(bomb) == ["1:4 anchors are not supported; shared settings go under 'defaults'"])
        #expect(read("a: [*b]") == ["1:5 aliases are not supported; shared settings go under 'defaults'"])
        #expect(read("a: !!binary x") == ["1:4 tags are not supported; the key decides what a value is"])
    }

    @Test(
        arguments: [
            [0xff, 0xfe, 0x61], [0x61, 0x3a, 0x20, 0xc0, 0xaf], [0x61, 0x3a, 0x20, 0xed, 0xa0, 0x80],
            [0x61, 0x00, 0x62],
            [0xfe, 0xff, 0x00, 0x61], [0x61, 0x3a, 0x20, 0xe2, 0x82],
        ] as [[UInt8]])
    func onlyUTF8(bytes: [UInt8]) {
        let found = read(bytes)
        #expect(found.count == 1)
        #expect(found.first?.contains("not valid UTF-8") == true)
    }

    @Test(arguments: [
        "a:\n\tb: 1", "a: b: c", "a: [1", "a: \"x", "? [a]: b", "{a: 1}: 2", "@", "a: `x", "%YAML 9.9\n---\na",
        "a: 1\n---\nb: 2", "- a\nb: c", "\"\\0\": 1",
    ])
    func notYAML(text: String) { #expect(read(text).count == 1) }

    @Test func tabsSayWhatToDo() {
        #expect(
            read("a:\n\tb: 1") == [
                "2:1 not valid YAML: found character that cannot start any token; indent with spaces, not tabs, and quote such a value"
            ])
    }

    @Test func duplicatesAreAllReported() {
        #expect(
            read("a: 1\nb: 2\na: 3\nb: {c: 1, c: 2}\n") == [
                "3:1 'a' is given twice; first in line 1", "4:11 'c' is given twice; first in line 4",
                "4:1 'b' is given twice; first in line 2",
            ])
    }

    @Test func aByteOrderMarkIsNoPartOfTheText() {
        let (root, found) = YAMLReader.read([0xef, 0xbb, 0xbf] + Array("a: 1".utf8), file: "f")
        #expect(found == [])
        #expect(root?["a"]?.value.scalar?.text == "1")
        #expect(read([0xef, 0xbb, 0xbf]) == [])
        #expect(read([0xef, 0xbb, 0xbf] + Array("# top\na: 1\n".utf8)) == [])
        // It has no column: what stands below and behind it is where it is seen.
        #expect(read([0xef, 0xbb, 0xbf] + Array("a: 1\nb: {c: 2, c: 3}\n".utf8)).map { $0.prefix(4) } == ["2:11"])
        #expect(read([0xef, 0xbb, 0xbf] + Array("b: {c: 2, c: 3}\na: 1\n".utf8)).map { $0.prefix(4) } == ["1:11"])
    }

    @Test(arguments: ["", "# only a comment\n", "---\n", "[]", "a", "~", "..."])
    func notAConfiguration(text: String) {
        #expect(Trial(.text(text)).result.configuration == nil)
        #expect(!Trial(.text(text)).errors.isEmpty)
    }

    @Test func everyKeyAsEveryKind() {
        // Nothing may trap, whatever stands where.
        for value in ["", "x", "[]", "{}", "[x]", "{x: y}", "[{}]", "[[]]", "{x: {}}", "-1", "99999999999999999999"] {
            for (block, spec) in Keys.configuration(Schemes.all).everyKey {
                for wrapped in wrap(block.name, "\(spec.name): \(value)") { _ = Trial(wrapped) }
            }
        }
    }

    private func wrap(_ block: String, _ line: String) -> [String] {
        let body = "{\(line)}"
        return switch block {
        case "configuration": [line, Trial.around(top: line)]
        case "identity": [Trial.around(identity: line)]
        case "route": [Trial.around(route: line), "routes: [\(body)]", "defaults: {route: \(body)}"]
        case "listener": ["listeners: {l: \(body)}", "listeners: {l: {address: \"127.0.0.1:1\", \(line)}}"]
        case "static", "basic", "oauth2", "oam_webgate", "oam_oauth": [Trial.around(identity: "\(block): \(body)")]
        case "paths": [Trial.around(identity: "oam_webgate: {\(Trial.webgate), paths: \(body)}")]
        case "token", "network": [Trial.around(top: "defaults: {\(block): \(body)}")]
        case "on_issuer_failure": [Trial.around(top: "defaults: {token: {on_issuer_failure: \(body)}}")]
        case "caller_value": [Trial.around(route: "inject: {caller_value: \(body)}")]
        case "listener_tls": ["listeners: {l: {address: \"127.0.0.1:1\", tls: [\(body)]}}"]
        case "intercept", "proxy_protocol": ["listeners: {l: {address: \"127.0.0.1:1\", \(block): \(body)}}"]
        case "defaults", "store", "admin", "limits", "log", "shutdown": [Trial.around(top: "\(block): \(body)")]
        default: [Trial.around(route: "\(block): \(body)")]
        }
    }
}
