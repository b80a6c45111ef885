import FoundationEssentials

/// The command line of the lab.
struct Settings: Sendable {
    var listen = "127.0.0.1:9101"
    var plain = "127.0.0.1:0"
    var issuer = "127.0.0.1:14100"
    var control = "127.0.0.1:9199"
    var user = "svc-hr"
    var password = "lab-password-1"
    var clientID = "EdgeProxy"
    var oauthClientID = "billing+1"
    var clientSecret = "s:cret/ %é1"
    var apiKey = "lab-key-7f3a9c"
    var pin = "4711-lab-pin"
    var serviceDomain = "MobileServiceDomain"
    var userAgentPrefix = "OIC-Agent"
    var scheme = "http"
    var loginHost = "login.example.test"

    /// The OAuth client's id and secret, as Basic carries them.
    var client: String { "\(oauthClientID):\(clientSecret)" }

    static let usage = """
        usage: cardea-lab [--listen HOST:PORT] [--plain HOST:PORT] [--issuer HOST:PORT] [--control HOST:PORT]
                          [--password-file FILE] [--api-key-file FILE] [--pin-file FILE]
        Simulated protected systems on loopback; port 0 picks a free one. Prints one line of JSON with its addresses.

        """

    private static let flags: [String: any WritableKeyPath<Settings, String> & Sendable] = [
        "--listen": \.listen, "--plain": \.plain, "--issuer": \.issuer, "--control": \.control,
        "--password-file": \.password, "--api-key-file": \.apiKey, "--pin-file": \.pin,
    ]

    enum Mistake: Error { case unknown(String), missingValue(String), unreadable(String), help }

    init(arguments: [String]) throws(Mistake) {
        var rest = arguments[...]
        while let flag = rest.popFirst() {
            if flag == "--help" || flag == "-h" { throw .help }
            guard let setting = Settings.flags[flag] else { throw .unknown(flag) }
            guard let value = rest.popFirst() else { throw .missingValue(flag) }
            self[keyPath: setting] = flag.hasSuffix("-file") ? try Settings.secret(value) : value
        }
    }

    private static func secret(_ path: String) throws(Mistake) -> String {
        guard let data = try? Data(contentsOf: URL(filePath: path)), var text = String(validating: data, as: UTF8.self)
        else {
            throw .unreadable(path)
        }
        if text.hasSuffix("\n") { text.removeLast() }
        return text
    }

    /// Host and port of `text`; nil unless it is `a.b.c.d:port`.
    static func address(_ text: String) -> (host: String, port: UInt16)? {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            return nil
        }
        return (String(text[..<colon]), port)
    }
}
