import Testing

@testable import HTTP1

/// Locations and cookies of an upstream, as the caller would have to write them.
@Suite struct AddressMapTests {
    static func map(inner: String = "", outer: String = "") -> AddressMap {
        var map = AddressMap()
        map.isOn = true
        map.isSecure = true
        map.host = octets("hr.example.com")
        map.port = 443
        map.inner = octets(inner)
        map.outer = octets(outer)
        return map
    }

    static func location(_ value: String, _ map: AddressMap, origin: String = "http://localhost:8080") -> String? {
        let bytes = octets(value)
        let caller = octets(origin)
        var isMapped = false
        let result = written { output in
            isMapped = map.write(location: bytes.span, origin: caller.span, into: &output)
        }
        #expect(isMapped || result == [])
        return isMapped ? text(result ?? []) : nil
    }

    static func cookie(_ value: String, _ map: AddressMap, origin: String = "http://localhost:8080") -> String? {
        let bytes = octets(value)
        let caller = octets(origin)
        var isMapped = false
        let result = written { output in isMapped = map.write(cookie: bytes.span, origin: caller.span, into: &output) }
        #expect(isMapped || result == [])
        return isMapped ? text(result ?? []) : nil
    }

    /// value, what the caller gets; nil: untouched
    static let plain: [(String, String?)] = [
        ("https://hr.example.com/a?b#c", "http://localhost:8080/a?b#c"),
        ("HTTPS://HR.Example.COM:443/a", "http://localhost:8080/a"),
        ("https://hr.example.com", "http://localhost:8080/"),
        ("https://hr.example.com:/a", "http://localhost:8080/a"),
        ("https://hr.example.com?q=1", "http://localhost:8080/?q=1"),
        ("//hr.example.com/a", "http://localhost:8080/a"),
        ("https://hr.example.com//a", "http://localhost:8080//a"),
        ("http://hr.example.com/a", nil), ("https://hr.example.com:8443/a", nil),
        ("https://hr.example.com.evil/a", nil), ("https://evil/hr.example.com", nil),
        ("https://hr.example.com@evil/a", nil), ("https://evil@hr.example.com/a", nil),
        ("https://hr.example.com#f", "http://localhost:8080/#f"),
        ("https://hr.example.com:0443/a", "http://localhost:8080/a"),
        ("https:", nil), ("https:/", nil), ("http:", nil), ("h", nil), ("https:x/hr.example.com", nil),
        ("https:/hr.example.com/a", nil), ("https:hr.example.com", nil), ("ftp://hr.example.com/", nil),
        ("/a", nil), ("a/b", nil), ("?q", nil), ("#f", nil), ("", nil), ("/", nil), ("//", nil), ("https://", nil),
        ("https://login.example.com/?to=https://hr.example.com/a", nil),
    ]

    @Test(arguments: plain)
    func mapsTheOrigin(value: String, expected: String?) {
        #expect(Self.location(value, Self.map()) == expected)
    }

    /// value, inner, outer, expected
    static let prefixed: [(String, String, String, String?)] = [
        ("https://hr.example.com/base/a", "/base", "", "http://localhost:8080/a"),
        ("https://hr.example.com/base", "/base", "", "http://localhost:8080/"),
        ("https://hr.example.com/basement", "/base", "", nil),
        ("https://hr.example.com/login", "/base", "", nil),
        ("https://hr.example.com/b%61se/a", "/base", "", "http://localhost:8080/a"),
        ("/base/a", "/base", "", "/a"), ("/base?q", "/base", "", "/?q"), ("/other", "/base", "", nil),
        ("/a", "", "/hr", "/hr/a"), ("/", "", "/hr", "/hr/"), ("a", "", "/hr", nil),
        ("/base/a", "/base", "/hr", "/hr/a"), ("https://hr.example.com", "", "/hr", "http://localhost:8080/hr/"),
        ("/base#f", "/base", "", "/#f"), ("/base/", "/base", "", "/"), ("/base/a#/base", "/base", "", "/a#/base"),
        ("/x#/base/a", "/base", "", nil), ("/base", "/base", "", "/"), ("/base", "/base", "/hr", "/hr/"),
        ("//hr.example.com/base", "/base", "/hr", "http://localhost:8080/hr/"),
        // A path that would name a host once its prefix is gone.
        ("/base//evil/a", "/base", "", "http://localhost:8080//evil/a"),
        ("/base/\\evil", "/base", "", "http://localhost:8080/\\evil"),
        ("/base//evil/a", "/base", "/hr", "/hr//evil/a"),
    ]

    @Test(arguments: prefixed)
    func mapsPaths(value: String, inner: String, outer: String, expected: String?) {
        #expect(Self.location(value, Self.map(inner: inner, outer: outer)) == expected)
    }

    /// The upstream of these is reached without TLS.
    @Test(arguments: [
        ("http://hr.example.com/a", "https://gate/a"), ("http://hr.example.com:80/a", "https://gate/a"),
        ("HTTP://hr.example.com", "https://gate/"), ("//hr.example.com:80", "https://gate/"),
        ("https://hr.example.com/a", nil), ("http://hr.example.com:443/a", nil), ("http:", nil), ("http:/", nil),
        ("http://", nil), ("http://hr.example.com:81/a", nil), ("httpx//hr.example.com", nil),
    ])
    func anUpstreamInClearTextHasItsOwnSchemeAndPort(value: String, expected: String?) {
        var map = Self.map()
        (map.isSecure, map.port) = (false, 80)
        #expect(Self.location(value, map, origin: "https://gate") == expected)
    }

    @Test func withoutAHostOnlyPathsAreMapped() {
        let map = Self.map(inner: "/base")
        #expect(Self.location("https://hr.example.com/base/a", map, origin: "") == nil)
        #expect(Self.location("/base/a", map, origin: "") == "/a")
        #expect(Self.location("/base//evil", map, origin: "") == nil)
    }

    @Test func otherNamesOfTheUpstream() {
        var map = Self.map()
        map.alias = octets("hr.internal")
        map.aliasPort = 8443
        #expect(Self.location("https://hr.internal:8443/a", map) == "http://localhost:8080/a")
        #expect(Self.location("https://hr.internal/a", map) == "http://localhost:8080/a")
        #expect(Self.location("https://hr.internal:9/a", map) == nil)
        map.alias = []
        map.knowsCallersHost = true
        #expect(Self.location("https://LOCALHOST:8080/a", map) == "http://localhost:8080/a")
        #expect(Self.location("https://ocalhost:8080/a", map) == nil)
        #expect(Self.location("https://localhost/a", map) == nil)
        #expect(Self.location("https://localhost:8080/a", map, origin: "") == nil)
        map.host = octets("[::1]")
        #expect(Self.location("https://[::1]:443/a", map) == "http://localhost:8080/a")
    }

    /// value, inner, outer, expected
    static let cookies: [(String, String, String, String?)] = [
        ("a=b; Path=/; HttpOnly", "", "", nil),
        ("a=b; Domain=hr.example.com; Path=/", "", "", "a=b; Path=/"),
        ("a=b;domain=.HR.example.com;x", "", "", "a=b;x"),
        ("a=b; Domain=example.com", "", "", "a=b"),
        ("a=b; Domain=ample.com; Secure", "", "", nil),
        ("a=b; Domain=login.example.com; Secure; Path=/base", "/base", "", nil),
        ("a=b; Secure; HttpOnly", "", "", "a=b; HttpOnly"),
        ("a=b; secure=; SameSite=Lax", "", "", "a=b; SameSite=Lax"),
        ("secure; Secure", "", "", "secure"),
        ("a=Domain=hr.example.com", "", "", nil),
        ("a=b; Path=/base/x", "/base", "", "a=b; Path=/x"),
        ("a=b; Path=/base", "/base", "", "a=b; Path=/"),
        ("a=b; Path=/base/", "/base", "", "a=b; Path=/"),
        ("a=b; Path=/", "/base", "", "a=b; Path=/"),
        ("a=b; Path=/other", "/base", "", nil),
        ("a=b; Path=/base?", "/base", "", nil), ("a=b; Path=/base/?x", "/base", "", "a=b; Path=/?x"),
        ("a=b; Path=/basement", "/base", "", nil),
        ("a=b; Path=/; A", "", "/hr", "a=b; Path=/hr; A"),
        ("a=b; Path=/x", "", "/hr", "a=b; Path=/hr/x"),
        ("a=b; Path=/base/x; Domain=hr.example.com; Secure", "/base", "/hr", "a=b; Path=/hr/x"),
        // Paths above the prefix are everything that the caller reaches.
        ("a=b; Path=/base", "/base/deep", "", "a=b; Path=/"), ("a=b; Path=/base/", "/base/deep", "", "a=b; Path=/"),
        ("a=b; Path=/base", "/base/deep", "/hr", "a=b; Path=/hr"), ("a=b; Path=/ba", "/base/deep", "", nil),
        ("a=b; Path=/base/deep/x", "/base/deep", "/hr", "a=b; Path=/hr/x"),
        ("a=b; Path=/base/deep/", "/base/deep", "/hr", "a=b; Path=/hr"),
        // Several paths are mapped each for itself.
        ("a=b; Path=/base/x; Path=/other; Path=", "/base", "", "a=b; Path=/x; Path=/other; Path="),
        ("a=b; Domain=", "", "", nil), ("a=b; Domain=.", "", "", nil),
        ("a=b; Domain=.; Secure", "", "", "a=b; Domain=."),
        ("a=b; Domain=xhr.example.com", "", "", nil), ("a=b; Domain=m", "", "", nil),
        ("a=b; Domain=com", "", "", "a=b"),
        ("a=b; Domain=x.hr.example.com; Secure", "", "", nil), ("a=b ; Secure ; x", "", "", "a=b ; x"),
        (";Secure", "", "", ""), ("Domain=hr.example.com; Secure", "", "", "Domain=hr.example.com"),
        // A cookie may have the name of an attribute.
        ("secure", "", "", nil), ("Path=/base/x; HttpOnly", "/base", "", nil), ("Domain=hr.example.com", "", "", nil),
        ("Domain=login.example.com; Secure", "", "", "Domain=login.example.com"),
        ("a=b; Path", "", "/hr", nil), ("a=b; Path=x", "", "/hr", nil),
        ("", "", "", nil), (";", "", "", nil), (";;Secure", "", "", ";"), ("a;", "", "", nil),
    ]

    @Test(arguments: cookies)
    func mapsCookies(value: String, inner: String, outer: String, expected: String?) {
        #expect(Self.cookie(value, Self.map(inner: inner, outer: outer)) == expected)
    }

    @Test func whatTheCallerCanUseStays() {
        let map = Self.map()
        #expect(Self.cookie("a=b; Secure", map, origin: "https://localhost") == nil)
        #expect(Self.cookie("a=b; Domain=example.com", map, origin: "https://gate.example.com:8443") == nil)
        #expect(Self.cookie("a=b; Domain=hr.example.com", map, origin: "https://[::1]:1") == "a=b")
        #expect(Self.cookie("a=b; Domain=hr.example.com; Secure", map, origin: "") == nil)
        // The caller's host has the very name, with a port and without one.
        for origin in ["https://hr.example.com", "https://hr.example.com:8443", "https://x.hr.example.com:1"] {
            #expect(Self.cookie("a=b; Domain=hr.example.com; Secure", map, origin: origin) == nil)
        }
        #expect(Self.cookie("a=b; Domain=hr.example.com", map, origin: "https://xhr.example.com") == "a=b")
        var local = map
        local.host = octets("[::1]")
        for origin in ["https://[::1]", "https://[::1]:8443"] {
            #expect(Self.cookie("a=b; Domain=[::1]", local, origin: origin) == nil)
        }
        #expect(Self.cookie("a=b; Domain=[::1]", local, origin: "https://[::2]:8443") == "a=b")
        #expect(Self.cookie("a=b; Domain=[::1]", local, origin: "https://localhost:8443") == "a=b")
        #expect(Self.cookie("a=b; Secure", map, origin: "http://h") == "a=b")
        #expect(Self.cookie("a=b; Secure", map, origin: "https://h") == nil)
    }

    @Test func onlyFieldsWithAddressesAreEdited() throws {
        var edits = ResponseEdits()
        edits.addresses = Self.map()
        let url = "https://hr.example.com/a"
        let lines =
            "location:\(url)\r\nX: \(url)\r\nContent-Location: \(url)\r\nLink: <\(url)>\r\n"
            + "Set-Cookie: a=b; Secure\r\nSet-Cookie: c=d\r\n"
        let bytes = octets("HTTP/1.1 302 Found\r\n\(lines)Content-Length: 0\r\n\r\n")
        let head = try parsedResponse(bytes)
        let origin = octets("http://localhost:8080")
        let result = written { output in
            writeResponse(
                head, bytes: bytes.span, edits: edits, callerOrigin: origin.span, lines: octets("Y: 1\r\n").span,
                framing: .length(0), callerMinorVersion: 1, close: false, into: &output)
        }
        let mapped = "http://localhost:8080/a"
        #expect(
            text(result ?? [])
                == "HTTP/1.1 302 Found\r\nlocation: \(mapped)\r\nX: \(url)\r\nContent-Location: \(mapped)\r\n"
                + "Link: <\(url)>\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nY: 1\r\nContent-Length: 0\r\n\r\n")
    }

    /// lines, whether shared caches have to be told
    @Test(arguments: [
        ("", true), ("Cache-Control: max-age=60", true), ("Cache-Control: max-age=60\r\ncache-control: PUBLIC", false),
        ("Cache-Control: private", false), ("Cache-Control: max-age=1, private=\"x\"", false),
        ("Cache-Control: no-store", false), ("Cache-Control: s-maxage=1", false),
        ("Cache-Control: must-revalidate", false), ("Cache-Control: no-cache", true),
        ("Cache-Control: ext=\"a, public\"", true), ("Cache-Control: ext=\"a\\\", public", true),
        ("Cache-Control: , ,public ", false), ("Cache-Control: publicity", true), ("Pragma: public", true),
    ])
    func judgesCacheControl(lines: String, wants: Bool) throws {
        let bytes = octets("HTTP/1.1 200 OK\r\n\(lines.isEmpty ? "" : lines + "\r\n")\r\n")
        let head = try parsedResponse(bytes)
        #expect(head.wantsPrivate(in: bytes.span) == wants)
    }
}
