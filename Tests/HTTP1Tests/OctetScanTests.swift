import Testing

@testable import HTTP1

/// Octets that are looked at eight at a time count at every place of a word and beside every neighbour.
@Suite struct OctetScanTests {
    private static let all = UInt8.min...UInt8.max

    @Test func lettersAloneHaveACase() {
        for octet in Self.all {
            let isCapital = UInt8(ascii: "A")...UInt8(ascii: "Z") ~= octet
            #expect(lowercased(octet) == (isCapital ? octet + 32 : octet))
            #expect(isDigit(octet) == (UInt8(ascii: "0")...UInt8(ascii: "9") ~= octet))
            #expect(
                isBlank(octet) == [0x20, 0x09].contains(octet) && isLineBreak(octet) == [0x0D, 0x0A].contains(octet))
        }
    }

    /// Every octet at every place of a text of letters, and what stands around it.
    private static func everyPlace(_ check: ([UInt8], UInt8, Bool) -> Void) {
        for count in [1, 2, 7, 8, 9, 15, 16, 17, 25] {
            for place in 0..<count {
                var bytes = [UInt8](repeating: UInt8(ascii: "a"), count: count)
                for octet in all {
                    bytes[place] = octet
                    check(bytes, octet, place == 0 || place == count - 1)
                }
            }
        }
    }

    @Test func targetsWithoutAMarkArePlain() {
        Self.everyPlace { bytes, octet, _ in
            let isPlain = isPlainTarget(bytes.span)
            #expect(isPlain == (octet > 0x20 && octet != 0x7F && octet != 0x23))
        }
        let isNonePlain = isPlainTarget([UInt8]().span)
        #expect(!isNonePlain)
    }

    @Test func valuesWithoutALineBreakArePlain() {
        Self.everyPlace { bytes, octet, isAtAnEdge in
            let isPlain = isPlainValue(bytes.span)
            let isBlankAtAnEdge = isAtAnEdge && [0x20, 0x09].contains(octet)
            #expect(isPlain == !([0, 0x0A, 0x0D].contains(octet) || isBlankAtAnEdge))
        }
        let isNonePlain = isPlainValue([UInt8]().span)
        #expect(isNonePlain)
    }

    @Test func namesOfTokenCharactersAreTokens() {
        Self.everyPlace { bytes, octet, _ in
            let isOne = isToken(bytes.span)
            #expect(isOne == OctetClass.token.contains(octet))
        }
    }

    /// The octets around the colon are those that a search by words could take for one.
    @Test(arguments: 0..<26)
    func aColonIsFoundAtEveryOffset(offset: Int) {
        for filling: UInt8 in [0x3B, 0x39, 0xBA, 0x1A, 0x00, 0xFF] {
            var bytes = [UInt8](repeating: filling, count: 27)
            bytes[offset] = UInt8(ascii: ":")
            bytes[26] = UInt8(ascii: ":")
            for from in 0...offset {
                #expect(firstColon(in: bytes.span, from: from, limit: 27) == offset)
                #expect(firstColon(in: bytes.span, from: from, limit: offset) == offset)
            }
        }
    }

    @Test(arguments: 0..<18)
    func aCapitalIsFoundInItsNameAlone(offset: Int) {
        for octet in Self.all {
            var bytes = [UInt8](repeating: UInt8(ascii: "Q"), count: 30)
            for index in 5..<23 { bytes[index] = UInt8(ascii: "q") }
            bytes[5 + offset] = octet
            let isCapital = UInt8(ascii: "A")...UInt8(ascii: "Z") ~= octet
            #expect(hasCapital(ByteRange(5..<23), bytes.span) == isCapital)
            // The name may end where the buffer does, and next to a capital.
            let upToItsEnd = Array(bytes[..<(6 + offset)])
            #expect(hasCapital(ByteRange(5..<upToItsEnd.count), upToItsEnd.span) == isCapital)
            #expect(hasCapital(ByteRange(5..<(5 + offset)), bytes.span) == false)
        }
    }

    /// Blanks around a value are no part of it, and other control characters are.
    @Test func valuesAreTrimmedOfBlanksAlone() {
        let alphabet: [UInt8] = [0x20, 0x09, 0x61, 0x1F, 0x21]
        var texts: [[UInt8]] = [[]]
        for _ in 0..<5 { texts += texts.flatMap { text in alphabet.map { text + [$0] } } }
        for inside in Set(texts) {
            let bytes = octets("a:") + inside + octets("\r\n")
            let found = bytes.span.value(from: 2, to: 2 + inside.count)
            let expected = Array(inside.drop { isBlank($0) }.reversed().drop { isBlank($0) }.reversed())
            #expect(Array(bytes[found.indices]) == expected, "\(inside)")
        }
    }

    /// A name with one other octet is another name, also where the two octets differ by what tells capitals from small letters.
    @Test(arguments: KnownField.allCases.filter { $0 != .other })
    func aNameWithOneWrongOctetIsNotKnown(known: KnownField) {
        let name = octets("\(known.name)")
        for place in name.indices {
            for difference: UInt8 in [0x01, 0x02, 0x10, 0x20, 0x40, 0x80] {
                var bytes = name
                bytes[place] ^= difference
                let isOtherCase = difference == 0x20 && UInt8(ascii: "a")...UInt8(ascii: "z") ~= name[place]
                #expect((KnownField.named(bytes.span) == known) == isOtherCase, "\(text(bytes))")
            }
        }
        for other in [Array(name.dropLast()), name + [name[0]]] {
            let found = KnownField.named(other.span)
            #expect(found != known)
        }
    }

    @Test func namesOfAnyLengthAreLookedUp() {
        for count in 0...40 {
            let name = [UInt8](repeating: UInt8(ascii: "_"), count: count)
            let found = KnownField.lookup(ByteRange(0..<count), in: name.span, lookAlike: true)
            #expect(found == .other)
        }
    }

    /// A set of known fields has a bit for each of them, and none for all others.
    @Test func everyKnownFieldHasItsOwnBit() throws {
        var all: UInt64 = 0
        for known in KnownField.allCases where known != .other {
            #expect(known.bit.nonzeroBitCount == 1 && all & known.bit == 0)
            all |= known.bit
        }
        #expect(KnownField.other.bit == 0)
        let head = try parsedResponse(octets("HTTP/1.1 200 OK\r\nX: y\r\nDate: d\r\n\r\n"))
        #expect(head.contains(.date) && !head.contains(.other))
    }

    /// Methods have a case (RFC 9110 section 9.1).
    @Test(arguments: [
        ("GET", KnownMethod.get), ("HEAD", .head), ("POST", .post), ("PUT", .put), ("DELETE", .delete),
        ("CONNECT", .connect), ("OPTIONS", .options), ("TRACE", .trace), ("PATCH", .patch),
    ])
    func aMethodIsKnownByAllOfItsOctets(name: String, method: KnownMethod) {
        let bytes = octets("x\(name)x")
        let range = ByteRange(1..<bytes.count - 1)
        #expect(KnownMethod(range, in: bytes.span) == method)
        for place in range.indices {
            for difference: UInt8 in [0x01, 0x20] {
                var other = bytes
                other[place] ^= difference
                #expect(KnownMethod(range, in: other.span) == .other)
            }
        }
        for part in [ByteRange(0..<bytes.count), ByteRange(1..<bytes.count), ByteRange(1..<bytes.count - 2)] {
            #expect(KnownMethod(part, in: bytes.span) == .other)
        }
    }
}
