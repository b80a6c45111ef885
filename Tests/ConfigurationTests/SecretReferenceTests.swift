import Testing

@testable import Configuration

/// References to secrets: which texts are some, and which of their names are too long or have what a name cannot have.
@Suite struct SecretReferenceTests {
    private static func long(_ count: Int) -> String { String(repeating: "a", count: count) }

    static let taken: [(text: String, reference: SecretReference)] = [
        ("file:/a", .file(path: "/a")), ("file:a b:c", .file(path: "a b:c")),
        ("file:" + long(4095), .file(path: long(4095))), ("env:A", .environment(name: "A")),
        ("env:a b", .environment(name: "a b")), ("env:" + long(256), .environment(name: long(256))),
        ("credential:a", .credential(name: "a")), ("credential:...", .credential(name: "...")),
        ("credential:" + long(255), .credential(name: long(255))), ("exec:/a", .command(path: "/a", arguments: [])),
        ("exec: /a  b c", .command(path: "/a", arguments: ["b", "c"])),
        (
            "exec:/a" + String(repeating: " b", count: 63),
            .command(path: "/a", arguments: Array(repeating: "b", count: 63))
        ),
        ("literal:", .literal(SecretBytes(""))), ("literal:a\nb:c", .literal(SecretBytes("a\nb:c"))),
    ]

    @Test(arguments: taken)
    func aReferenceIsReadAsItsKind(text: String, reference: SecretReference) throws {
        #expect(try SecretReference(text: text) == reference)
    }

    private static let bare = "must be a reference: file:, env:, credential: or exec: (literal: for trials)"
    private static let line = "must not have control characters or line breaks"
    private static let file = "needs a path after file:"
    private static let env = "needs a variable's name after env:"
    private static let credential = "needs a credential's name, without '/', after credential:"
    private static let exec = "needs an absolute path, then arguments separated by spaces, after exec:"

    static let refused: [(text: String, reason: String)] = [
        ("", bare), ("file", bare), ("File:/a", bare), (":a", bare), ("vault:a", bare), ("file:", file),
        ("file:" + long(4096), file), ("file:/a\nb", line), ("env:", env), ("env:A=b", env),
        ("env:" + long(257), env), ("env:A\tb", line), ("credential:", credential), ("credential:a/b", credential),
        ("credential:.", credential), ("credential:..", credential), ("credential:" + long(256), credential),
        ("credential:a\u{85}b", line), ("exec:", exec), ("exec:a", exec), ("exec: ", exec), ("exec:a /b", exec),
        ("exec:/a" + String(repeating: " b", count: 64), exec), ("exec:/a b\nc", line),
    ]

    @Test(arguments: refused)
    func whatIsNoReferenceIsToldWhy(text: String, reason: String) {
        do throws(TextFault) {
            _ = try SecretReference(text: text)
            Issue.record("\(text) is taken")
        } catch { #expect(error.reason == reason) }
    }

    @Test(arguments: [
        ("file:/a", "file:/a"), ("env:A", "env:A"), ("credential:a", "credential:a"), ("exec:/a b", "exec:/a"),
        ("literal:a", "literal:••••••••"),
    ])
    func aReferenceShowsItsPlaceAlone(text: String, shown: String) throws {
        let reference = try SecretReference(text: text)
        #expect(reference.description == shown && reference.debugDescription == shown)
        #expect(reference.customMirror.children.isEmpty)
    }
}
