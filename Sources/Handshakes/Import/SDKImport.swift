public import Configuration
internal import Numbers
internal import Octets

/// A configuration that comes nearest to properties of the IDM Mobile SDK.
public struct SDKImport: Sendable {
    /// Checked: it loads without an error.
    public private(set) var yaml = ""
    /// The handshake's key.
    public private(set) var handshake = ""
    /// Property and key.
    public private(set) var taken: [NamedValue] = []
    /// Property, and why it has no counterpart.
    public private(set) var left: [NamedValue] = []
    /// Keys that no property speaks of, with what to write there.
    public private(set) var open: [NamedValue] = []

    private let properties: [(written: String, name: SDKPropertyName?, value: String)]
    private var block: [Line] = []
    private var token: [Line] = []
    private var scopes: [String] = []
    private var hasCleartext = false
    private var upstream: String?

    private struct Line {
        var key: String
        var value: String
        var remark: String?
    }

    /// - Parameters:
    ///   - name: of the identity; nil: by the application's name.
    ///   - upstream: what is protected; nil: as the properties say, or to be filled in.
    public init(
        _ properties: SDKProperties, name: String? = nil, listen: String = "127.0.0.1:8080", upstream: String? = nil
    ) throws(SDKProperties.Fault) {
        self.properties = properties.all.map { ($0.name, SDKPropertyName($0.name), $0.value) }
        self.upstream = upstream
        let known = self.properties.compactMap(\.name)
        if let twice = known.first(where: { name in known.count { $0 == name } > 1 }) {
            throw .init("\(twice.rawValue) stands there under two names")
        }
        try read()
        let name = name ?? Self.name(of: value(.applicationName) ?? value(.clientID))
        yaml = written(name: name, listen: listen)
        let errors = Configuration.load(.text(yaml), environment: { _ in nil }).errors
        guard errors.isEmpty else {
            let reasons = errors.prefix(3).map { $0.message }.joined(separator: "; ")
            throw .init("the properties give no valid configuration: \(reasons)")
        }
    }
}

// MARK: - What the properties mean

extension SDKImport {
    private mutating func read() throws(SDKProperties.Fault) {
        guard let type = value(.serverType) else { throw .init("AuthServerType is missing") }
        switch SDKPropertyName.plain(type) {
        case "oammsauthentication", "authserveroamms": try readMobileSocial()
        case let word where word.contains("oauth20"): try readOAuth()
        case let word where word.contains("httpbasic"): try readBasic()
        case let word where word.contains("clientcert"): try readCertificate()
        default: throw .init("AuthServerType is of a kind that has no counterpart")
        }
        note(.serverType, handshake)
        if let attempts = value(.loginAttempts) {
            guard let number = ReceivedNumber(attempts)?.within(1...10) else {
                throw .init("MaxLoginAttempts is no number from 1 to 10")
            }
            token.append(Line(key: "login_attempts", value: "\(number)"))
            note(.loginAttempts, "token.login_attempts")
        }
        if value(.offlineAllowed) != nil {
            token.append(Line(key: "connectivity", value: isTrue(.offlineAllowed) ? "auto" : "online"))
            note(.offlineAllowed, "token.connectivity")
        }
        if value(.applicationName) != nil, !taken.contains(where: { SDKPropertyName($0.name) == .applicationName }) {
            note(.applicationName, "the identity's name")
        }
        for property in properties where !taken.contains(where: { $0.name == property.written }) {
            let reason =
                switch property.name {
                case nil: SDKPropertyReason.of(property.written)
                case .clientJWT?: "an assertion that ends; name the key instead: client_auth: private_key_jwt"
                case .redirectEndpoint?, .authorizationEndpoint?: "no browser takes part in this grant"
                default: "does not go with this AuthServerType or grant"
                }
            left.append(NamedValue(name: property.written, value: reason))
        }
    }

    private mutating func readMobileSocial() throws(SDKProperties.Fault) {
        handshake = "oam_webgate"
        let base: String
        if value(.mobileURL) != nil {
            base = try url(.mobileURL)
        } else if let host = value(.mobileHost), let port = value(.mobilePort) {
            let isTLS = isTrue(.mobileIsTLS)
            base = try checked("\(isTLS ? "https" : "http")://\(host):\(port)", "OAMMSHost and OAMMSPort")
            for name in [SDKPropertyName.mobileHost, .mobilePort, .mobileIsTLS] { note(name, "service") }
        } else {
            throw .init("OAMMSURL is missing, or OAMMSHost and OAMMSPort")
        }
        note(.mobileURL, "service")
        let path = "/oic_rest/rest/mobileoamauthentication"
        block.append(
            Line(key: "service", value: Self.quoted(base + path), remark: "the path of a service with the usual name"))
        try take(.serviceDomain, "service_domain")
        try take(.applicationName, "client_id")
        fill("user_agent_prefix", "OIC-Agent", "the OAMAuthUserAgentPrefix of the WebGate, byte for byte")
        fillUser()
    }

    private mutating func readOAuth() throws(SDKProperties.Fault) {
        let grant = SDKPropertyName.plain(value(.grant) ?? "")
        let plain = grant.hasPrefix("oauth") ? String(grant.dropFirst(5)) : grant
        guard value(.clientID) != nil else { throw .init("OAuthClientID is missing") }
        if value(.serviceEndpoint) != nil {
            handshake = "oam_oauth"
            block.append(Line(key: "dialect", value: "11g"))
            block.append(Line(key: "service_endpoint", value: Self.quoted(try url(.serviceEndpoint))))
            note(.serviceEndpoint, "service_endpoint")
            block.append(Line(key: "client_type", value: "mobile"))
        } else {
            guard value(.tokenEndpoint) != nil else {
                throw .init("OAuthTokenEndpoint is missing, or OAMOAuthServiceEndpoint")
            }
            handshake = value(.domain) == nil ? "oauth2" : "oam_oauth"
            if value(.domain) != nil { block.append(Line(key: "dialect", value: "sim")) }
            block.append(Line(key: "token_url", value: Self.quoted(try url(.tokenEndpoint))))
            note(.tokenEndpoint, "token_url")
            if value(.domain) != nil {
                try take(.domain, "identity_domain")
                block.append(Line(key: "domain_mode", value: isTrue(.domainInHeader) ? "header" : "user_prefix"))
                note(.domainInHeader, "domain_mode")
            }
        }
        try take(.clientID, "client_id")
        if value(.serviceEndpoint) == nil {
            if value(.clientSecret) != nil {
                secret(.clientSecret, "client_secret")
            } else {
                block.append(Line(key: "client_auth", value: "none"))
            }
        }
        try readGrant(plain)
        scopes = (value(.scope) ?? "").split(whereSeparator: { $0 == "," || $0 == " " }).map(String.init)
        note(.scope, "scopes")
    }

    private mutating func readGrant(_ grant: String) throws(SDKProperties.Fault) {
        let isMobile = value(.serviceEndpoint) != nil
        note(.grant, "grant")
        switch grant {
        case "resourceowner":
            block.append(Line(key: "grant", value: "password"))
            fillUser()
        case "clientcredentials":
            block.append(Line(key: "grant", value: "client_credentials"))
            if isMobile { fillUser() }
        case "assertion" where value(.userSAML) != nil && handshake == "oauth2":
            block.append(Line(key: "grant", value: "saml2_bearer"))
            secret(.userSAML, "assertion")
        case "assertion":
            block.append(Line(key: "grant", value: "jwt_bearer"))
            if value(.userJWT) != nil {
                secret(.userJWT, handshake == "oauth2" ? "assertion" : "user_assertion")
            } else if !isMobile {
                throw .init("OAuthUserJWTAssertionValue is missing for the grant by assertion")
            }
            if isMobile { fillUser() }
        case "oamcredential", "oamcredentials":
            guard isMobile else { throw .init("the OAM credential grant needs OAMOAuthServiceEndpoint") }
            block.append(Line(key: "grant", value: "oam_credentials"))
            block.append(Line(key: "experimental", value: "true"))
            fillUser()
        case "authorizationcode" where handshake == "oauth2":
            block.append(Line(key: "grant", value: "authorization_code", remark: "a person logs in once: cardea login"))
            guard value(.authorizationEndpoint) != nil else { throw .init("OAuthAuthZEndpoint is missing") }
            block.append(Line(key: "authorization_url", value: Self.quoted(try url(.authorizationEndpoint))))
            note(.authorizationEndpoint, "authorization_url")
            if let text = value(.redirectEndpoint), (try? BlockReader.httpURL(text)) != nil {
                try take(.redirectEndpoint, "redirect_uri")
            }
        case "authorizationcode":
            throw .init("the authorization code grant of this server has no counterpart yet; ask for another grant")
        case "implicit": throw .init("the implicit grant needs a browser for every token; ask for another grant")
        default: throw .init("OAuthAuthZGrantType is missing or unknown")
        }
    }

    private mutating func readBasic() throws(SDKProperties.Fault) {
        handshake = "basic"
        try readLogin()
        fillUser()
    }

    private mutating func readCertificate() throws(SDKProperties.Fault) {
        handshake = "client_certificate"
        try readLogin()
        fill("certificate", "/etc/cardea/client.p12", "the certificate that the device has installed")
    }

    private mutating func readLogin() throws(SDKProperties.Fault) {
        guard value(.loginURL) != nil else { return }
        let login = try url(.loginURL)
        if upstream == nil, let parsed = try? BlockReader.httpURL(login) { upstream = "\(parsed.origin)" }
        note(.loginURL, "to")
        hasCleartext = false
    }
}

// MARK: - Values

extension SDKImport {
    private func value(_ name: SDKPropertyName) -> String? {
        properties.first { $0.name == name }.flatMap { $0.value.isEmpty ? nil : $0.value }
    }

    private func isTrue(_ name: SDKPropertyName) -> Bool {
        ["true", "yes", "1"].contains(value(name)?.lowercased() ?? "")
    }

    private mutating func note(_ name: SDKPropertyName, _ key: String) {
        for property in properties where property.name == name {
            taken.append(NamedValue(name: property.written, value: key))
        }
    }

    private mutating func take(_ name: SDKPropertyName, _ key: String) throws(SDKProperties.Fault) {
        guard let value = value(name) else { throw .init("\(name.rawValue) is missing") }
        block.append(Line(key: key, value: Self.quoted(value)))
        note(name, key)
    }

    private mutating func url(_ name: SDKPropertyName) throws(SDKProperties.Fault) -> String {
        try checked(value(name) ?? "", name.rawValue)
    }

    private mutating func checked(_ text: String, _ name: String) throws(SDKProperties.Fault) -> String {
        guard let url = try? BlockReader.httpURL(text) else {
            throw .init("the value of \(name) is no http or https URL")
        }
        if url.origin.scheme == .http { hasCleartext = true }
        var text = text
        while text.hasSuffix("/") { text.removeLast() }
        return text
    }

    /// Its value is not copied: it belongs into a file of its own.
    private mutating func secret(_ name: SDKPropertyName, _ key: String) {
        let file = "/run/secrets/\(key.replacing("_", with: "-"))"
        block.append(Line(key: key, value: "file:\(file)", remark: "the value of \(name.rawValue) goes into this file"))
        note(name, key)
        open.append(NamedValue(name: key, value: "the value of \(name.rawValue), into \(file)"))
    }

    private mutating func fill(_ key: String, _ value: String, _ what: String) {
        block.append(Line(key: key, value: Self.quoted(value), remark: "to fill in: \(what)"))
        open.append(NamedValue(name: key, value: what))
    }

    private mutating func fillUser() {
        fill("username", "CHANGE-ME", "the user, whom the app asked a person for")
        block.append(
            Line(key: "password", value: "file:/run/secrets/password", remark: "to fill in: the user's password"))
        open.append(NamedValue(name: "password", value: "the user's password, into /run/secrets/password"))
    }

    private static func name(of text: String?) -> String {
        let letters = (text ?? "").lowercased().utf8.map { byte -> UInt8 in
            byte.isLetterOrDigit ? byte : UInt8(ascii: "-")
        }
        let name = String(decoding: letters.drop { $0 == UInt8(ascii: "-") }.prefix(32), as: UTF8.self)
        return name.isEmpty || name == "none" ? "imported" : name
    }

    /// Nothing in it is a variable, an alias or a comment.
    private static func quoted(_ text: String) -> String {
        var result = "\""
        for character in text.unicodeScalars {
            switch character {
            case "\"", "\\": result += "\\\(character)"
            case "$": result += "$$"
            default: result.unicodeScalars.append(character)
            }
        }
        return result + "\""
    }
}

// MARK: - Writing

extension SDKImport {
    private mutating func written(name: String, listen: String) -> String {
        var text = "# Made from properties of the IDM Mobile SDK by cardea import.\n"
        for property in left { text += "# \(property.name): no counterpart: \(property.value)\n" }
        text += "identities:\n  \(Self.quoted(name)):\n    \(handshake):\n"
        text += block.map { Self.line($0, indent: 6) }.joined()
        if !scopes.isEmpty { text += "    scopes: [\(scopes.map(Self.quoted).joined(separator: ", "))]\n" }
        if !token.isEmpty { text += "    token:\n" + token.map { Self.line($0, indent: 6) }.joined() }
        if hasCleartext {
            text +=
                "    network:\n      allow_cleartext: true    # the properties name a server without TLS: secrets can be read on the way\n"
        }
        text += "routes:\n"
        text += "  - listen: \(Self.quoted(listen))\n"
        if let upstream {
            text += "    to: \(Self.quoted(upstream))\n"
        } else {
            text += "    to: \"https://upstream.example.com\"    # to fill in: what is protected\n"
            open.append(NamedValue(name: "to", value: "what is protected"))
        }
        text += "    use: \(Self.quoted(name))\n"
        text += "store:\n  path: /var/lib/cardea/tokens.db\n  key: file:/run/secrets/cardea-store-key    # to fill in\n"
        open.append(NamedValue(name: "store.key", value: "a key of 32 octets, into /run/secrets/cardea-store-key"))
        return text
    }

    private static func line(_ line: Line, indent: Int) -> String {
        let remark = line.remark.map { "    # \($0)" } ?? ""
        return String(repeating: " ", count: indent) + "\(line.key): \(line.value)\(remark)\n"
    }
}
