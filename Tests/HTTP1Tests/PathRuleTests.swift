import Testing

@testable import HTTP1

@Suite struct PathRuleTests {
    static let verdicts: [(String, PathVerdict)] = [
        ("/", .clean), ("", .clean), ("*", .clean), ("?a=/../", .clean),
        ("/a/b", .clean), ("/a/", .clean), ("/a?x=../..//%2f%00", .clean),
        ("/a.b/..c/d..", .clean), ("/...", .clean), ("/.well-known", .clean), ("/a%20b%C3%A9", .clean),
        ("/%252e%252e", .clean),
        ("/a;v=1/b", .clean), ("/a..;x", .clean), ("/\u{E9}", .clean),
        ("/.", .dotSegment), ("/..", .dotSegment), ("/a/../b", .dotSegment), ("/a/./b", .dotSegment),
        ("/a/..?q", .dotSegment), ("/%2e%2e/a", .dotSegment), ("/a/.%2E", .dotSegment), ("/%2e", .dotSegment),
        ("/..;/a", .dotSegment), ("/.;x", .dotSegment), ("/%2e.%3bx/a", .dotSegment),
        ("/a%2fb", .encodedSeparator), ("/a%2Fb", .encodedSeparator), ("/a%5cb", .encodedSeparator),
        ("/a\\b", .encodedSeparator), ("/..%5C", .encodedSeparator),
        ("//a", .emptySegment), ("/a//b", .emptySegment), ("/a//", .emptySegment),
        ("/a%00", .nul), ("/%00", .nul),
        ("/%", .malformedEscape), ("/%2", .malformedEscape), ("/%zz", .malformedEscape), ("/%u002e", .malformedEscape),
        ("/a%?", .malformedEscape),
        ("a", .notAPath),
    ]

    @Test(arguments: verdicts)
    func judges(path: String, verdict: PathVerdict) {
        #expect(validateStrictPath(octets(path).span) == verdict)
    }

    /// path, pattern, matches as prefix, matches exactly
    static let matches: [(String, String, Bool, Bool)] = [
        ("/a/b", "/a/", true, false),
        ("/a/b?c", "/a/b", true, true),
        ("/a/b", "/a/b", true, true),
        ("/a", "/a/", false, false),
        ("/ab", "/a/", false, false),
        ("/A/b", "/a/", false, false),
        ("/%61/b", "/a/", true, false),
        ("/a/%7Eu", "/a/~u", true, true),
        ("/a/~u", "/a/%7eu", true, true),
        ("/a%2Fb", "/a/", false, false),
        ("/a%2fb", "/a%2Fb", true, true),
        ("/a%20b", "/a b", false, false),
        ("/a?b/c", "/a?b", false, false),
        ("/%6", "/%6", true, true),
        ("/x", "", true, false),
        ("", "", true, true),
        ("*", "/", false, false), ("?/a", "/a", false, false), ("b/a", "/", false, false), ("", "/", false, false),
    ]

    @Test(arguments: matches)
    func compares(path: String, pattern: String, prefix: Bool, exact: Bool) {
        #expect(pathMatches(octets(path).span, prefix: octets(pattern).span) == prefix)
        #expect(pathMatches(octets(path).span, exact: octets(pattern).span) == exact)
    }

    @Test func measuresReceivedBytes() {
        #expect(matchedLength(octets("/%61bc/d").span, prefix: octets("/abc").span) == 6)
        #expect(matchedLength(octets("/x").span, prefix: octets("/abc").span) == nil)
    }
}
