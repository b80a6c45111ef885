import Testing

@testable import HTTP1

@Suite struct NameTests {
    @Test func octetClassesAreWhatTheRFCsSay() {
        let alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        let classes: [(OctetClass, String)] = [
            (.token, "!#$%&'*+-.^_`|~" + alphanumeric),
            (.unreserved, "-._~" + alphanumeric),
            (.addressLiteral, "0123456789abcdefABCDEF:."),
        ]
        for (octetClass, characters) in classes {
            let members = Set(characters.utf8)
            for octet in UInt8.min...UInt8.max { #expect(octetClass.contains(octet) == members.contains(octet)) }
        }
    }

    @Test func everyKnownNameIsFound() {
        for known in KnownField.allCases where known != .other {
            // The case names are the field names without their hyphens.
            var name = ""
            for character in "\(known)" {
                name += character.isUppercase ? "-\(character.lowercased())" : "\(character)"
            }
            let bytes = octets(name.uppercased())
            let range = ByteRange(0..<bytes.count)
            #expect(KnownField.lookup(range, in: bytes.span, lookAlike: false) == known)
            let similar = octets(name.replacing("-", with: "_"))
            #expect(KnownField.lookup(range, in: similar.span, lookAlike: true) == known)
            if name.contains("-") {
                #expect(KnownField.lookup(range, in: similar.span, lookAlike: false) == .other)
            }
        }
        #expect(KnownField.allCases.count <= 64)
    }

    @Test(arguments: ["", "a b", "a:", "\u{E9}", "a\r\n", "a/b"])
    func refusesNamesThatAreNoTokens(name: String) {
        #expect(FieldName(name) == nil)
    }

    @Test func setsMatchInAnyCase() {
        let set = names("X-Token", "authorization", "X_Under")
        #expect(set.contains(octets("x-tOKEN").span, lookAlike: false) == true)
        #expect(set.contains(octets("x_token").span, lookAlike: false) == false)
        #expect(set.contains(octets("x_token").span, lookAlike: true) == true)
        #expect(set.contains(octets("x-under").span, lookAlike: true) == true)
        #expect(set.contains(octets("x-toke").span, lookAlike: true) == false)
        #expect(NameSet().contains(octets("x").span, lookAlike: true) == false)
        let long = String(repeating: "a", count: 100)
        #expect(names(long).contains(octets(long.uppercased()).span, lookAlike: false) == true)
    }

    /// Lengths are told apart before names are, and long ones together.
    @Test(arguments: [1, 2, 61, 62, 63, 64, 65, 100])
    func namesOfAnyLengthAreFound(count: Int) {
        let name = String(repeating: "a", count: count)
        let set = names(name)
        for (other, isIn) in [
            (name, true), (name + "a", false), (String(name.dropLast()), false), ("b" + name.dropFirst(), false),
        ] {
            let isFound = set.contains(octets(other).span, lookAlike: false)
            #expect(isFound == isIn)
        }
        #expect(!set.isEmpty && NameSet().isEmpty)
    }

    @Test(arguments: [
        ("ab", true), ("abc", true), ("a", false), ("", false), ("Ab", false), ("xy", true), ("xab", false),
        ("x", false),
    ])
    func aPrefixHasACase(name: String, isCovered: Bool) {
        let set = PrefixSet([[], octets("ab"), octets("xy")])
        let covers = set.covers(octets(name).span)
        #expect(covers == isCovered)
        #expect(!set.isEmpty && PrefixSet().isEmpty && PrefixSet([[]]).isEmpty)
    }

    @Test(arguments: 0..<40)
    func lineBreaksAreFoundAtEveryOffset(offset: Int) {
        for octet: UInt8 in [0, 0x0A, 0x0D] {
            var bytes = [UInt8](repeating: 0x8D, count: 40)
            for index in bytes.indices where index % 3 == 0 { bytes[index] = 0x0B }
            bytes[offset] = octet
            bytes += [0x0D, 0x0A]
            for from in 0...offset { #expect(firstLineBreak(in: bytes.span, from: from, limit: 42) == offset) }
            #expect(firstLineBreak(in: bytes.span, from: 0, limit: offset) == offset)
        }
    }
}
