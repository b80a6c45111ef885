internal import Numbers
internal import Octets

/// Reads the addresses and patterns of the file. No message repeats the text: it may hold a password.
enum AddressParser {
    // MARK: - Origins and URLs

    static func url(_ text: String, schemes: [Origin.Scheme]) throws(TextFault) -> ServiceURL {
        let names = schemes.map { "\($0.rawValue):" }.joined(separator: " or ")
        guard let colon = text.firstRange(of: "://"),
            let scheme = Origin.Scheme(rawValue: text[..<colon.lowerBound].lowercased()), schemes.contains(scheme)
        else { throw TextFault("must be a URL that starts with \(names)//") }
        let rest = text[colon.upperBound...]
        guard rest.utf8.count <= 4096, rest.utf8.allSatisfy({ (0x21...0x7e).contains($0) && $0 != 0x5c }) else {
            throw TextFault("must be a URL of visible ASCII characters without spaces and '\\'")
        }
        guard !rest.contains("#") else { throw TextFault("must not have a fragment ('#')") }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        guard !authority.contains("@") else {
            throw TextFault("must not have a user or password in the URL; credentials go into an identity")
        }
        let tail = rest.dropFirst(authority.count)
        let (host, port) = try hostAndPort(String(authority), defaultPort: scheme.defaultPort)
        let path = tail.prefix { $0 != "?" }
        let query = tail.dropFirst(path.count)
        return ServiceURL(
            origin: Origin(scheme: scheme, host: host, port: port), path: path.isEmpty ? "/" : String(path),
            query: query.isEmpty ? nil : String(query.dropFirst()))
    }

    static func upstream(_ text: String) throws(TextFault) -> Upstream {
        let url = try url(text, schemes: [.http, .https])
        guard url.query == nil else { throw TextFault("must not have a query ('?')") }
        try requireCleanPath(url.path)
        var prefix = Substring(url.path)
        if prefix.hasSuffix("/") { prefix.removeLast() }
        return Upstream(origin: url.origin, pathPrefix: String(prefix), addresses: [])
    }

    private static func hostAndPort(_ text: String, defaultPort: UInt16?) throws(TextFault) -> (String, UInt16) {
        var name = Substring(text)
        var digits: Substring?
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { throw TextFault("has a '[' without ']'") }
            name = text[text.index(after: text.startIndex)..<end]
            guard let address = IPAddress(String(name)), name.contains(":") else {
                throw TextFault("must have an IPv6 address between '[' and ']'")
            }
            let after = text[text.index(after: end)...]
            guard after.isEmpty || after.hasPrefix(":") else { throw TextFault("has text after ']'") }
            if !after.isEmpty { digits = after.dropFirst() }
            return (address.description, try port(digits, defaultPort: defaultPort))
        }
        if let colon = text.lastIndex(of: ":") {
            name = text[..<colon]
            digits = text[text.index(after: colon)...]
            guard !name.contains(":") else { throw TextFault("must have an IPv6 address in brackets: [::1]:8080") }
        }
        return (try host(String(name)), try port(digits, defaultPort: defaultPort))
    }

    private static func port(_ digits: Substring?, defaultPort: UInt16?) throws(TextFault) -> UInt16 {
        guard let digits else {
            guard let defaultPort else { throw TextFault("needs a port: host:8080") }
            return defaultPort
        }
        guard let port = ReceivedNumber(digits)?.within(1...UInt16.max) else {
            throw TextFault("must have a port from 1 to 65535")
        }
        return port
    }

    /// Lower case, a trailing dot dropped: `example.com.` and `example.com` are one origin.
    static func host(_ text: String) throws(TextFault) -> String {
        var name = text.lowercased()
        if name.hasSuffix(".") { name.removeLast() }
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        let isName =
            !name.isEmpty && name.utf8.count <= 253
            && labels.allSatisfy { label in
                !label.isEmpty && label.utf8.count <= 63 && label.first != "-" && label.last != "-"
                    && label.utf8.allSatisfy { $0.isLetterOrDigit || $0 == 0x2d || $0 == 0x5f }
            }
        guard isName else { throw TextFault("must have a host name of letters, digits, '-' and '.'") }
        // `1.2.3` or `0177.0.0.1` would reach an address that the file does not show.
        if let last = labels.last, last.utf8.allSatisfy(\.isDigit) || last.hasPrefix("0x") {
            guard let address = IPAddress(name) else {
                throw TextFault("must have an IPv4 address of four decimal numbers")
            }
            return address.description
        }
        return name
    }

    // MARK: - Listening and connecting

    enum Listen {
        case address(ListenAddress)
        case name(String)
    }

    static func listen(_ text: String) throws(TextFault) -> Listen {
        if text.contains(":") || text.contains("/") || text.isEmpty { return .address(try listenAddress(text)) }
        if IPAddress(text) != nil { throw TextFault("needs a port: \(text):8080") }
        try requireName(text)
        return .name(text)
    }

    /// A port alone, of which nobody knows on which address.
    static func isPort(_ text: String) -> Bool {
        ReceivedNumber(text)?.within(0...UInt16.max) != nil
    }

    static func listenAddress(_ text: String) throws(TextFault) -> ListenAddress {
        if text.hasPrefix("unix:") { return .unix(path: try unixPath(text)) }
        guard !text.hasPrefix(":"), !text.hasPrefix("*"), !isPort(text) else {
            let port = isPort(text) ? text : "8080"
            throw TextFault(
                "must name the address to listen on: 127.0.0.1:\(port) for this machine, 0.0.0.0:\(port) for all")
        }
        guard !text.contains("://") else {
            throw TextFault("must be an address and a port alone, without a scheme and a path: 127.0.0.1:8080")
        }
        let (host, port) = try hostAndPort(text, defaultPort: nil)
        if host == "localhost" { return .tcp(IPAddress(v4: 0x7f00_0001), port: port) }
        guard let address = IPAddress(host) else {
            throw TextFault("must be an IP address with a port (127.0.0.1:8080) or unix:/path")
        }
        return .tcp(address, port: port)
    }

    static func endpoint(_ text: String) throws(TextFault) -> Endpoint {
        if text.hasPrefix("unix:") { return .unix(path: try unixPath(text)) }
        let (host, port) = try hostAndPort(text, defaultPort: nil)
        return IPAddress(host).map { .address($0, port: port) } ?? .host(host, port: port)
    }

    private static func unixPath(_ text: String) throws(TextFault) -> String {
        let path = String(text.dropFirst("unix:".count))
        guard path.hasPrefix("/"), path.count > 1 else { throw TextFault("must have an absolute path after unix:") }
        // sun_path has 108 bytes with its NUL.
        guard path.utf8.count <= 107 else { throw TextFault("must have a path of at most 107 bytes after unix:") }
        try requireLine(path)
        return path
    }

    static func ipAddress(_ text: String) throws(TextFault) -> IPAddress {
        guard let address = IPAddress(text) else { throw TextFault("must be an IP address") }
        return address
    }

    /// An address without `/bits` is the block of that address alone.
    static func network(_ text: String) throws(TextFault) -> Callers.Network {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let first = parts.first, let address = IPAddress(String(first)) else {
            throw TextFault("must be an address block such as 10.0.0.0/8")
        }
        // A mapped address would silently change the meaning of its bits.
        guard address.family == .v6 || !first.contains(":") else { throw TextFault("must be written as IPv4") }
        let width = address.family == .v4 ? 32 : 128
        guard parts.count == 2 else { return Callers.Network(address: address, prefixLength: width) }
        guard let bits = try? Units.integer(String(parts[1]), in: 0...width) else {
            throw TextFault("must have from 0 to \(width) bits after '/'")
        }
        let block = Callers.Network(address: address, prefixLength: bits)
        let value = UInt128(address.high) << 64 | UInt128(address.low)
        guard value.trailingZeroBitCount >= width - bits else {
            throw TextFault("has bits set beyond its \(bits); write the block's first address")
        }
        return block
    }

    // MARK: - Patterns

    static func hostPattern(_ text: String) throws(TextFault) -> Match.Host {
        if text.hasPrefix("*.") { return .oneLabel("." + (try host(String(text.dropFirst(2))))) }
        guard !text.contains("*") else { throw TextFault("may have '*' only as its whole first label: *.example.com") }
        if text.hasPrefix("["), text.hasSuffix("]"), let address = IPAddress(String(text.dropFirst().dropLast())) {
            return .exact(address.description)
        }
        guard !text.contains(":") else { throw TextFault("must be a host name without a port") }
        return .exact(try host(text))
    }

    static func pathPattern(_ text: String) throws(TextFault) -> Match.Path {
        guard text.hasPrefix("/") else { throw TextFault("must start with '/'") }
        guard !text.contains("*") else { throw TextFault("takes no '*': a path that ends in '/' is a prefix") }
        guard !text.contains("?"), !text.contains("#") else { throw TextFault("must not have a query or fragment") }
        try requireVisible(text)
        try requireCleanPath(text)
        return text.hasSuffix("/") ? .prefix(text) : .exact(text)
    }

    static func hostHeader(_ text: String) throws(TextFault) -> Route.HostHeader {
        if text == "caller" { return .caller }
        let (name, port) = try hostAndPort(text, defaultPort: 0)
        let shown = name.contains(":") ? "[\(name)]" : name
        return .name(port == 0 ? shown : "\(shown):\(port)")
    }

    static func template(_ text: String) throws(TextFault) -> Injection.Template {
        try requireHeaderValue(text)
        let parts = text.split(separator: "{token}", omittingEmptySubsequences: false)
        guard parts.count == 2 else { throw TextFault("must have '{token}' exactly once") }
        return Injection.Template(prefix: String(parts[0]), suffix: String(parts[1]))
    }

    // MARK: - Files and paths

    static func path(_ text: String) throws(TextFault) -> String {
        let path = text.hasPrefix("file:") ? String(text.dropFirst(5)) : text
        guard !path.isEmpty, path.utf8.count < 4096 else { throw TextFault("must be a file's path") }
        try requireLine(path)
        return path
    }

    static func authority(_ text: String) throws(TextFault) -> ClientTLS.Authority {
        text == "system" ? .system : .file(try path(text))
    }

    static func servicePath(_ text: String) throws(TextFault) -> String {
        let path = text.hasPrefix("/") ? String(text.dropFirst()) : text
        guard !path.isEmpty, !path.contains("://"), !path.contains("#"), !path.contains("?"), !path.hasPrefix("/")
        else {
            throw TextFault("must be a path below the service")
        }
        try requireVisible(path)
        try requireCleanPath("/" + path)
        return path
    }

    static func requireAbsolutePath(_ text: String) throws(TextFault) {
        guard text.hasPrefix("/"), !text.contains("#") else { throw TextFault("must be a path that starts with '/'") }
        try requireVisible(text)
        try requireCleanPath(String(text.prefix { $0 != "?" }))
    }

    /// No dot segments and no empty ones, also percent-encoded: what is matched is what is forwarded.
    private static func requireCleanPath(_ path: String) throws(TextFault) {
        let plain = path.lowercased().replacing("%2e", with: ".")
        guard !plain.contains("//"), !plain.contains("%2f"), !plain.contains("%5c"), !plain.contains("%00"),
            !plain.split(separator: "/").contains(where: { $0 == "." || $0 == ".." })
        else { throw TextFault("must not have '//', '.' or '..' segments, or an encoded slash") }
    }

    // MARK: - Characters

    static func requireName(_ text: String) throws(TextFault) {
        let isName =
            (1...64).contains(text.utf8.count) && (text.utf8.first ?? 0).isLetterOrDigit
            && text.utf8.allSatisfy { $0.isLetterOrDigit || $0 == 0x2d || $0 == 0x5f || $0 == 0x2e }
        guard isName else {
            throw TextFault(
                "must be a name of at most 64 letters, digits, '.', '_' and '-', the first a letter or digit")
        }
    }

    static func headerName(_ text: String) throws(TextFault) -> String {
        try requireToken(text, "a header name")
        return text
    }

    /// A token of RFC 9110 §5.6.2, at most 256 bytes.
    static func requireToken(_ text: String, _ what: String) throws(TextFault) {
        let marks = "!#$%&'*+-.^_`|~".utf8
        guard (1...256).contains(text.utf8.count), text.utf8.allSatisfy({ $0.isLetterOrDigit || marks.contains($0) })
        else { throw TextFault("must be \(what)") }
    }

    /// Methods are case-sensitive (RFC 9110 §9.1): `get` would match no request of any caller.
    static func requireMethod(_ text: String) throws(TextFault) {
        try requireToken(text, "a method such as GET")
        let capitals = text.uppercased()
        guard text == capitals || !knownMethods.contains(capitals) else {
            throw TextFault("must be in capitals: \(capitals)")
        }
    }

    /// RFC 9110 §9, RFC 5789, RFC 4918 and RFC 3253.
    private static let knownMethods: Set<String> = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "PROPFIND", "PROPPATCH",
        "MKCOL",
        "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "SEARCH",
    ]

    static func requireHeaderValue(_ text: String) throws(TextFault) {
        guard text.utf8.count <= 4096, text.utf8.allSatisfy({ (0x20...0x7e).contains($0) || $0 == 0x09 }) else {
            throw TextFault("must be a header value of printable ASCII characters")
        }
    }

    /// RFC 6749 §3.3.
    static func requireScope(_ text: String) throws(TextFault) {
        let isScope =
            (1...1024).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x21...0x7e).contains($0) && $0 != 0x22 && $0 != 0x5c }
        guard isScope else { throw TextFault("must be one scope, without spaces; several are a list") }
    }

    static func requireLine(_ text: String) throws(TextFault) {
        guard !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            throw TextFault("must not have control characters or line breaks")
        }
    }

    private static func requireVisible(_ text: String) throws(TextFault) {
        guard text.utf8.count <= 4096, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) && $0 != 0x5c }) else {
            throw TextFault("must be of visible ASCII characters, without spaces and '\\'")
        }
    }
}

extension AddressParser {
    /// `redis://host:port/database`, `rediss://…`, or `unix:/path`.
    static func shared(_ text: String) throws(TextFault) -> (address: SharedStore.Address, database: Int) {
        if text.hasPrefix("unix:") { return (.unix(path: try unixPath(text)), 0) }
        let url = try url(text, schemes: [.rediss, .redis])
        let number = url.path.dropFirst()
        guard url.query == nil, let database = number.isEmpty ? 0 : ReceivedNumber(number)?.within(0...65_535)
        else { throw TextFault("must have nothing but a database's number behind the host") }
        return (.server(url.origin), database)
    }
}
