internal import Numbers

/// Where an issuer's endpoints are (RFC 8414 §2): written down, or read from metadata and checked.
struct OAuth2Endpoints: Sendable, Equatable {
    var token: IssuerURL
    var authorization: IssuerURL?
    var device: IssuerURL?
    var revocation: IssuerURL?
    var introspection: IssuerURL?
    var registration: IssuerURL?
    /// The issuer's name as the metadata spells it; nil where the endpoints are written down.
    var issuer: String?
    /// Answers of the authorization endpoint always say whose they are (RFC 9207 §3).
    var answersNameIssuer = false

    init(token: IssuerURL) { self.token = token }

    /// With what was written down where the metadata has nothing: some servers leave endpoints out of it that they have.
    func completed(by written: [(member: WritableKeyPath<OAuth2Endpoints, IssuerURL?>, url: IssuerURL?)])
        -> OAuth2Endpoints
    {
        var whole = self
        for (member, url) in written where whole[keyPath: member] == nil { whole[keyPath: member] = url }
        return whole
    }
}

/// Why a document that arrived is not the issuer's metadata.
struct OAuth2MetadataFault: Error, Equatable {
    var reason: String
    /// Whether another well-known URL may hold the right one.
    var mayBeElsewhere: Bool
}

/// Rules that decide which endpoints are believed.
struct OAuth2MetadataRules: Sendable {
    /// The configured issuer, character by character (RFC 8414 §3.3).
    var issuer: String
    var url: IssuerURL
    /// Whether an issuer without TLS may name endpoints without TLS beyond this machine (`network.allow_cleartext`).
    var allowsCleartext: Bool
    /// Client authentication by certificate goes to the aliases, where there are any (RFC 8705 §5).
    var prefersMutualTLS: Bool
}

// MARK: - Reading

extension OAuth2Endpoints {
    /// - Parameter isVerified: whether the document came over verified TLS, or from this machine.
    init(_ body: [UInt8], _ rules: OAuth2MetadataRules, isVerified: Bool) throws(OAuth2MetadataFault) {
        let object: AnswerObject
        do throws(AnswerObject.Fault) {
            object = try AnswerObject(body)
        } catch {
            throw OAuth2MetadataFault(reason: error.rawValue, mayBeElsewhere: true)
        }
        // OAM 12c nests the document.
        var nested: [String: String] = [:]
        if object["issuer"] == nil, case .object(let inner)? = object["openid-configuration"] { nested = inner }
        guard let issuer = object.string("issuer") ?? nested["issuer"] else {
            throw OAuth2MetadataFault(reason: "metadata without issuer", mayBeElsewhere: true)
        }
        guard issuer == rules.issuer else {
            throw OAuth2MetadataFault(
                reason: "metadata of another issuer; 'issuer' must be spelt as the server spells it",
                mayBeElsewhere: true)
        }
        var aliases: [String: String] = [:]
        if rules.prefersMutualTLS, case .object(let inner)? = object["mtls_endpoint_aliases"] { aliases = inner }
        func endpoint(_ name: String) throws(OAuth2MetadataFault) -> IssuerURL? {
            guard let text = aliases[name] ?? object.string(name) ?? nested[name] else { return nil }
            return try Self.checked(text, name, rules, isVerified: isVerified)
        }
        guard let token = try endpoint("token_endpoint") else {
            throw OAuth2MetadataFault(reason: "metadata without token_endpoint", mayBeElsewhere: false)
        }
        self.init(token: token)
        self.issuer = issuer
        if case .bool(true)? = object["authorization_response_iss_parameter_supported"] { answersNameIssuer = true }
        authorization = try endpoint("authorization_endpoint")
        device = try endpoint("device_authorization_endpoint")
        revocation = try endpoint("revocation_endpoint")
        introspection = try endpoint("introspection_endpoint")
        registration = try endpoint("registration_endpoint")
    }

    /// Our secrets go where this says, so what an issuer may name is bounded by how sure we are that it was the issuer.
    private static func checked(
        _ text: String, _ name: String, _ rules: OAuth2MetadataRules, isVerified: Bool
    ) throws(OAuth2MetadataFault) -> IssuerURL {
        guard let url = IssuerURL(text) else {
            throw OAuth2MetadataFault(reason: "\(name) is no URL", mayBeElsewhere: false)
        }
        // An issuer with TLS that names an endpoint without would have us show secrets on the wire, or to a service of this machine.
        if rules.url.isTLS, !url.isTLS {
            throw OAuth2MetadataFault(reason: "\(name) is not https:", mayBeElsewhere: false)
        }
        if !url.isTLS, !url.isLoopback, !rules.allowsCleartext {
            throw OAuth2MetadataFault(
                reason: "\(name) is in clear text; see network.allow_cleartext", mayBeElsewhere: false)
        }
        if !isVerified, url.origin != rules.url.origin {
            throw OAuth2MetadataFault(
                reason: "\(name) is elsewhere, and the metadata came over clear text", mayBeElsewhere: false)
        }
        return url
    }
}

extension IssuerURL {
    /// Whether the host is this machine by its name.
    var isLoopback: Bool {
        if host == "localhost" || host == "::1" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127"
            && parts.allSatisfy { ReceivedNumber($0)?.within(0...UInt8.max) != nil }
    }

    /// Where metadata may stand, in the order of RFC 8414 §5: between host and path, then, as OpenID has it, behind the path.
    var metadataURLs: [IssuerURL] {
        var path = path
        while path.hasSuffix("/") { path.removeLast() }
        let paths = [
            "/.well-known/oauth-authorization-server" + path, "/.well-known/openid-configuration" + path,
            path + "/.well-known/openid-configuration",
        ]
        var found: [IssuerURL] = []
        for path in paths {
            if let url = IssuerURL(origin + path), !found.contains(url) { found.append(url) }
        }
        return found
    }
}
