import Testing

@testable import Configuration
@testable import Handshakes

/// Properties of the IDM Mobile SDK become the configuration that comes nearest, and nothing of them is dropped without a word.
@Suite struct SDKImportTests {
    static func made(_ lines: [String], upstream: String? = nil) throws -> SDKImport {
        try SDKImport(SDKProperties(bytes(lines.joined(separator: "\n"))), upstream: upstream)
    }

    private func fault(_ lines: [String]) -> String? {
        do throws(SDKProperties.Fault) {
            _ = try SDKImport(SDKProperties(bytes(lines.joined(separator: "\n"))))
            return nil
        } catch { return error.description }
    }

    static let oauth = [
        "AuthServerType = OAuth20Authentication", "OAuthClientID = c", "OAuthTokenEndpoint = https://i/t",
    ]
    static let mobile = [
        "AuthServerType = OAuth20Authentication", "OAuthClientID = c", "OAMOAuthServiceEndpoint = https://i/ms_oauth/",
    ]
    static let social = [
        "AuthServerType = OAMMSAuthentication", "OAMMSServiceDomain = Default", "ApplicationName = Bank-App",
    ]

    /// The properties, the handshake, and what stands in the file.
    static let kinds: [(lines: [String], handshake: String, parts: [String])] = [
        (
            social + ["OAMMSURL = https://m.example.com:14101/"], "oam_webgate",
            [
                "service: \"https://m.example.com:14101/oic_rest/rest/mobileoamauthentication\"",
                "service_domain: \"Default\"", "client_id: \"Bank-App\"", "\"bank-app\":", "user_agent_prefix:",
            ]
        ),
        (
            social + ["OAMMSHost = m.example.com", "OAMMSPort = 14100", "OAMMSPortIsSSL = false"], "oam_webgate",
            ["service: \"http://m.example.com:14100/oic_rest", "allow_cleartext: true"]
        ),
        (
            social + ["OAMMSHost = m.example.com", "OAMMSPort = 14101", "OAMMSPortIsSSL = YES"], "oam_webgate",
            ["service: \"https://m.example.com:14101/oic_rest"]
        ),
        (
            oauth + ["OAuthAuthZGrantType = OAuthResourceOwner", "OAuthScope = a.read, b"], "oauth2",
            ["grant: password", "client_auth: none", "username: \"CHANGE-ME\"", "scopes: [\"a.read\", \"b\"]"]
        ),
        (
            oauth + ["OAuthAuthZGrantType = OAuthClientCredentials", "OAuthClientSecret = s3cret"], "oauth2",
            ["grant: client_credentials", "client_secret: file:/run/secrets/client-secret"]
        ),
        (
            oauth + ["OAuthAuthZGrantType = assertion", "OAuthUserSAML2UserAssertionValue = PHg+"], "oauth2",
            ["grant: saml2_bearer", "assertion: file:/run/secrets/assertion"]
        ),
        (
            oauth + ["OAuthAuthZGrantType = assertion", "OAuthUserJWTAssertionValue = ey"], "oauth2",
            ["grant: jwt_bearer", "assertion: file:/run/secrets/assertion"]
        ),
        (
            oauth + [
                "OAuthAuthZGrantType = authorizationcode", "OAuthAuthZEndpoint = https://i/a",
                "OAuthRedirectEndpoint = http://127.0.0.1:7777/back",
            ], "oauth2",
            [
                "grant: authorization_code", "authorization_url: \"https://i/a\"",
                "redirect_uri: \"http://127.0.0.1:7777/back\"",
            ]
        ),
        (
            oauth + ["OAuthAuthZGrantType = resourceowner", "IdentityDomainName = d", "OAuthClientSecret = s"],
            "oam_oauth", ["dialect: sim", "identity_domain: \"d\"", "domain_mode: user_prefix"]
        ),
        (
            oauth + [
                "OAuthAuthZGrantType = resourceowner", "IdentityDomainName = d", "OAuthClientSecret = s",
                "IdentityDomainNameInHeader = true",
            ], "oam_oauth", ["domain_mode: header"]
        ),
        (
            mobile + ["OAuthAuthZGrantType = resourceowner"], "oam_oauth",
            ["dialect: 11g", "service_endpoint: \"https://i/ms_oauth\"", "client_type: mobile", "grant: password"]
        ),
        (
            mobile + ["OAuthAuthZGrantType = clientcredentials"], "oam_oauth",
            ["grant: client_credentials", "username: \"CHANGE-ME\""]
        ),
        (
            mobile + ["OAuthAuthZGrantType = assertion", "OAuthUserJWTAssertionValue = ey"], "oam_oauth",
            ["grant: jwt_bearer", "user_assertion: file:/run/secrets/user-assertion"]
        ),
        (mobile + ["OAuthAuthZGrantType = assertion"], "oam_oauth", ["grant: jwt_bearer", "username:"]),
        (
            mobile + ["OAuthAuthZGrantType = OAMCredential"], "oam_oauth",
            ["grant: oam_credentials", "experimental: true"]
        ),
        (
            ["AuthServerType = HTTPBasicAuthentication", "LoginURL = https://u.example.com/login?x"], "basic",
            ["to: \"https://u.example.com\"", "\"imported\":"]
        ),
        (
            ["AuthServerType = ClientCertAuthentication", "LoginURL = https://u.example.com/"], "client_certificate",
            ["to: \"https://u.example.com\"", "certificate: \"/etc/cardea/client.p12\""]
        ),
    ]

    @Test(arguments: kinds)
    func eachKindHasItsCounterpart(lines: [String], handshake: String, parts: [String]) throws {
        let made = try Self.made(lines)
        #expect(made.handshake == handshake)
        for part in parts { #expect(made.yaml.contains(part), "\(part) is not in\n\(made.yaml)") }
        #expect(made.left == [], "everything here has a counterpart")
        // No secret of the properties is copied.
        for secret in ["s3cret", "PHg+", "\"ey\""] { #expect(!made.yaml.contains(secret)) }
    }

    static let faults: [(lines: [String], fault: String)] = [
        (["OAuthClientID = c"], "AuthServerType is missing"),
        (["AuthServerType = CARPET"], "AuthServerType is of a kind that has no counterpart"),
        (social, "OAMMSURL is missing, or OAMMSHost and OAMMSPort"),
        (["AuthServerType = OAMMSAuthentication", "OAMMSURL = https://m"], "OAMMSServiceDomain is missing"),
        (social + ["OAMMSURL = ftp://m"], "the value of OAMMSURL is no http or https URL"),
        (
            social + ["OAMMSHost = m m", "OAMMSPort = 1"],
            "the value of OAMMSHost and OAMMSPort is no http or https URL"
        ),
        (["AuthServerType = OAuth20Authentication"], "OAuthClientID is missing"),
        (
            ["AuthServerType = OAuth20Authentication", "OAuthClientID = c"],
            "OAuthTokenEndpoint is missing, or OAMOAuthServiceEndpoint"
        ),
        (oauth, "OAuthAuthZGrantType is missing or unknown"),
        (
            oauth + ["OAuthAuthZGrantType = implicit"],
            "the implicit grant needs a browser for every token; ask for another grant"
        ),
        (
            oauth + ["OAuthAuthZGrantType = assertion"],
            "OAuthUserJWTAssertionValue is missing for the grant by assertion"
        ),
        (
            oauth + ["OAuthAuthZGrantType = oamcredentials"],
            "the OAM credential grant needs OAMOAuthServiceEndpoint"
        ),
        (oauth + ["OAuthAuthZGrantType = authorizationcode"], "OAuthAuthZEndpoint is missing"),
        (
            mobile + ["OAuthAuthZGrantType = authorizationcode"],
            "the authorization code grant of this server has no counterpart yet; ask for another grant"
        ),
        (oauth + ["OAuthScope = a", "OM_PROP_OAUTH_SCOPES = b"], "OAuthScope stands there under two names"),
        (
            oauth + ["OAuthAuthZGrantType = clientcredentials", "MaxLoginAttempts = 11"],
            "MaxLoginAttempts is no number from 1 to 10"
        ),
    ]

    @Test(arguments: faults)
    func whatCannotBecomeAConfigurationSaysWhy(lines: [String], fault: String) {
        #expect(self.fault(lines) == fault)
    }

    @Test func propertiesGiveNoConfigurationThatWouldNotLoad() {
        // A certificate proves nothing to a server that is spoken to in cleartext.
        let fault = fault(["AuthServerType = ClientCertAuthentication", "LoginURL = http://u.example.com/"])
        #expect(fault?.hasPrefix("the properties give no valid configuration: ") == true, "\(fault ?? "loads")")
    }

    @Test func whatHasNoCounterpartIsToldWithItsReason() throws {
        let made = try Self.made(
            Self.oauth + [
                "OAuthAuthZGrantType = clientcredentials", "OAuthClientSecret = s", "OAuthClientJWTAssertionValue = e",
                "OAuthRedirectEndpoint = app://x", "OAMMSPort = 1", "OM_PROP_CRYPTO_SCHEME = AES", "Flavour = mint",
            ])
        let reasons = Dictionary(uniqueKeysWithValues: made.left.map { ($0.name, $0.value) })
        #expect(
            reasons == [
                "OAuthClientJWTAssertionValue":
                    "an assertion that ends; name the key instead: client_auth: private_key_jwt",
                "OAuthRedirectEndpoint": "no browser takes part in this grant",
                "OAMMSPort": "does not go with this AuthServerType or grant",
                "OM_PROP_CRYPTO_SCHEME": "the store is sealed with AES-256-GCM whatever this says",
                "Flavour": "not a property that this version knows",
            ])
        for name in reasons.keys { #expect(made.yaml.contains("# \(name): no counterpart: ")) }
        #expect(!made.taken.contains { reasons[$0.name] != nil })
    }

    @Test(arguments: [("true", "auto"), ("0", "online")])
    func whatTheAppDecidedIsKept(offline: String, connectivity: String) throws {
        let made = try Self.made(
            Self.social + ["OAMMSURL = https://m", "OfflineAuthAllowed = \(offline)", "MaxLoginAttempts = 3"],
            upstream: "https://api.example.com")
        #expect(made.yaml.contains("login_attempts: 3\n") && made.yaml.contains("connectivity: \(connectivity)\n"))
        #expect(made.yaml.contains("to: \"https://api.example.com\"\n") && !made.open.contains { $0.name == "to" })
    }

    @Test func valuesAreTextAndNothingElse() throws {
        let made = try Self.made([
            "AuthServerType = OAMMSAuthentication", "OAMMSURL = https://m", #"OAMMSServiceDomain = a"b\c${HOME}"#,
            "ApplicationName = ---",
        ])
        #expect(made.yaml.contains(#"service_domain: "a\"b\\c$${HOME}""#))
        #expect(made.yaml.contains("\"imported\":"), "a name without a letter names nothing")
    }
}

/// A list of properties is read as documents and apps write it, and bounded.
@Suite struct SDKPropertiesTests {
    private func read(_ text: String) throws(SDKProperties.Fault) -> [String] {
        try SDKProperties(bytes(text)).all.map { "\($0.name)=\($0.value)" }
    }

    @Test func bothFormsSayTheSame() throws {
        let expected = ["AuthServerType=HTTPBasicAuthentication", "LoginURL=https://u/?a=b"]
        #expect(
            try read(
                " # remark\n// another\nAuthServerType = HTTPBasicAuthentication\r\nLoginURL ::= \"https://u/?a=b\"")
                == expected)
        #expect(
            try read("app://host?AuthServerType::=HTTPBasicAuthentication\n&LoginURL::=https%3A%2F%2Fu%2F%3Fa%3Db")
                == expected)
        #expect(SDKProperties.isURL("my-app+1.x://?a::=b"))
        for text in ["a://b", "1a://?", "://?", "\(String(repeating: "a", count: 65))://?", "a b://?", "a?b"] {
            #expect(!SDKProperties.isURL(text), "\(text)")
        }
    }

    static let faults: [(text: String, fault: String)] = [
        ("", "empty"), (" \n", "empty"), ("# remark", "no property in it"), ("app://x?", "no property in it"),
        ("a = 1\nb", "line 2 is not of the form name = value"),
        ("app://x?a=1", "a part of the URL is not of the form name::=value"),
        ("app://x?a::=%4", "a percent sign in the URL without two hexadecimal digits behind it"),
        ("app://x?a::=%FF", "a value of the URL is not UTF-8"), ("a = 1\na = 2", "a stands there twice"),
        (
            "= 1", "a property's name is empty, too long, or has other characters than letters, digits, _ and ()"
        ),
        ("app://x?a::=%07", "the value of a has a control character"),
        ("app://x?a::=%C2%85", "the value of a has a control character"),
        ("a = \(String(repeating: "x", count: 4097))", "the value of a is longer than 4096 octets"),
        ((0...256).map { "a\($0) = 1" }.joined(separator: "\n"), "more than 256 properties"),
        (String(repeating: "#", count: SDKProperties.largest + 1), "larger than 64 KiB"),
    ]

    @Test(arguments: faults)
    func whatIsNoListSaysWhy(text: String, fault: String) {
        #expect(throws: SDKProperties.Fault(fault)) { try SDKProperties(bytes(text)) }
    }

    @Test func boundsAreTheLastThatPass() throws {
        #expect(try read("a = \(String(repeating: "x", count: 4096))").count == 1)
        #expect(try read((1...256).map { "a\($0) = 1" }.joined(separator: "\n")).count == 256)
        let name = String(repeating: "n", count: 128)
        #expect(try read("\(name) = 1") == ["\(name)=1"])
        #expect(throws: SDKProperties.Fault.self) { try SDKProperties(bytes("n\(name) = 1")) }
    }

    @Test func otherOctetsThanTextAreRefused() {
        #expect(throws: SDKProperties.Fault("not UTF-8")) { try SDKProperties([0x61, 0x3D, 0xFF]) }
    }

    @Test func aFileThatIsNotThereSaysSo() throws {
        let fault = #expect(throws: SDKProperties.Fault.self) { try SDKProperties(file: "/nonexistent/properties") }
        #expect(fault?.description.isEmpty == false)
    }

    /// Documents spell names as constants of the SDK's platforms, too.
    @Test(arguments: [
        ("OM_PROP_OAUTH_AUTHORIZATION_GRANT_TYPE", SDKPropertyName.grant), ("OM_PROP_APPNAME", .applicationName),
        ("oracle.idm.OM_OAUTH_SCOPES", .scope), ("AuthServerType", .serverType), ("oam_ms_url", .mobileURL),
    ])
    func aNameIsKnownInItsSpellings(written: String, name: SDKPropertyName) {
        #expect(SDKPropertyName(written) == name)
        #expect(SDKPropertyName(written + "2") == nil)
    }
}
