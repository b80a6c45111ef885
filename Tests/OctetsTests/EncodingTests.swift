import Octets
import Testing

@Suite struct EncodingTests {
    // MARK: - Base 64

    /// RFC 4648 §10.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func `base 64 agrees with its standard`(plain: String, encoded: String) {
        let bytes = Array(plain.utf8)
        let bare = String(encoded.prefix { $0 != "=" })
        #expect(Base64.encode(bytes) == encoded && Base64.decode(encoded.utf8) == bytes)
        #expect(Base64.octets(of: bytes) == Array(encoded.utf8))
        #expect(Base64.encodeURL(bytes) == bare && Base64.decodeURL(bare.utf8) == bytes)
    }

    @Test(arguments: ["Zg", "Zg=", "Zh==", "Z===", "====", "Zm9v\n", " Zm9v", "Zm_v", "Zm9vZg=a", "Zg==Zg=="])
    func `base 64 has one text for one value`(text: String) { #expect(Base64.decode(text.utf8) == nil) }

    @Test(arguments: ["Z", "Zh", "Zg==", "Zm+v", "Zm9vZ"])
    func `base 64 for URLs likewise`(text: String) { #expect(Base64.decodeURL(text.utf8) == nil) }

    @Test func `base 64 alphabets differ in two places`() {
        #expect(Base64.encode([0xfb, 0xff]) == "+/8=" && Base64.encodeURL([0xfb, 0xff]) == "-_8")
    }

    @Test(arguments: [
        ("", ""), ("Zm9vYg==", "foob"), ("Zm9vYg", "foob"), ("Zm9vYh==", "foob"), ("Z", ""), ("Zm9vYmFy", "foobar"),
        ("Zm_v", nil), ("Zm9v\n", nil), ("=Zg=", nil), ("Zm9vYmFyZm9v", nil),
    ])
    func `base 64 of others is taken as it comes, where it fits`(text: String, plain: String?) {
        var memory = [UInt8](repeating: 0, count: 9)
        let count = memory.withUnsafeMutableBytes { target in
            Array(text.utf8).withUnsafeBytes { Base64.decode($0, into: target) }
        }
        #expect(count.map { String(decoding: memory[..<$0], as: UTF8.self) } == plain)
    }

    // MARK: - Hexadecimal

    @Test func `every octet has two digits`() {
        let all = Array(UInt8.min...UInt8.max)
        let text = Hexadecimal.encode(all)
        #expect(text.hasPrefix("000102") && text.hasSuffix("fdfeff") && text.utf8.count == 512)
        #expect(Hexadecimal.octets(of: all) == Array(text.utf8))
        #expect(Hexadecimal.decode(text.utf8) == all && Hexadecimal.decode(text.uppercased().utf8) == all)
    }

    @Test(arguments: ["f", "fff", "g0", "0g", "+1", "-1", "0x", " 1", "0\u{660}"])
    func `other text is no octets`(text: String) { #expect(Hexadecimal.decode(text.utf8) == nil) }

    @Test func `an octet needs both digits`() {
        #expect(Hexadecimal.octet(UInt8(ascii: "9"), UInt8(ascii: "C")) == 0x9C)
        #expect(Hexadecimal.octet(UInt8(ascii: "9"), nil) == nil && Hexadecimal.octet(nil, UInt8(ascii: "9")) == nil)
    }

    // MARK: - Percent-encoding

    @Test(arguments: [("", ""), ("a-._~Z9", "a-._~Z9"), ("a b+c/é", "a%20b%2Bc%2F%C3%A9"), ("%", "%25")])
    func `all but unreserved characters are encoded`(plain: String, encoded: String) {
        #expect(PercentEncoding.encode(plain) == encoded)
        #expect(PercentEncoding.decode(encoded.utf8) == Array(plain.utf8))
    }

    @Test func `forms have their own blank and star`() {
        var bytes: [UInt8] = []
        for byte in "a b*~".utf8 { bytes.appendFormEncoded(byte) }
        #expect(bytes == Array("a+b*%7E".utf8))
        #expect(PercentEncoding.decode(bytes, plusIsBlank: true) == Array("a b*~".utf8))
        #expect(PercentEncoding.decode("a+b".utf8) == Array("a+b".utf8))
    }

    @Test(arguments: ["%", "%4", "%4g", "%g4", "a%", "%%41"])
    func `a broken escape is refused`(text: String) { #expect(PercentEncoding.decode(text.utf8) == nil) }

    // MARK: - JSON

    @Test func `strings of JSON stay strings`() {
        #expect("\"\\\n\u{7F}é".jsonQuoted == #""\"\\\u000a\u007fé""#)
        #expect("".jsonQuoted == "\"\"")
    }
}

@Suite struct OctetClassTests {
    @Test func `classes are those of the grammars`() {
        func members(_ test: (UInt8) -> Bool) -> String {
            String(decoding: (UInt8.min...UInt8.max).filter(test), as: UTF8.self)
        }
        let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        #expect(members(\.isDigit) == "0123456789")
        #expect(
            members(\.isHexDigit) == "0123456789ABCDEFabcdef" && members { $0.hexValue != nil } == members(\.isHexDigit)
        )
        #expect(members(\.isLetter) == letters && members(\.isLetterOrDigit) == "0123456789" + letters)
        #expect(members(\.isUnreserved) == members { $0.isLetterOrDigit || "-._~".utf8.contains($0) })
        #expect(members { $0.isTokenCharacter && !$0.isLetterOrDigit } == "!#$%&'*+-.^_`|~")
        #expect(members(\.isBlank) == "\t " && members(\.isJSONBlank) == "\t\n\r ")
        #expect((UInt8.min...UInt8.max).filter(\.isControl) == Array(0..<0x20) + [0x7F])
        #expect(members { $0.asciiLowercased != $0 } == String(letters.prefix(26)))
    }

    @Test func `case is that of ASCII`() {
        #expect("Content-TYPE".utf8.matches("content-type") && !"k".utf8.matches("\u{212A}"))
        #expect(!"a".utf8.matches("ab") && !"[".utf8.matches("{"))
    }

    @Test(arguments: [("é😀", true), ("", true)])
    func `text is UTF-8`(text: String, is wanted: Bool) { #expect(text.utf8.isUTF8 == wanted) }

    @Test(arguments: [[0x80], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xC3], [0xF4, 0x90, 0x80, 0x80]] as [[UInt8]])
    func `other octets are not`(octets: [UInt8]) { #expect(!octets.isUTF8) }
}

@Suite struct CivilDateTests {
    @Test(arguments: [
        (0, 1970, 1, 1), (58, 1970, 2, 28), (59, 1970, 3, 1), (11_016, 2000, 2, 29), (11_017, 2000, 3, 1),
        (19_782, 2024, 2, 29), (47_540, 2100, 2, 28), (47_541, 2100, 3, 1), (2_932_896, 9999, 12, 31),
    ])
    func `days have dates`(days: Int, year: Int, month: Int, day: Int) {
        let date = CivilDate(year: year, month: month, day: day)
        #expect(CivilDate(daysSince1970: days) == date && date.daysSince1970 == days)
    }

    @Test func `every day is the one after the day before`() {
        var last = CivilDate(year: 1969, month: 12, day: 31)
        for days in 0..<150_000 {
            let date = CivilDate(daysSince1970: days)
            #expect(date.daysSince1970 == days)
            #expect(date.day == last.day + 1 && date.month == last.month || date.day == 1)
            last = date
        }
    }
}

@Suite struct SecretMemoryTests {
    @Test func `what is wiped is zero`() {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 100, alignment: 16)
        defer { memory.deallocate() }
        memory.initializeMemory(as: UInt8.self, repeating: 7)
        memory.wipe()
        #expect(memory.allSatisfy { $0 == 0 })
        UnsafeMutableRawBufferPointer(start: nil, count: 0).wipe()
        var bytes: [UInt8] = [1, 2]
        bytes.wipe()
        #expect(bytes.isEmpty)
    }

    @Test(arguments: [("", "", true), ("a", "a", true), ("ab", "aa", false), ("ab", "bb", false), ("a", "ab", false)])
    func `equal is what has the same octets`(one: String, other: String, isEqual: Bool) {
        let (one, other) = (Array(one.utf8), Array(other.utf8))
        #expect(one.withUnsafeBytes { one in other.withUnsafeBytes { one.isEqualInConstantTime(to: $0) } } == isEqual)
    }

    // MARK: - Eight hexadecimal digits in one word

    @Test(arguments: [0, 1, 0x0123_4567, 0x89ab_cdef, 0xffff_ffff, 0xa0a0_0a0a, 0x9999_aaaa] as [UInt32])
    func `eight digits are those of the number`(number: UInt32) {
        let word = Hexadecimal.digits(of: number)
        let text = withUnsafeBytes(of: word.bigEndian) { String(decoding: $0, as: UTF8.self) }
        let plain = String(number, radix: 16)
        #expect(text == String(repeating: "0", count: 8 - plain.count) + plain)
        #expect(Hexadecimal.number(of: word) == number)
    }

    @Test func `no octet but a small digit is read`() {
        for octet in UInt8.min...UInt8.max {
            for place in 0..<8 {
                var text = Array("0123abcd".utf8)
                text[place] = octet
                let word = text.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
                let isDigit = octet.isDigit || (0x61...0x66).contains(octet)
                let expected = isDigit ? UInt32(String(decoding: text, as: UTF8.self), radix: 16) : nil
                #expect(Hexadecimal.number(of: word) == expected, "\(octet) at \(place)")
            }
        }
    }
}
