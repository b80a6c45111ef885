import Testing

@testable import Handshakes

private func read(_ lines: String...) throws -> StructuredDictionary {
    try StructuredDictionary(lines.map { bytes($0) })
}

@Suite struct StructuredFieldTests {
    @Test func aDictionaryOfEveryKindOfValue() throws {
        let text =
            #"a=1, b=-999999999999999;p;q="x\\\"y", c=12.345, *d-e_f.1=tok/en:*a;p=?0,\#te=:AQI=:, f=("x";k=1 y);z=@-5, g;h=?1, i=%"%c3%a4b""#
        let found = try read(text)
        #expect(found.members.map(\.key) == ["a", "b", "c", "*d-e_f.1", "e", "f", "g", "i"])
        #expect(found["a"] == .item(StructuredItem(value: .integer(1))))
        #expect(
            found["b"]
                == .item(
                    StructuredItem(
                        value: .integer(-999_999_999_999_999),
                        parameters: [
                            StructuredParameter(key: "p", value: .boolean(true)),
                            StructuredParameter(key: "q", value: .string(#"x\"y"#)),
                        ])))
        #expect(found["c"] == .item(StructuredItem(value: .decimal)))
        #expect(
            found["*d-e_f.1"]
                == .item(
                    StructuredItem(
                        value: .token("tok/en:*a"), parameters: [StructuredParameter(key: "p", value: .boolean(false))])
                ))
        #expect(found["e"] == .item(StructuredItem(value: .bytes([1, 2]))))
        let inner = [
            StructuredItem(value: .string("x"), parameters: [StructuredParameter(key: "k", value: .integer(1))]),
            StructuredItem(value: .token("y")),
        ]
        #expect(found["f"] == .list(inner, [StructuredParameter(key: "z", value: .date(-5))]))
        #expect(
            found["g"]
                == .item(
                    StructuredItem(
                        value: .boolean(true), parameters: [StructuredParameter(key: "h", value: .boolean(true))])))
        #expect(found["i"] == .item(StructuredItem(value: .displayString("äb"))) && found["j"] == nil)
        #expect(found.members.map { String(decoding: $0.written, as: UTF8.self) }[5] == #"f=("x";k=1 y);z=@-5"#)
    }

    /// Lines of one name are one field, and an empty one adds nothing.
    @Test func linesAreJoined() throws {
        #expect(try read("a=1", "", " ", "b").members.map(\.key) == ["a", "b"])
        #expect(try read().members.isEmpty && read("  ").members.isEmpty)
        #expect(throws: StructuredDictionary.Fault.duplicate) { try read("a=1", "a=2") }
    }

    @Test(arguments: [
        "a=", "a=-", "a=--1", "a=1.1234", "a=1234567890123.1", "a=+1", "a=\"\u{7F}\"", "a=\"ä\"", "a=\"\\n\"",
        "a=:AQI:",
        "a=:AQ", "a=?", "a=@", "a=@1.5", "a=%\"%C3%A4\"", "a=%\"%c3\"", "a=%x", "a=%\"a", "a=(1", "a=(1)(2)", "A=1",
        "_a=1",
        "a b", "a,,b", "a=1\u{0}", "a=\u{0}", "a;", "a;;b", "a=(;b)", "a=1;b =2", "a=!", "a=&b",
    ])
    func whatIsNoDictionary(text: String) { #expect(throws: StructuredDictionary.Fault.malformed) { try read(text) } }

    /// Whatever comes, a part of it is read or a fault is thrown.
    @Test func eachPrefixIsReadOrRefused() {
        let text = bytes(#"a=1;b="\"";c=(1 :AQI=: "x";y);d=%"%c3%a4", e=("@path" "a\\b");created;keyid="k", f=12.3"#)
        for end in 0...text.count { _ = try? StructuredDictionary([Array(text[..<end])]) }
        for place in text.indices {
            for octet: UInt8 in [0, 0x20, 0x22, 0x25, 0x28, 0x29, 0x2C, 0x3A, 0x3B, 0x3D, 0x5C, 0x80, 0xFF] {
                var changed = text
                changed[place] = octet
                _ = try? StructuredDictionary([changed])
            }
        }
    }

    @Test func bounds() throws {
        let most = StructuredDictionary.mostMembers
        let keys = (0..<most).map { "k\($0)" }
        #expect(try read(keys.joined(separator: ",")).members.count == most)
        #expect(throws: StructuredDictionary.Fault.tooMany) { try read((keys + ["x"]).joined(separator: ",")) }
        let parts = (0..<StructuredDictionary.mostParts).map { "p\($0)" }
        #expect(try read("a=(\(parts.joined(separator: " ")))").members.count == 1)
        #expect(throws: StructuredDictionary.Fault.tooMany) { try read("a=(\(parts.joined(separator: " ")) x)") }
        #expect(throws: StructuredDictionary.Fault.tooMany) { try read("a;\(parts.joined(separator: ";"));x") }
        let long = String(repeating: "k", count: StructuredDictionary.longestKey)
        #expect(try read(long).members.count == 1)
        #expect(throws: StructuredDictionary.Fault.tooLong) { try read(long + "k") }
        #expect(throws: StructuredDictionary.Fault.tooLong) {
            try read("a=\"\(String(repeating: "x", count: StructuredDictionary.longest))\"")
        }
    }

    @Test func stringsAreEscaped() {
        #expect(#"a"b\c"#.structuredString == bytes(#""a\"b\\c""#))
        #expect("".structuredString == bytes(#""""#))
        for text in ["ä", "\n", "\u{7F}"] { #expect(text.structuredString == nil) }
    }
}
