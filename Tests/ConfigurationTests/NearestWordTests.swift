import Testing

@testable import Configuration

/// A mistyped word finds the one that was meant, and a word that is none of the known ones finds nothing.
@Suite struct NearestWordTests {
    @Test(arguments: [
        // An insertion, a deletion, a replacement, a swap; at the start, in the middle and at the end.
        ("isten", "listen"), ("lsten", "listen"), ("liste", "listen"), ("xlisten", "listen"), ("lisxten", "listen"),
        ("listenx", "listen"), ("xisten", "listen"), ("lisxen", "listen"), ("listex", "listen"), ("ilsten", "listen"),
        ("litsen", "listen"), ("listne", "listen"), ("LISTEN", "listen"), ("Lsiten", "listen"),
        // A third of the longer word may change, and one letter of any.
        ("ot", "to"), ("t", "to"), ("too", "to"), ("tx", "to"), ("x", "t"), ("", "t"), ("abcdxy", "abcdef"),
        ("abcd", "abcdef"), ("abcdef", "abcd"), ("badcef", "abcdef"), ("abcdefxyz", "abcdefghi"),
        ("badcfeghi", "abcdefghi"), ("bacdefgxy", "abcdefghi"),
    ])
    func aMistypedWordIsFound(word: String, meant: String) {
        #expect(NearestWord.of(word, in: [meant]) == meant)
    }

    @Test(arguments: [
        ("xy", "to"), ("", "to"), ("to", ""), ("tofg", "to"), ("abcxy", "abcde"), ("abcxyz", "abcdef"),
        ("abc", "abcde"), ("abcde", "abc"), ("badcfe", "abcdef"), ("abcdewxyz", "abcdefghi"),
        // A swap is of both letters, and of neighbours.
        ("ab", "bc"), ("ab", "ca"), ("cba", "abc"), ("xab", "bcx"), ("abcdewx", "edcbawx"),
        // Any number would be near any other.
        ("1.1", "1.2"), ("1x", "x"),
    ])
    func aWordThatIsFarFindsNothing(word: String, other: String) {
        #expect(NearestWord.of(word, in: [other]) == nil)
    }

    @Test func theNearestCountsAndOfTwoTheFirst() {
        #expect(NearestWord.of("ab", in: ["ac", "ad"]) == "ac")
        #expect(NearestWord.of("abcdef", in: ["abcdxx", "abcdex", "abcdxf"]) == "abcdex")
        #expect(NearestWord.of("ab", in: ["xy", "ab"]) == "ab")
        #expect(NearestWord.of("ab", in: []) == nil)
    }

    @Test func aWordOfMoreThan64BytesIsNotLookedFor() {
        let word = String(repeating: "a", count: 64)
        #expect(NearestWord.of(word, in: [word]) == word)
        #expect(NearestWord.of(word + "a", in: [word]) == nil)
    }
}
