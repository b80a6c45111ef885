import Testing

@testable import Configuration

@Suite struct AddressTests {
    @Test(arguments: [
        ("127.0.0.1:8080", "127.0.0.1:8080"), ("[::1]:8080", "[::1]:8080"), ("0.0.0.0:80", "0.0.0.0:80"),
        ("localhost:1", "127.0.0.1:1"), ("unix:/run/x.sock", "unix:/run/x.sock"), ("[::]:65535", "[::]:65535"),
        ("[::ffff:10.0.0.1]:1", "10.0.0.1:1"),
    ])
    func listens(text: String, shown: String) { #expect(ListenAddress(text)?.description == shown) }

    @Test(arguments: [
        "", ":80", "*:80", "80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:+1", "::1:80",
        "[::1]", "[::1]80",
        "host.example.com:80", "unix:", "unix:x", "unix:/", "127.1:80", "0127.0.0.1:80", "[127.0.0.1]:80",
        "127.0.0.1:8 0",
    ])
    func doesNotListen(text: String) { #expect(ListenAddress(text) == nil) }

    @Test func longSocketPaths() {
        #expect(ListenAddress("unix:/" + String(repeating: "x", count: 106)) != nil)
        #expect(ListenAddress("unix:/" + String(repeating: "x", count: 107)) == nil)
    }

    @Test func urls() throws {
        let url = try #require(ServiceURL("HTTPS://Idp.Example.com.:8443/Token?a=b"))
        #expect(url.origin == Origin(scheme: .https, host: "idp.example.com", port: 8443))
        #expect(url.target == "/Token?a=b")
        #expect(url.description == "https://idp.example.com:8443/Token")
        #expect(ServiceURL("https://[2001:DB8::1]/")?.origin.authority == "[2001:db8::1]")
        #expect(ServiceURL("http://h")?.origin.authority == "h")
        #expect(ServiceURL("http://h:443")?.origin.authority == "h:443")
    }

    @Test func matchesCover() throws {
        let match = { (host: String?, path: String?) in
            Match(
                host: try host.map(AddressParser.hostPattern), path: try path.map(AddressParser.pathPattern),
                ports: [], methods: [],
                headers: [])
        }
        #expect(try match(nil, nil).covers(match("h", "/x")))
        #expect(try match("*.x", nil).covers(match("a.x", "/")))
        #expect(try !match("*.x", nil).covers(match("a.b.x", nil)))
        #expect(try !match("*.x", nil).covers(match("x", nil)))
        #expect(try !match("h", nil).covers(match(nil, nil)))
        #expect(try match(nil, "/x/").covers(match(nil, "/x/y")))
        #expect(try !match(nil, "/x/").covers(match(nil, "/x")))
        #expect(try !match(nil, "/x").covers(match(nil, "/x/")))
    }
}

extension ServiceURL {
    /// Reads an `http:` or `https:` URL without user and fragment; nil for anything else.
    fileprivate init?(_ text: String) {
        guard let url = try? AddressParser.url(text, schemes: [.http, .https]) else { return nil }
        self = url
    }
}

extension ListenAddress {
    /// Reads `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080` or `unix:/path`; nil for anything else.
    fileprivate init?(_ text: String) {
        guard let address = try? AddressParser.listenAddress(text) else { return nil }
        self = address
    }
}
