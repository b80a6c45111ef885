import Testing

@testable import Configuration

/// Addresses, hosts and paths that are refused say why, and those beside them are taken.
@Suite struct AddressRefusalTests {
    private static let name = "must have a host name of letters, digits, '-' and '.'"
    private static let port = "must have a port from 1 to 65535"
    private static let unix = "must have an absolute path after unix:"
    private static let segments = "must not have '//', '.' or '..' segments, or an encoded slash"
    private static let visible = "must be of visible ASCII characters, without spaces and '\\'"
    private static let four = "must have an IPv4 address of four decimal numbers"
    private static let fragment = "must not have a fragment ('#')"
    private static let scheme = "must be a URL that starts with http: or https://"
    private static let user = "must not have a user or password in the URL; credentials go into an identity"
    private static let bracket = "must have an IPv6 address between '[' and ']'"
    private static let brackets = "must have an IPv6 address in brackets: [::1]:8080"
    private static let listen = "must be an IP address with a port (127.0.0.1:8080) or unix:/path"
    private static let block = "must be an address block such as 10.0.0.0/8"
    private static let below = "must be a path below the service"
    private static let slash = "must be a path that starts with '/'"
    private static let whole = "may have '*' only as its whole first label: *.example.com"
    private static let once = "must have '{token}' exactly once"
    private static let number = "must have nothing but a database's number behind the host"

    private static func needsAddress(_ port: String) -> String {
        "must name the address to listen on: 127.0.0.1:\(port) for this machine, 0.0.0.0:\(port) for all"
    }

    static let texts: [(form: TextForm, text: String, reason: String?)] = [
        (.httpURL, "h", scheme), (.httpURL, "ftp://h", scheme), (.httpURL, "redis://h", scheme),
        (.httpURL, "://h", scheme), (.httpURL, "http:/h", scheme), (.httpURL, "HTTP://h", nil),
        (.httpURL, "http://h#", fragment), (.httpURL, "http://h/?a#b", fragment), (.httpURL, "http://u@h", user),
        (.httpURL, "http://u:p@h/", user), (.httpURL, "http://h/@", nil), (.httpURL, "http://h?@", nil),
        (.httpURL, "http://", name), (.httpURL, "http:///", name), (.httpURL, "http://h:", port),
        (.httpURL, "http://h:0", port), (.httpURL, "http://h:1", nil), (.httpURL, "http://h:65535", nil),
        (.httpURL, "http://h:65536", port), (.httpURL, "http://h:-1", port),
        (.httpURL, "http://[::1", "has a '[' without ']'"),
        (.httpURL, "http://[::1]", nil), (.httpURL, "http://[::1]:9", nil),
        (.httpURL, "http://[::1]9", "has text after ']'"),
        (.httpURL, "http://[::1]:", port), (.httpURL, "http://[1.2.3.4]", bracket), (.httpURL, "http://[a]", bracket),
        (.httpURL, "http://[]", bracket), (.httpURL, "http://::1", brackets), (.httpURL, "http://a:1:2", brackets),
        (.upstream, "http://h?", "must not have a query ('?')"), (.upstream, "http://h/a/", nil),
        (.upstream, "http://h/a//b", segments), (.upstream, "http://h/../b", segments),
        (.upstream, "rediss://h", scheme),
        // Hosts.
        (.hostName, ".", name), (.hostName, "..", name), (.hostName, "a..b", name), (.hostName, "a.", nil),
        (.hostName, "a..", name), (.hostName, ".a", name), (.hostName, "-a", name), (.hostName, "a-", name),
        (.hostName, "a.-b", name), (.hostName, "a-.b", name), (.hostName, "a-b_c", nil), (.hostName, "é", name),
        (.hostName, "1.2.3.4", nil), (.hostName, "1.2.3", four), (.hostName, "1.2.3.4.5", four),
        (.hostName, "0177.0.0.1", four), (.hostName, "256.0.0.1", four), (.hostName, "1.2.3.0x4", four),
        (.hostName, "0x7f000001", four), (.hostName, "1", four), (.hostName, "a.1", four), (.hostName, "1.a", nil),
        (.hostName, "a.1b", nil), (.hostName, "a.b0x", nil), (.hostName, "1.2.3.4.", nil),
        (.hostPattern, "*.a", nil), (.hostPattern, "*.", name), (.hostPattern, "*", whole), (.hostPattern, "*a", whole),
        (.hostPattern, "a.*", whole), (.hostPattern, "*.*.a", name), (.hostPattern, "[::1]", nil),
        (.hostPattern, "::1", "must be a host name without a port"),
        (.hostPattern, "h:1", "must be a host name without a port"),
        (.hostPattern, "[::1", "must be a host name without a port"),
        (.hostPattern, "[a]", name),
        (.hostHeader, "caller", nil), (.hostHeader, "h", nil), (.hostHeader, "h:0", port), (.hostHeader, "[::1]", nil),
        // Listening and connecting.
        (.listenAddress, ":80", needsAddress("8080")), (.listenAddress, "*:80", needsAddress("8080")),
        (.listenAddress, "80", needsAddress("80")), (.listenAddress, "0", needsAddress("0")),
        (.listenAddress, "65535", needsAddress("65535")), (.listenAddress, "65536", four),
        (
            .listenAddress, "http://127.0.0.1:1",
            "must be an address and a port alone, without a scheme and a path: 127.0.0.1:8080"
        ),
        (.listenAddress, "h:80", listen), (.listenAddress, "localhost", "needs a port: host:8080"),
        (.listenAddress, "unix:", unix),
        (.listenAddress, "unix:a", unix), (.listenAddress, "unix:/", unix), (.listenAddress, "unix:/a", nil),
        (
            .listenAddress, "unix:/" + String(repeating: "a", count: 107),
            "must have a path of at most 107 bytes after unix:"
        ),
        (.listenAddress, "unix:/a\nb", "must not have control characters or line breaks"),
        (.listen, "127.0.0.1", "needs a port: 127.0.0.1:8080"), (.listen, "127.0.0.1:1", nil), (.listen, "front", nil),
        (.listen, "a/b", name), (.listen, "", name), (.listen, "::1", needsAddress("8080")), (.listen, "80", nil),
        (.endpoint, "h:80", nil), (.endpoint, "h", "needs a port: host:8080"), (.endpoint, "[::1]:80", nil),
        (.endpoint, "unix:/a", nil), (.endpoint, "unix:a", unix),
        (.ipAddress, "h", "must be an IP address"), (.ipAddress, "::1", nil),
        // Blocks.
        (.network, "10.0.0.0/0", "has bits set beyond its 0; write the block's first address"),
        (.network, "0.0.0.0/0", nil),
        (.network, "0.0.0.0/32", nil), (.network, "1.2.3.4/32", nil), (.network, "1.2.3.4/31", nil),
        (.network, "1.2.3.5/31", "has bits set beyond its 31; write the block's first address"),
        (.network, "128.0.0.0/1", nil), (.network, "::/0", nil), (.network, "::1/128", nil),
        (.network, "::1/127", "has bits set beyond its 127; write the block's first address"),
        (.network, "8000::/1", nil),
        (.network, "2001:db8:0:1::/64", nil),
        (.network, "2001:db8:0:1::/63", "has bits set beyond its 63; write the block's first address"),
        (.network, "2001:db8:0:0:8000::/65", nil),
        (.network, "2001:db8:0:0:8000::/64", "has bits set beyond its 64; write the block's first address"),
        (.network, "10.0.0.0/8/8", block), (.network, "h/8", block), (.network, "/8", block), (.network, "", block),
        (.network, "10.0.0.0/", "must have from 0 to 32 bits after '/'"),
        (.network, "10.0.0.0/-1", "must have from 0 to 32 bits after '/'"),
        (.network, "::ffff:10.0.0.1", "must be written as IPv4"),
        // Paths.
        (.pathPattern, "a", "must start with '/'"),
        (.pathPattern, "/*", "takes no '*': a path that ends in '/' is a prefix"),
        (.pathPattern, "/", nil), (.pathPattern, "/a/", nil), (.pathPattern, "//", segments),
        (.pathPattern, "/.", segments),
        (.pathPattern, "/..", segments), (.pathPattern, "/a/./b", segments), (.pathPattern, "/...", nil),
        (.pathPattern, "/.a", nil), (.pathPattern, "/a..", nil), (.pathPattern, "/%2e", segments),
        (.pathPattern, "/.%2E", segments), (.pathPattern, "/%2E%2e/a", segments), (.pathPattern, "/%2f", segments),
        (.pathPattern, "/a%2Fb", segments), (.pathPattern, "/%5c", segments), (.pathPattern, "/%5Ca", segments),
        (.pathPattern, "/%00", segments), (.pathPattern, "/%20", nil), (.pathPattern, "/%2", nil),
        (.servicePath, "/", below), (.servicePath, "//a", below), (.servicePath, "http://h", below),
        (.servicePath, "a#b", below), (.servicePath, "a?b", below), (.servicePath, "a/../b", segments),
        (.servicePath, "..", segments), (.servicePath, "a//b", segments), (.servicePath, "a b", visible),
        (.servicePath, "a:b", nil), (.servicePathOrOff, "off/..", segments),
        (.absolutePath, "a", slash), (.absolutePath, "/a#", slash), (.absolutePath, "/a b", visible),
        (.absolutePath, "/a//b", segments), (.absolutePath, "/a/../b?c", segments), (.absolutePath, "/a?b=//..", nil),
        (.absolutePath, "/a?b/../c", nil), (.path, "file:", "must be a file's path"),
        (.path, "a\nb", "must not have control characters or line breaks"),
        (.authority, "system", nil), (.authority, "file:", "must be a file's path"),
        // Words.
        (.template, "a", once), (.template, "{token}{token}", once), (.template, "{token}", nil),
        (.template, "Bearer {token}", nil),
        (.template, "{token}\n", "must be a header value of printable ASCII characters"),
        (.method, "get", "must be in capitals: GET"), (.method, "Get", "must be in capitals: GET"),
        (.method, "GET", nil),
        (.method, "getx", nil), (.method, "a b", "must be a method such as GET"),
        (.headerName, "a b", "must be a header name"),
        (.scope, "a b", "must be one scope, without spaces; several are a list"),
        (.userAgent, "é", "must be a header value of printable ASCII characters"),
        (.proxy, "off", nil), (.proxy, "false", nil), (.proxy, "no", nil), (.proxy, "on", scheme),
        (.proxy, "http://p:1", nil),
        // Redis.
        (.redisURL, "redis://h", nil), (.redisURL, "redis://h/", nil), (.redisURL, "redis://h/0", nil),
        (.redisURL, "redis://h/65535", nil), (.redisURL, "redis://h/-1", number), (.redisURL, "redis://h/a", number),
        (.redisURL, "redis://h?", number),
        (.redisURL, "http://h", "must be a URL that starts with rediss: or redis://"),
        (.redisURL, "unix:", "must have an absolute path after unix:"),
    ]

    @Test(arguments: texts)
    func aTextIsTakenOrToldWhyNot(form: TextForm, text: String, reason: String?) {
        #expect(form.fault(text)?.reason == reason)
    }

    @Test(arguments: [
        "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "PROPFIND", "PROPPATCH",
        "MKCOL",
        "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "SEARCH",
    ])
    func aKnownMethodIsInCapitals(method: String) {
        #expect(TextForm.method.fault(method) == nil)
        #expect(TextForm.method.fault(method.lowercased()) != nil)
    }
}
