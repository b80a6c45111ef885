import Octets
import Testing

@testable import HTTP1

/// Names that some server reads as the one that carries our credential, and names that none does.
@Suite struct CarrierNameTests {
    static let names: [(received: String, isOurs: Bool)] = [
        ("a_b", true), ("A_b", true), ("a_B", true), ("a%5Fb", true), ("%41_b", true),
        // PHP writes an underscore for each of these.
        ("a.b", true), ("a[b", true), ("a+b", true), ("a%20b", true), ("a%2Eb", true), ("a%5Bb", true),
        ("a-b", false), ("a/b", false), ("a!b", false), ("a\\b", false), ("aZb", false), ("a]b", false),
        ("a%00b", false),
        // Blanks before the name, an array's index and a NUL behind it.
        ("+a_b", true), ("%20+a_b", true), ("a_b[", true), ("a_b[0]", true), ("a_b%5B1", true), ("a_b%00", true),
        ("a_b%00x", true), ("_a_b", false), ("a_b]", false), ("a_bc", false), ("a_b+", false), ("a_b\\", false),
        ("", false), ("a_", false), ("a", false), ("+", false), ("_b", false),
    ]

    @Test(arguments: names)
    func aNameIsOursWhereSomeServerTakesItForOurs(received: String, isOurs: Bool) {
        // The octets around the name have no part in it.
        let (bytes, name) = (octets("x\(received)[0]"), octets("a_b"))
        let range = ByteRange(1..<(1 + received.utf8.count))
        let found = isCarrier(range, bytes.span, named: name.span)
        #expect(found == isOurs)
    }
}
