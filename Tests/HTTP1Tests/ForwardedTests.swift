import Testing

@testable import HTTP1

/// `Forwarded` and what came before it: whose is believed, and what is written.
@Suite struct ForwardedTests {
    static func hop(
        trusted: Bool = false, _ fields: ForwardedHop.Fields = [], address: String = "192.0.2.7", hidden: Bool = false
    ) -> ForwardedHop {
        var hop = ForwardedHop()
        hop.isTrusted = trusted
        hop.fields = fields
        hop.address = octets(address)
        hop.isHidden = hidden
        hop.identifier = 0xabc
        return hop
    }

    /// The lines between `Host` and the end.
    static func lines(_ received: String, _ hop: ForwardedHop, host: String = "h") throws -> String {
        let bytes = octets("GET / HTTP/1.1\r\nHost: \(host)\r\n\(received)\r\n")
        let head = try parsedRequest(bytes)
        let result = written { output in
            writeRequest(
                head, bytes: bytes.span, edits: RequestEdits(), credential: nil, hop: hop, framing: .none, into: &output
            )
        }
        let prefix = "GET / HTTP/1.1\r\nHost: \(host)\r\n"
        let all = text(result ?? [])
        #expect(all.hasPrefix(prefix) && all.hasSuffix("\r\n"))
        // CR and LF are one character.
        return String(all.dropFirst(prefix.count).dropLast())
    }

    static let received =
        "Forwarded: for=1.2.3.4\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a\r\n"

    @Test func ofNobodyInParticularTheyAreDeleted() throws {
        let others =
            "forwarded: x\r\nX_Forwarded_For: 1\r\nX-Forwarded-Port: 1\r\nx_forwarded-server: a\r\nX-FORWARDED-: b\r\n"
        #expect(try Self.lines(Self.received + others + "X-Forward: 1\r\n", Self.hop()) == "X-Forward: 1\r\n")
    }

    @Test func ofATrustedPeerTheyPass() throws {
        let port = "X-Forwarded-Port: 1\r\n"
        #expect(try Self.lines(Self.received + port, Self.hop(trusted: true)) == Self.received + port)
    }

    /// address, hidden, host, element
    @Test(arguments: [
        ("192.0.2.7", false, "h", "for=192.0.2.7;host=\"h\";proto=http"),
        ("2001:db8::1", false, "h:81", "for=\"[2001:db8::1]\";host=\"h:81\";proto=http"),
        ("192.0.2.7", true, "h", "for=_abc;host=\"h\";proto=http"),
        ("", false, "h", "for=unknown;host=\"h\";proto=http"),
    ])
    func writesAnElement(address: String, hidden: Bool, host: String, element: String) throws {
        let hop = Self.hop(.standard, address: address, hidden: hidden)
        #expect(try Self.lines("Forwarded: for=evil\r\n", hop, host: host) == "Forwarded: \(element)\r\n")
    }

    @Test func joinsWhatATrustedPeerSays() throws {
        let hop = Self.hop(trusted: true, [.standard, .legacy])
        let result = try Self.lines(
            "Forwarded: for=a\r\nX-Forwarded-For: a, b\r\nA: b\r\nForwarded: for=\"_c\"\r\nX-Forwarded-Proto: https\r\n",
            hop)
        #expect(
            result == "A: b\r\nX-Forwarded-Proto: https\r\n"
                + "Forwarded: for=a, for=\"_c\", for=192.0.2.7;host=\"h\";proto=http\r\n"
                + "X-Forwarded-For: a, b, 192.0.2.7\r\nX-Forwarded-Host: h\r\n")
    }

    @Test func writesTheOlderFields() throws {
        var hop = Self.hop(.legacy)
        hop.isSecure = true
        #expect(
            try Self.lines(Self.received, hop)
                == "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: h\r\n")
        hop.isHidden = true
        #expect(try Self.lines("", hop).hasPrefix("X-Forwarded-For: unknown\r\n"))
    }

    /// An open quote before our element would make it part of the value.
    @Test(arguments: [
        "for=\"a", "for=\"a\\", "for=a b", "for", "=a", "for=", "for=a\"", "for=\"a\"b", "for=a;;by", "for=a,by=\"",
    ])
    func leavesOutWhatIsNoList(value: String) throws {
        let result = try Self.lines("Forwarded: \(value)\r\n", Self.hop(trusted: true, .standard))
        #expect(result == "Forwarded: for=192.0.2.7;host=\"h\";proto=http\r\n")
        #expect(isForwardedList(octets(value).span) == false)
    }

    @Test(arguments: ["", "for=a", "For=\"[::1]:1\";by=_x , for=b;;", "for=[::1]:1", "for=\"a\\\"b\"", ",,for=a,"])
    func acceptsLists(value: String) { #expect(isForwardedList(octets(value).span) == true) }

    /// lines, trusted, secure, origin
    @Test(arguments: [
        ("", false, false, "http://h"), ("", false, true, "https://h"),
        ("Forwarded: proto=https;host=a\r\n", false, false, "http://h"),
        ("Forwarded: proto=https;host=a\r\n", true, false, "https://a"),
        ("Forwarded: Proto=HTTPS;Host=\"a:8443\", proto=http;host=b\r\n", true, false, "https://a:8443"),
        ("Forwarded: for=1, host=b\r\n", true, false, "http://h"),
        ("Forwarded: host=\"a/b\";proto=ftp\r\n", true, false, "http://h"),
        ("X-Forwarded-Proto: https, http\r\nX-Forwarded-Host: a, b\r\n", true, false, "https://a"),
        ("X-Forwarded-Proto: https\r\nForwarded: proto=http;host=c\r\n", true, true, "http://c"),
        ("X-Forwarded-Host: a b\r\nX-Forwarded-Proto: gopher\r\n", true, false, "http://h"),
    ])
    func findsTheCallersOrigin(lines: String, trusted: Bool, secure: Bool, origin: String) throws {
        let bytes = octets("GET / HTTP/1.1\r\nHost: h\r\n\(lines)\r\n")
        let head = try parsedRequest(bytes)
        let result = written { output in
            head.writeCallerOrigin(bytes.span, isSecure: secure, isTrusted: trusted, into: &output)
        }
        #expect(text(result ?? []) == origin)
    }

    /// A caller of HTTP/1.0 may name no host, and none is told then.
    @Test func aHostThatWasNotNamedIsNotTold() throws {
        let bytes = octets("GET / HTTP/1.0\r\nA: b\r\n\r\n")
        let head = try parsedRequest(bytes)
        let hop = Self.hop([.standard, .legacy])
        let result = written { output in
            writeRequest(
                head, bytes: bytes.span, edits: RequestEdits(), credential: nil, hop: hop, framing: .none, into: &output
            )
        }
        #expect(
            text(result ?? []) == "GET / HTTP/1.1\r\nHost: \r\nA: b\r\nForwarded: for=192.0.2.7;proto=http\r\n"
                + "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\n\r\n")
    }

    @Test func withoutAHostThereIsNoOrigin() throws {
        let bytes = octets("GET / HTTP/1.0\r\n\r\n")
        let head = try parsedRequest(bytes)
        #expect(written { head.writeCallerOrigin(bytes.span, isSecure: false, isTrusted: false, into: &$0) } == [])
    }
}
