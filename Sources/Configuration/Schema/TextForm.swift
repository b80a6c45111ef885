/// The forms of a single value that stays text in the model, or becomes an address.
package enum TextForm: String, Sendable {
    /// Anything but an empty value and control characters.
    case line = "a text"
    /// The same as `line`, also empty.
    case anyLine = "a text, which may be empty"
    /// A name of the user's own for an identity, a route or a listener.
    case name = "a name of letters, digits, '.', '_' and '-'"
    case headerName = "a header name"
    case headerValue = "a header value"
    case method = "a method such as GET"
    case scope = "a scope"
    case hostName = "a host name"
    case hostPattern = "a host name, or '*.' and a host name"
    case pathPattern = "a path: '/x/' for everything below, '/x' for exactly this"
    case hostHeader = "'caller' or a host name"
    /// An origin with an optional path prefix.
    case upstream = "an http: or https: origin with an optional path"
    case httpURL = "an http: or https: URL"
    case redisURL = "a redis: or rediss: URL, or unix:/path"
    /// An http: URL or `off`.
    case proxy = "an http: URL, or off"
    case listen = "an address such as 127.0.0.1:8080, unix:/path, or a listener's name"
    case listenAddress = "an address such as 127.0.0.1:8080, [::1]:8080 or unix:/path"
    case endpoint = "host:port or unix:/path"
    case network = "an address block such as 10.0.0.0/8"
    case ipAddress = "an IP address"
    /// A file's path.
    case path = "a file's path"
    /// The same as `path`, also with `file:` before it, or the word `system`.
    case authority = "'system' or a file's path"
    /// Relative to a service, without a slash at its start.
    case servicePath = "a path below the service"
    case servicePathOrOff = "a path below the service, or 'off'"
    case absolutePath = "a path that starts with '/'"
    case template = "a text with one '{token}'"
    /// A percentage or a duration.
    case refreshAhead = "a percentage such as 20%, or a duration such as 30s"
    /// Of requests, such as those that are traced.
    case share = "a percentage such as 1%, 0.05% or 100%"
    case userAgent = "the start of a User-Agent"
    /// A name inside a recipe.
    case word = "a name of letters, digits, '_' and '-'"
    /// A template of a recipe; what it names is checked where it stands.
    case recipe = "a text, with {names} in it"
    /// A JSON pointer.
    case pointer = "a JSON pointer such as /token"
    /// A regular expression.
    case pattern = "a regular expression with one group"
}

extension TextForm {
    /// Octets of a `recipe` text.
    package static let longestTemplate = 16 * 1024
}

/// Why a text does not have its form, or cannot be had.
package struct TextFault: Error, Equatable {
    /// Completes "'key' …", such as "must be an IP address".
    package var reason: String

    package init(_ reason: String) { self.reason = reason }
}

extension TextForm {
    /// Completes "expected …".
    package var expectation: String { rawValue }

    /// The text in the one spelling that counts for an identity's digest.
    package func canonical(_ text: String) throws(TextFault) -> String {
        switch self {
        case .line:
            guard !text.isEmpty else { throw TextFault("must not be empty") }
            try AddressParser.requireLine(text)
        case .anyLine: try AddressParser.requireLine(text)
        case .name: try AddressParser.requireName(text)
        case .headerName: return try AddressParser.headerName(text).lowercased()
        case .headerValue: try AddressParser.requireHeaderValue(text)
        case .method: try AddressParser.requireMethod(text)
        case .scope: try AddressParser.requireScope(text)
        case .hostName: return try AddressParser.host(text)
        case .hostPattern: _ = try AddressParser.hostPattern(text)
        case .pathPattern: _ = try AddressParser.pathPattern(text)
        case .hostHeader: _ = try AddressParser.hostHeader(text)
        case .upstream: _ = try AddressParser.upstream(text)
        case .httpURL:
            let url = try AddressParser.url(text, schemes: [.http, .https])
            return "\(url.origin)\(url.target)"
        case .proxy:
            guard !["off", "false", "no"].contains(text) else { return "off" }
            return try TextForm.httpURL.canonical(text)
        case .redisURL:
            _ = try AddressParser.shared(text)
        case .listen: _ = try AddressParser.listen(text)
        case .listenAddress: _ = try AddressParser.listenAddress(text)
        case .endpoint: return try AddressParser.endpoint(text).description
        case .network: return try AddressParser.network(text).description
        case .ipAddress: return try AddressParser.ipAddress(text).description
        case .path: _ = try AddressParser.path(text)
        case .authority: _ = try AddressParser.authority(text)
        case .servicePath: return try AddressParser.servicePath(text)
        case .servicePathOrOff: return text == "off" ? text : try AddressParser.servicePath(text)
        case .absolutePath: try AddressParser.requireAbsolutePath(text)
        case .template: _ = try AddressParser.template(text)
        case .refreshAhead: _ = try Units.refreshAhead(text)
        case .share: _ = try Units.share(text)
        case .userAgent:
            guard !text.isEmpty else { throw TextFault("must not be empty") }
            try AddressParser.requireHeaderValue(text)
        case .word:
            let isWord =
                (1...64).contains(text.utf8.count) && text.utf8.first.map { $0 >= 0x41 && $0 != 0x5F } == true
                && text.unicodeScalars.allSatisfy {
                    $0.isASCII && ($0.properties.isAlphabetic || "0123456789_-".unicodeScalars.contains($0))
                }
            guard isWord else { throw TextFault("must start with a letter and have only letters, digits, '_' and '-'") }
        case .recipe:
            guard text.utf8.count <= Self.longestTemplate else { throw TextFault("must be a text of at most 16 KiB") }
            guard !text.utf8.contains(0x7F) else { throw TextFault("must not have the control character DEL (0x7F)") }
        case .pointer: _ = try JSONPointer(text: text)
        case .pattern:
            do throws(Pattern.Fault) { _ = try Pattern(text) } catch { throw TextFault(error.reason) }
        }
        return text
    }
}
