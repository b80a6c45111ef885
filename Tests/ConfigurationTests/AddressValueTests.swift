import Testing

@testable import Configuration

/// Addresses as the model has them, and as they are shown.
@Suite struct AddressValueTests {
    @Test(
        arguments: [
            (.httpURL, "HTTP://H:80", "http://h/"), (.httpURL, "http://h:81?", "http://h:81/?"),
            (.httpURL, "https://h:443/a?b?c", "https://h/a?b?c"),
            (.httpURL, "https://[::0:1]:444", "https://[::1]:444/"),
            (.hostName, "A.B.", "a.b"), (.hostName, "010.0.0.x", "010.0.0.x"), (.ipAddress, "0::0:1", "::1"),
            (.ipAddress, "::ffff:1.2.3.4", "1.2.3.4"), (.network, "0::/0", "::/0"), (.network, "1.2.3.4", "1.2.3.4/32"),
            (.network, "2001:db8::/32", "2001:db8::/32"), (.endpoint, "H:80", "h:80"),
            (.endpoint, "[0::1]:80", "[::1]:80"),
            (.endpoint, "1.2.3.4:80", "1.2.3.4:80"), (.endpoint, "unix:/a", "unix:/a"),
            (.proxy, "http://P", "http://p/"),
            (.servicePath, "/a/", "a/"), (.servicePath, "a", "a"), (.headerName, "A-B", "a-b"),
            (.path, "file:a", "file:a"),
        ] as [(TextForm, String, String)])
    func aTextHasOneSpelling(form: TextForm, text: String, canonical: String) throws {
        #expect(try form.canonical(text) == canonical)
    }

    @Test(
        arguments: [
            ("https://h", "h", 443, ""), ("http://h/", "h", 80, ""), ("http://h:8/a", "h", 8, "/a"),
            ("http://h/a/", "h", 80, "/a"), ("http://h/a/b", "h", 80, "/a/b"), ("http://[::1]/", "::1", 80, ""),
        ] as [(String, String, UInt16, String)])
    func anUpstreamHasAPrefixWithoutItsLastSlash(text: String, host: String, port: UInt16, prefix: String) throws {
        let upstream = try AddressParser.upstream(text)
        #expect(upstream.origin.host == host && upstream.origin.port == port)
        #expect(upstream.pathPrefix == prefix && upstream.addresses.isEmpty)
    }

    @Test func patternsAreWholeOrParts() throws {
        #expect(try AddressParser.hostPattern("*.A.b") == .oneLabel(".a.b"))
        #expect(try AddressParser.hostPattern("A.b.") == .exact("a.b"))
        #expect(try AddressParser.hostPattern("[0::1]") == .exact("::1"))
        #expect(try AddressParser.pathPattern("/a/") == .prefix("/a/"))
        #expect(try AddressParser.pathPattern("/a") == .exact("/a"))
        #expect(try AddressParser.template("a{token}b") == Injection.Template(prefix: "a", suffix: "b"))
        #expect(try AddressParser.template("{token}") == Injection.Template(prefix: "", suffix: ""))
        #expect(try AddressParser.authority("system") == .system)
        #expect(try AddressParser.authority("file:a") == .file("a"))
        #expect(try AddressParser.authority("systems") == .file("systems"))
        #expect(try AddressParser.hostHeader("h:65535") == .name("h:65535"))
        #expect(try AddressParser.hostHeader("[::1]") == .name("[::1]"))
    }

    @Test(arguments: [("0", true), ("65535", true), ("65536", false), ("-1", false), ("", false), ("a", false)])
    func aPortAloneIsANumberOf16Bits(text: String, isPort: Bool) {
        #expect(AddressParser.isPort(text) == isPort)
    }

    @Test func aServersAddressHasADatabase() throws {
        let (address, database) = try AddressParser.shared("rediss://H:1/12")
        #expect(address == .server(Origin(scheme: .rediss, host: "h", port: 1)) && database == 12)
        #expect(try AddressParser.shared("redis://h").address == .server(Origin(scheme: .redis, host: "h", port: 6379)))
        #expect(try AddressParser.shared("redis://h/").database == 0)
    }

    @Test(arguments: [
        ("127.0.0.0", true, false), ("127.255.255.255", true, false), ("126.255.255.255", false, false),
        ("128.0.0.0", false, false), ("0.0.0.0", false, true), ("0.0.0.1", false, false), ("::1", true, false),
        ("::", false, true), ("::2", false, false), ("1::1", false, false), ("1::", false, false),
        ("::1:0:0:0", false, false),
        ("::ffff:127.0.0.1", true, false), ("::ffff:0.0.0.0", false, true), ("1::ffff:127.0.0.1", false, false),
        ("::fffe:127.0.0.1", false, false), ("::1:ffff:127.0.0.1", false, false),
    ])
    func anAddressIsLoopbackOrUnspecifiedOrNeither(text: String, isLoopback: Bool, isUnspecified: Bool) throws {
        let address = try #require(IPAddress(text))
        #expect(address.isLoopback == isLoopback)
        #expect(address.isUnspecified == isUnspecified)
        #expect(ListenAddress.tcp(address, port: 1).isLocal == isLoopback)
    }

    @Test func mappedAddressesAreIPv4() {
        #expect(IPAddress(v6: 0, 0xffff_0102_0304) == IPAddress(v4: 0x0102_0304))
        #expect(IPAddress(v6: 0, 0xffff_0102_0304).family == .v4)
        #expect(IPAddress(v6: 1, 0xffff_0102_0304).family == .v6)
        #expect(IPAddress(v6: 0, 0x1_ffff_0102_0304).family == .v6)
        #expect(IPAddress(v6: 1, 0xffff_0102_0304).low == 0xffff_0102_0304)
        #expect(ListenAddress.unix(path: "/a").isLocal)
    }

    @Test(arguments: [
        ("localhost", true), ("a.localhost", true), ("localhosts", false), ("alocalhost", false), ("127.0.0.2", true),
        ("::1", true), ("10.0.0.1", false), ("h", false),
    ])
    func anOriginIsLoopbackByItsHost(host: String, isLoopback: Bool) {
        #expect(Origin(scheme: .http, host: host, port: 1).isLoopback == isLoopback)
    }

    @Test(
        arguments: [
            (.http, 80, true, "http://h"), (.https, 443, false, "https://h"), (.redis, 6379, true, "redis://h"),
            (.rediss, 6379, false, "rediss://h"), (.http, 443, true, "http://h:443"),
            (.https, 80, false, "https://h:80"),
        ] as [(Origin.Scheme, UInt16, Bool, String)])
    func anOriginShowsAPortThatIsNotItsSchemes(scheme: Origin.Scheme, port: UInt16, isCleartext: Bool, shown: String) {
        let origin = Origin(scheme: scheme, host: "h", port: port)
        #expect(origin.isCleartext == isCleartext)
        #expect(origin.description == shown)
    }

    @Test func aProxyServesAllButItsExceptions() {
        var proxy = OutgoingProxy(host: "p", port: 1)
        #expect(proxy.serves("h"))
        proxy.except = [.exact("h"), .oneLabel(".x.y")]
        for host in ["h", "a.x.y"] { #expect(!proxy.serves(host)) }
        for host in ["h.h", "x.y", ".x.y", "a.b.x.y", "a.x.y.z", "axy"] { #expect(proxy.serves(host)) }
    }

    @Test func anOlderTLSIsLess() {
        #expect(ClientTLS.Version.tls12 < .tls13)
        #expect(!(ClientTLS.Version.tls13 < .tls12) && !(ClientTLS.Version.tls12 < .tls12))
    }

    @Test(
        arguments: [
            ("", []), ("/", [""]), ("/a", ["a"]), ("/a/0", ["a", "0"]), ("/a~1b", ["a/b"]), ("/a~0b", ["a~b"]),
            ("/~01", ["~1"]), ("/a//b", ["a", "", "b"]), ("/é ", ["é "]),
        ] as [(String, [String])])
    func aPointerHasItsParts(text: String, tokens: [String]) throws {
        #expect(try JSONPointer(text: text).tokens == tokens)
    }

    @Test(
        arguments: [
            (String(repeating: "/a", count: 16), nil),
            (String(repeating: "/a", count: 17), "must have at most 16 parts"),
            ("/" + String(repeating: "a", count: 511), nil),
            ("/" + String(repeating: "a", count: 512), "must be a JSON pointer such as /token or /data/0/token"),
            ("/~", "must have '~' only as '~0' or '~1' (RFC 6901)"),
            ("/a/~2", "must have '~' only as '~0' or '~1' (RFC 6901)"),
        ] as [(String, String?)])
    func aPointerBeyondItsBoundsIsToldWhy(text: String, reason: String?) {
        #expect(TextForm.pointer.fault(text)?.reason == reason)
    }
}
