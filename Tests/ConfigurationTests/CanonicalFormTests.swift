import Testing

@testable import Configuration

/// The bytes that an identity's digest is made from: each is decided, since another one would lose what was stored under it.
@Suite struct CanonicalFormTests {
    private static let inner = Block(
        name: "inner", description: "Inside.",
        keys: [KeySpec("a", .text(.line), "A."), KeySpec("b", .integer(0...9), "B.", default: "3")])

    private static let block = Block(
        name: "block", description: "All kinds.",
        keys: [
            KeySpec("z", .text(.hostName), "A text."), KeySpec("word", .onOff, "A word."),
            KeySpec("flag", .boolean, "A flag.", default: "true"),
            KeySpec("number", .integer(0...9), "A number.", default: "5"),
            KeySpec("span", .duration(atLeast: .zero), "A span.", default: "60s"),
            KeySpec("size", .size, "A size.", default: "1KiB"), KeySpec("secret", .secret, "A secret."),
            KeySpec("place", .secret, "A place.", digest: .place),
            KeySpec("source", .either([.secret, .block(inner)]), "Either.", digest: .place),
            KeySpec("skipped", .text(.line), "Nothing.", digest: .nothing),
            KeySpec("list", .list(.text(.hostName)), "A list."),
            KeySpec("named", .named(.headerName, .text(.line)), "Names."), KeySpec("inner", .block(inner), "A block."),
            KeySpec("json", .json, "Any."),
        ])

    private func form(_ yaml: String) throws -> [UInt8] {
        let (root, found) = YAMLReader.read(Array(yaml.utf8), file: "f")
        #expect(found.isEmpty)
        return CanonicalForm.of(handshake: "block", try #require(root), Self.block)
    }

    /// A text, or parts of one, behind its length in four bytes.
    private static func part(_ text: String) -> [UInt8] { part(Array(text.utf8)) }
    private static func part(_ bytes: [UInt8]...) -> [UInt8] {
        let all = bytes.flatMap { $0 }
        return [0, 0, UInt8(all.count >> 8), UInt8(all.count & 0xFF)] + all
    }
    private static func parts(_ texts: String...) -> [UInt8] { texts.flatMap { part($0) } }

    static let forms: [(yaml: String, members: [UInt8])] = [
        ("{}", []), ("{z: A.b.}", parts("z", "a.b")), ("{word: yes}", []), ("{word: off}", parts("word", "off")),
        ("{word: no}", parts("word", "off")), ("{flag: on}", []), ("{flag: no}", parts("flag", "false")),
        ("{number: 5}", []), ("{number: 6}", parts("number", "6")), ("{number: x}", []), ("{span: 1m}", []),
        ("{span: 2s}", parts("span", "2000000000")), ("{size: 1024B}", []), ("{size: 2KiB}", parts("size", "2048")),
        ("{secret: file:/a}", parts("secret", "given")), ("{secret: env:A}", parts("secret", "given")),
        ("{place: file:/a}", parts("place", "file:/a")), ("{place: \"exec:/a b\"}", parts("place", "exec:/a b")),
        ("{place: literal:a}", parts("place", "literal")), ("{source: env:A}", parts("source", "env:A")),
        ("{source: {a: x}}", part("source") + part(parts("a", "x"))), ("{source: x}", []), ("{skipped: x}", []),
        ("{unknown: x}", []), ("{z: }", []), ("{z: [a]}", []),
        ("{list: []}", parts("list", "")), ("{list: [B, a]}", part("list") + part(parts("b", "a"))),
        ("{list: [\"-\"]}", part("list") + part(part(""))),
        ("{named: {B: x, a: y}}", part("named") + part(parts("a", "y", "b", "x"))),
        ("{named: {A: y, a: x}}", part("named") + part(parts("a", "y", "a", "x"))),
        ("{named: {}}", parts("named", "")), ("{named: {\" \": x}}", part("named") + part(parts(" ", "x"))),
        ("{named: {a: [x]}}", part("named") + part(parts("a", ""))),
        ("{inner: {}}", []), ("{inner: {b: 3}}", []), ("{inner: {b: 4}}", part("inner") + part(parts("b", "4"))),
        ("{inner: {b: 4, a: x}}", part("inner") + part(parts("a", "x", "b", "4"))),
        ("{json: x}", part("json") + part(parts("p", "x"))), ("{json: \"x\"}", part("json") + part(parts("q", "x"))),
        ("{json: []}", part("json") + part(part("l"))), ("{json: {}}", part("json") + part(part("m"))),
        (
            "{json: [x, 'y']}",
            part("json") + part(part("l"), part(parts("p", "x")), part(parts("q", "y")))
        ),
        (
            "{json: {b: x, a: [y]}}",
            part("json")
                + part(
                    part("m"), part("a"), part(part("l"), part(parts("p", "y"))), part("b"), part(parts("p", "x")))
        ),
        ("{z: b, number: 6, list: [a]}", part("list") + part(part("a")) + parts("number", "6", "z", "b")),
        (
            "{json: \(String(repeating: "x", count: 300))}",
            part("json") + part(part("p"), part(String(repeating: "x", count: 300)))
        ),
    ]

    @Test(arguments: forms)
    func aBlockHasOneForm(yaml: String, members: [UInt8]) throws {
        #expect(try form(yaml) == Self.part("block") + members)
    }
}
