import Testing

@testable import HTTP1

/// Paths as servers read them that are less exact than a route is.
@Suite struct LenientPathTests {
    struct Reading: Sendable {
        var written: String
        var addsSlash = false
        var isAmbiguous = false
    }

    static let paths: [(String, Reading)] = [
        ("/", Reading(written: "/")), ("/a", Reading(written: "/a/", addsSlash: true)),
        ("/a/", Reading(written: "/a/")),
        ("/A/bZ?x=/C", Reading(written: "/a/bz/", addsSlash: true)),
        ("/@[`{", Reading(written: "/@[`{/", addsSlash: true)),
        // Empty segments and single dots go.
        ("//a", Reading(written: "/a/", addsSlash: true)), ("/a//b/", Reading(written: "/a/b/")),
        ("/a/./b/", Reading(written: "/a/b/")), ("/a/.", Reading(written: "/a/")), ("/.", Reading(written: "/")),
        // Two dots take the segment before them, and no slash beyond the first.
        ("/a/../b/", Reading(written: "/b/")), ("/ab/cd/../e/", Reading(written: "/ab/e/")),
        ("/../b/", Reading(written: "/b/")),
        ("/../../b/", Reading(written: "/b/")), ("/a/..", Reading(written: "/")), ("/..", Reading(written: "/")),
        ("/a/b/../../c/", Reading(written: "/c/")),
        // More or less than two dots are a name.
        ("/..a/", Reading(written: "/..a/")), ("/a./", Reading(written: "/a./")), ("/.a/", Reading(written: "/.a/")),
        ("/.../", Reading(written: "/.../")), ("/a/.b/", Reading(written: "/a/.b/")),
        ("/a/b./", Reading(written: "/a/b./")),
        // Parameters go, up to the segment's end.
        ("/a;b;c/d/", Reading(written: "/a/d/")), ("/a;x?y", Reading(written: "/a/", addsSlash: true)),
        ("/;x/a/", Reading(written: "/a/")), ("/a/.;x/b/", Reading(written: "/a/b/")),
        // A backslash and an encoded slash part segments, too.
        ("/a%2Fb/", Reading(written: "/a/b/")), ("/a%2fb/", Reading(written: "/a/b/")),
        ("/a\\b/", Reading(written: "/a/b/")),
        ("/a%5Cb/", Reading(written: "/a/b/")),
        // An octet is decoded unless it would mean something else then or is not printable.
        ("/%41%7e%21/", Reading(written: "/a~!/")), ("/%25/", Reading(written: "/%25/")),
        ("/%3F/", Reading(written: "/%3F/")),
        ("/%23/", Reading(written: "/%23/")), ("/%20/", Reading(written: "/%20/")),
        ("/%7F/", Reading(written: "/%7F/")),
        ("/%80/", Reading(written: "/%80/")), ("/%2e%2E/b/", Reading(written: "/b/")),
        ("/%zz/", Reading(written: "/%zz/")),
        ("/a%", Reading(written: "/a%/", addsSlash: true)), ("/%3Bx/", Reading(written: "/")),
        // Servers differ about these.
        ("/a//../b/", Reading(written: "/b/", isAmbiguous: true)),
        ("/a/..;x/b/", Reading(written: "/b/", isAmbiguous: true)),
        ("/a;x%2Fb/", Reading(written: "/a/b/", isAmbiguous: true)),
        ("/a;x\\b/", Reading(written: "/a/b/", isAmbiguous: true)),
        ("/a\\../b/", Reading(written: "/b/", isAmbiguous: true)),
        ("/a/..\\b/", Reading(written: "/b/", isAmbiguous: true)),
        ("/a/..%2Fb/", Reading(written: "/b/", isAmbiguous: true)),
        ("/a%2F../b/", Reading(written: "/b/", isAmbiguous: true)),
        ("/a//b/../c/", Reading(written: "/a/c/")), ("/a\\b/../c/", Reading(written: "/a/c/")),
    ]

    @Test(arguments: paths) func isReadAsLessExactServersDo(path: String, expected: Reading) throws {
        var reading = LenientReading()
        let target = octets(path)
        // The path is written behind other octets, and its place in the output does not matter.
        let output = try #require(
            written { output in
                output.append("x/y")
                reading = writeLenientPath(target.span, into: &output)
            })
        #expect(text(output) == "x/y" + expected.written)
        #expect(
            reading == LenientReading(addsSlash: expected.addsSlash, isAmbiguous: expected.isAmbiguous), "\(reading)")
        // The room that the documentation asks for is enough.
        #expect(written(capacity: target.count + 1) { _ = writeLenientPath(target.span, into: &$0) } != nil)
    }
}
