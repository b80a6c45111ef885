/// A property of the IDM Mobile SDK that means something to a gateway. Others have no counterpart.
enum SDKPropertyName: String, CaseIterable {
    case serverType = "AuthServerType"
    case applicationName = "ApplicationName"
    case mobileURL = "OAMMSURL"
    case mobileHost = "OAMMSHost"
    case mobilePort = "OAMMSPort"
    case mobileIsTLS = "OAMMSPortIsSSL"
    case serviceDomain = "OAMMSServiceDomain"
    case offlineAllowed = "OfflineAuthAllowed"
    case loginAttempts = "MaxLoginAttempts"
    case grant = "OAuthAuthZGrantType"
    case authorizationEndpoint = "OAuthAuthZEndpoint"
    case tokenEndpoint = "OAuthTokenEndpoint"
    case redirectEndpoint = "OAuthRedirectEndpoint"
    case clientID = "OAuthClientID"
    case clientSecret = "OAuthClientSecret"
    case scope = "OAuthScope"
    case serviceEndpoint = "OAMOAuthServiceEndpoint"
    case userJWT = "OAuthUserJWTAssertionValue"
    case userSAML = "OAuthUserSAML2UserAssertionValue"
    case clientJWT = "OAuthClientJWTAssertionValue"
    case domain = "IdentityDomainName"
    case domainInHeader = "IdentityDomainNameInHeader"
    case loginURL = "LoginURL"

    /// By its name in URLs, or by the name of its constant.
    init?(_ written: String) {
        let name = Self.plain(written)
        if let known = Self.constants[name] {
            self = known
        } else if let known = Self.allCases.first(where: { Self.plain($0.rawValue) == name }) {
            self = known
        } else {
            return nil
        }
    }

    /// Where the constant's name is another than the one in URLs. Documents spell some in two ways.
    private static let constants: [String: SDKPropertyName] = [
        "appname": .applicationName, "oauthauthorizationgrant": .grant, "oauthauthorizationgranttype": .grant,
        "oauthauthorizationendpoint": .authorizationEndpoint, "oauthoamserviceendpoint": .serviceEndpoint,
        "oauthassertionjwt": .userJWT, "oauthassertionsaml2": .userSAML, "oauthclientassertionjwt": .clientJWT,
        "oauthscopes": .scope,
    ]

    /// Letters and digits in lower case, without what constants begin with.
    static func plain(_ text: String) -> String {
        var text = text.split(separator: ".").last.map(String.init) ?? text
        if text.hasPrefix("OM_PROP_") { text.removeFirst(8) } else if text.hasPrefix("OM_") { text.removeFirst(3) }
        return text.lowercased().filter { $0.isLetter || $0.isNumber }
    }
}

/// Why a property that the SDK knows has no counterpart here; others are not known at all.
enum SDKPropertyReason {
    static func of(_ written: String) -> String {
        let name = SDKPropertyName.plain(written)
        for (prefix, reason) in reasons where name.hasPrefix(prefix) { return reason }
        return "not a property that this version knows"
    }

    private static let reasons = [
        ("crypto", "the store is sealed with AES-256-GCM whatever this says"),
        ("keychain", "the store's key decides who reads it; see store.key"),
        ("location", "a gateway has no place to tell"), ("autologin", "every login here is automatic"),
        ("remember", "a password is read from its file and not kept"),
        ("browser", "cardea login opens the browser, or prints the URL"),
        ("logout", "cardea logout ends a session by itself"),
        ("sessionactive", "sessions outlive a restart where there is a store"),
        ("presentclientidentity", "name the certificate in network.tls.certificate"),
        ("oauthclientassertionsaml2", "name a key instead: client_auth: private_key_jwt"),
        ("oauthclientsaml2", "name a key instead: client_auth: private_key_jwt"),
    ]
}
