import Testing

@testable import HTTP1

/// Numbers for the beginnings of a path, by which routes are found.
@Suite struct SegmentHashTests {
    private static func hashes(_ path: String) -> [UInt32] {
        let bytes = octets(path)
        var hashes = SegmentHashes()
        var all: [UInt32] = []
        while let next = hashes.next(in: bytes.span) { all.append(next) }
        return all
    }

    @Test(arguments: [
        ("", 0), ("a", 0), ("*", 0), ("?/a", 0), ("/", 1), ("/?a/b", 1), ("/a", 1), ("/a/", 1), ("/a/?b", 1),
        ("/a?b/c", 1), ("/a/b", 2), ("/a//b", 3), ("/a/b/c/", 3),
    ])
    func aPathHasANumberForEachSegment(path: String, count: Int) {
        let hashes = Self.hashes(path)
        #expect(hashes.count == count && Set(hashes).count == count)
    }

    @Test func pathsHaveTheSameNumbersAsFarAsTheyAreTheSame() {
        #expect(Array(Self.hashes("/a/b/c").prefix(2)) == Self.hashes("/a/b"))
        #expect(Self.hashes("/a/b/") == Self.hashes("/a/b?c") && Self.hashes("/%61/b") == Self.hashes("/a/b"))
        #expect(Self.hashes("/ab").last != Self.hashes("/a/b").last && Self.hashes("/a/b") != Self.hashes("/b/a"))
        #expect(Self.hashes("/a/b").last != Self.hashes("/a%2Fb").last)
        #expect(Self.hashes("/a/b").last != Self.hashes("/c/b").last)
    }
}
