import HTTP1

/// Heads and edits drawn from what callers, upstreams and configurations may send, the hostile among it. The same number draws the same.
struct DrawnHeads: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 1 }

    /// SplitMix64.
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }

    mutating func one<Element>(of list: [Element]) -> Element { list[Int.random(in: 0..<list.count, using: &self)] }

    mutating func happens(_ times: Int, in all: Int) -> Bool { Int.random(in: 0..<all, using: &self) < times }
}

// MARK: - Requests

extension DrawnHeads {
    private static let methods = ["GET", "POST", "OPTIONS", "TRACE", "HEAD", "brew", "M-SEARCH"]
    private static let targets = [
        "/", "/a", "/v1/a?x=1", "/v1", "/v1?key=2&a=b", "/a?key=1", "/a?b=c&KEY=2;key%3d=4&d", "/p?%6bey=1",
        "http://other/p", "http://other",
        "http://other?q=1", "*", "/?", "/a?cardea-placeholder-x=1&y=2", "//double//",
    ]
    private static let names = [
        "Accept", "accept", "X-One", "x-two", "X_User", "x-user", "X-A-Rather-Long-Name-Of-Mine", "Authorization",
        "authorization",
        "X-Api-Key", "Cookie", "cookie", "User-Agent", "USER-AGENT", "user_agent", "Via", "Forwarded",
        "X-Forwarded-For", "x-forwarded-proto",
        "X-Forwarded-Host", "X-Forwarded-Port", "X_Forwarded_For", "Expect", "Max-Forwards", "TE", "Te", "Keep-Alive",
        "Proxy-Connection",
        "Proxy-Authorization", "Connection", "Upgrade", "Trailer", "T_E", "Keep_Alive", "Sec-WebSocket-Key", "Origin",
        "Referer",
        "Content-Type", "Content-Encoding", "Cache-Control", "DPoP", "X-Old", "x", "Z9-!#$%&'*+.^`|~",
    ]
    private static let values = [
        "", " ", "a", "  a  ", "\ta b\t", "trailers", "100-continue", "something-else", "5", "0", "close",
        "keep-alive, X-One", "x-user, Authorization",
        "a=1; key=2; b=3", "key=1", "a=1 ; key=2", " a=1,key=3 ; c=4", "cardea-placeholder-admits-nobody",
        "t=cardea%2dplaceholder-x; u=1",
        "for=1.2.3.4;host=h", "for=\"open", "1.2.3.4, 5.6.7.8", "https", "1.1 other, 1.0 (comment)",
        "Bearer \u{7E}\u{7E}", "websocket",
        "a\u{E9}b", "Mozilla/5.0 (X11)",
    ]

    mutating func request() -> [UInt8] {
        let target = one(of: Self.targets)
        var text =
            "\(target == "*" ? "OPTIONS" : one(of: Self.methods)) \(target) HTTP/1.\(happens(9, in: 10) ? 1 : 0)\r\n"
        if !happens(1, in: 20) {
            text += one(of: ["Host: api.example\r\n", "host:h:8080 \r\n", "HOST: [::1]:443\r\n"])
        }
        for _ in 0..<Int.random(in: 0..<12, using: &self) {
            text += "\(one(of: Self.names)):\(blank())\(one(of: Self.values))\r\n"
        }
        if happens(1, in: 4) { text += one(of: ["Content-Length: 12\r\n", "Transfer-Encoding: chunked\r\n"]) }
        return (text + "\r\n").unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    }

    private mutating func blank() -> String { one(of: ["", " ", " ", "\t", "   "]) }

    mutating func requestEdits() -> RequestEdits {
        var edits = RequestEdits()
        for name in ["authorization", "x-api-key", "x-two", "accept"] where happens(1, in: 3) {
            edits.drop.insert(FieldName(name)!)
        }
        for (name, value) in [("x-user", "me"), ("X-Set-By-Us", "  a b "), ("accept", ""), ("via", "other")]
        where happens(1, in: 4) {
            _ = edits.set(
                FieldName(name)!, spelled: happens(1, in: 2) ? nil : Array(name.uppercased().utf8),
                value: Array(value.utf8))
        }
        edits.userAgentMode = one(of: [.keep, .keep, .prepend, .replace])
        edits.userAgent = Array(one(of: ["Gate/1.0 ", "Gate/2", " "]).utf8)
        if happens(1, in: 3) { edits.host = Array("upstream.example:8443".utf8) }
        if happens(1, in: 3) { edits.stripPrefix = Array(one(of: ["/v1", "/v1/", "/a"]).utf8) }
        if happens(1, in: 3) { edits.targetPrefix = Array(one(of: ["/base", "/b/c"]).utf8) }
        if happens(1, in: 2) { edits.via = Array("gate".utf8) }
        if happens(1, in: 5) {
            edits.renamed = Array("x-old".utf8)
            edits.renamedTo = Array(one(of: ["X-New", "Authorization", "Te"]).utf8)
        }
        edits.place = one(of: [.header, .header, .query, .cookie])
        edits.placeName = Array("key".utf8)
        edits.dropsPlaceholders = happens(1, in: 4)
        return edits
    }

    mutating func credential(for place: CredentialPlace) -> [UInt8]? {
        guard happens(3, in: 4) else { return nil }
        guard place == .header else { return Array("key=secret%20one".utf8) }
        return Array(
            one(of: [
                "Authorization: Bearer abc\r\n", "X-Api-Key:  abc \r\n", "authorization: DPoP a\r\nDPoP: b\r\n",
                "X-Api-Key: \r\n",
                "Authorization: \(String(repeating: "x", count: 13_000))\r\n",
            ]).utf8)
    }

    mutating func hop() -> ForwardedHop {
        var hop = ForwardedHop()
        hop.address = Array(one(of: ["", "192.0.2.7", "2001:db8::1"]).utf8)
        hop.identifier = next()
        hop.isHidden = happens(1, in: 2)
        hop.isTrusted = happens(1, in: 2)
        hop.isSecure = happens(1, in: 2)
        hop.fields = one(of: [[], [.standard], [.legacy], [.standard, .legacy]])
        return hop
    }

    mutating func framing() -> BodyFraming {
        one(of: [.none, .length(0), .length(.random(in: 0...99_999, using: &self)), .chunked])
    }
}

// MARK: - Responses

extension DrawnHeads {
    private static let answerNames = [
        "Content-Type", "content-type", "Location", "Content-Location", "Set-Cookie", "set-cookie", "Server", "Date",
        "ETag", "Connection",
        "Keep-Alive", "Proxy-Authenticate", "Trailer", "Upgrade", "Via", "Cache-Control", "X-Powered-By",
        "X_Powered_By", "TE", "Host", "WWW-Authenticate",
    ]
    private static let answerValues = [
        "", " a  ", "text/plain", "http://up.example:8080/base/x", "/base/y", "//evil/", "http://other/",
        "sid=1; Path=/base; Domain=up.example; Secure",
        "ObSSOCookie=1; Path=/", "close, X-Powered-By", "folded\r\n value", "folded \r\n\t  twice\r\n  more",
        "\r\n late", "max-age=5", "a\u{E9}",
    ]

    mutating func response() -> [UInt8] {
        var text =
            "HTTP/1.1 \(one(of: [200, 204, 206, 301, 304, 401, 404, 500, 599, 103])) \(one(of: ["OK", "", "Not at all"]))\r\n"
        for _ in 0..<Int.random(in: 0..<10, using: &self) {
            text +=
                "\(one(of: Self.answerNames))\(happens(1, in: 10) ? " " : ""):\(blank())\(one(of: Self.answerValues))\r\n"
        }
        if happens(1, in: 2) { text += one(of: ["Content-Length: 12\r\n", "Transfer-Encoding: chunked\r\n"]) }
        return (text + "\r\n").unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    }

    mutating func responseEdits() -> ResponseEdits {
        var edits = ResponseEdits()
        if happens(1, in: 3) { edits.drop.insert(FieldName("server")!) }
        if happens(1, in: 3) { edits.dropCookies = PrefixSet([Array("ObSSO".utf8)]) }
        if happens(1, in: 3) { edits.drop.insert(FieldName("etag")!) }
        if happens(1, in: 2) { edits.via = Array("gate".utf8) }
        edits.keepsTrailer = happens(1, in: 2)
        edits.addresses.isOn = happens(2, in: 3)
        edits.addresses.host = Array("up.example".utf8)
        edits.addresses.port = 8080
        edits.addresses.inner = Array(one(of: ["", "/base"]).utf8)
        edits.addresses.outer = Array(one(of: ["", "/app"]).utf8)
        return edits
    }
}
