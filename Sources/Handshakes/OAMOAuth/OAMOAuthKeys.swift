internal import Configuration

/// The keys of `oam_oauth`. No digest counts how the client proves itself, how a person is led to the server, and what becomes of a token.
enum OAMOAuthKeys {
    static let block = Block(
        name: "oam_oauth", description: "Oracle's dialects of OAuth 2.0.",
        keys: [
            KeySpec(
                "dialect", .words(OAMOAuthScheme.Dialect.self),
                "Which server: 11g (OAM 11.1.2 Mobile & Social), 12c (OAM 12c and 14c), sim (Oracle's shared identity manager v3.1), idcs (Identity Cloud Service, OCI identity domains).",
                required: true),
            KeySpec(
                "service_endpoint", .text(.httpURL),
                "11g: the OAuth service, such as https://oam.example.com/ms_oauth/oauth2/endpoints/oauthservice."),
            KeySpec(
                "token_path", .text(.servicePath),
                "11g: the token endpoint below service_endpoint, where the application profile does not name it.",
                default: "tokens"),
            KeySpec(
                "base_url", .text(.httpURL), "12c: the server, such as https://oam.example.com, without /oauth2/rest."),
            KeySpec(
                "token_url", .text(.httpURL),
                "sim, idcs: the token endpoint, such as https://tenant.identity.us.oraclecloud.com/oauth/tokens or https://idcs-0.identity.oraclecloud.com/oauth2/v1/token."
            ),
            KeySpec(
                "revocation_url", .text(.httpURL),
                "12c, sim, idcs: where refresh tokens are revoked at logout; without it they run out.", digest: .nothing
            ),
            KeySpec(
                "authorization_url", .text(.httpURL),
                "11g, 12c, idcs: where a person logs in with grant authorization_code; without it authorize below service_endpoint, /oauth2/rest/authz of base_url, authorize beside token_url.",
                digest: .nothing),
            OAuth2Keys.redirectURI,
            KeySpec(
                "login_parameters", .named(.line, .text(.anyLine)),
                "Further parameters of the authorization request; 12c gets the identity domain as domain by itself."),
            KeySpec(
                "introspection", .boolean,
                "11g, 12c, idcs: whether check --live asks the server about the token that it got: 11g by oracle_token_action=validate, 12c at token/info, idcs at introspection_url.",
                default: "false", digest: .nothing),
            KeySpec(
                "introspection_url", .text(.httpURL), "idcs: where to ask; without it introspect beside token_url.",
                digest: .nothing),
            KeySpec("identity_domain", .text(.headerValue), "12c, sim: the identity domain or tenant."),
            KeySpec(
                "domain_header", .text(.headerName),
                "The header that carries it; without it X-OAUTH-IDENTITY-DOMAIN-NAME for 12c, X-USER-IDENTITY-DOMAIN-NAME for sim."
            ),
            KeySpec(
                "domain_in", .words(OAMOAuthScheme.DomainIn.self),
                "12c: whether the header carries the domain, the query member identityDomain, or both."),
            KeySpec(
                "domain_mode", .words(OAMOAuthScheme.DomainMode.self),
                "sim: whether the header carries the domain, or it stands before the user's name with a dot, or it is not sent."
            ),
            KeySpec(
                "grant_case", .words(OAMOAuthScheme.GrantCase.self),
                "12c: grant types as in the RFC, or in OAM's capitals."),
            KeySpec(
                "grant", .words(OAMOAuthScheme.Grant.self),
                "How a token is had. authorization_code needs a person once: cardea login. jwt_bearer takes user_assertion, or makes one with key; oam_credentials is for 11g mobile clients, and experimental."
            ),
            KeySpec(
                "client_type", .words(OAMOAuthScheme.ClientType.self),
                "11g: web, a client with a secret; or mobile, which registers itself with the user's password."),
            KeySpec("client_id", .text(.line), "The client.", required: true),
            KeySpec("client_secret", .secret, "The client's secret."),
            KeySpec(
                "client_auth", .words(OAMOAuthScheme.ClientAuth.self),
                "How the client proves itself; issued_jwt: with an assertion that the server gives for the secret (sim, idcs). A mobile client always uses the one of its registration."
            ),
            KeySpec(
                "key", .oneOrMore(.secret),
                "The key that signs assertions: PEM, PKCS#8, PKCS#12 or JWK; of several the first that the server accepts.",
                digest: .nothing),
            OAuth2Keys.keyPassword,
            KeySpec("assertion", .block(assertion), "How assertions are made and signed.", digest: .nothing),
            KeySpec(
                "user_claims", .named(.line, .text(.anyLine)),
                "Further claims of the user assertion that jwt_bearer makes."),
            KeySpec(
                "user_assertion", .secret,
                "A user assertion that somebody else has signed, for jwt_bearer; read anew for every grant.",
                digest: .place),
            KeySpec("username", .text(.line), "The user of grants password and jwt_bearer, and of a registration."),
            KeySpec("password", .secret, "The user's password."),
            OAuth2Keys.refreshToken,
            KeySpec(
                "allowed_scopes", .list(.text(.scope)), "The only scopes that a challenge may add.", digest: .nothing),
            KeySpec("extra", .named(.line, .text(.anyLine)), "Further members of the token request."),
            KeySpec("headers", .named(.headerName, .text(.headerValue)), "Further headers of the token request."),
            KeySpec(
                "resource_token_prefix", .text(.headerValue),
                "Put before the token in Authorization as it stands; some 11g resources want it bare: \"\".",
                default: "Bearer ", digest: .nothing),
            KeySpec(
                "fetch_app_profile", .boolean,
                "11g mobile: whether the application profile is asked for the token endpoint and for server-side single sign-on.",
                default: "true"),
            KeySpec(
                "device_profile", .named(.line, .text(.anyLine)),
                "11g mobile: claims of the device, with or without their prefix oracle:idm:claims:client:."),
            KeySpec(
                "requested_assertions", .block(requested), "11g mobile: what oracle_requested_assertions says."),
            KeySpec(
                "server_device_store", .words(OAMOAuthScheme.DeviceStore.self),
                "11g mobile: whether the server keeps the user assertion; auto: as the application profile says."),
            KeySpec(
                "server_device_store_param", .text(.line), "11g mobile: the member that says so.",
                default: "oracle_use_server_device_store"),
            KeySpec(
                "delete_tokens", .boolean, "11g: whether logout deletes access and refresh token on the server.",
                default: "true", digest: .nothing),
            KeySpec(
                "experimental", .boolean, "Allows grant oam_credentials, whose wire form is not documented.",
                default: "false", digest: .nothing),
        ])

    private static let assertion = Block(
        name: "oam_assertion", description: "How assertions are made and signed.",
        keys: [
            KeySpec(
                "aud", .text(.line),
                "The audience; without it oauth.idm.oracle.com for sim, https://identity.oraclecloud.com/ for idcs, else the token endpoint."
            ),
            KeySpec("kid", .text(.line), "The key's name in the header; without it that of the JWK."),
            KeySpec("x5t", .boolean, "Whether the header names the certificate's SHA-1.", default: "false"),
            KeySpec(
                "certificate", .text(.path), "PEM file of the certificate of x5t; without it the one beside the key."),
            KeySpec(
                "lifetime", .duration(atLeast: .seconds(10)), "From now to its exp; at most 1h.", default: "300s"),
            KeySpec(
                "extra_claims", .named(.line, .text(.anyLine)),
                "Further claims of the assertion that proves the client."
            ),
        ])

    private static let requested = Block(
        name: "requested_assertions", description: "What oracle_requested_assertions says.",
        keys: [
            KeySpec(
                "pre", .text(.line), "For the pre-authorization code.",
                default: "oracle-idm:/oauth/assertion-type/client-identity/mobile-client-pre-authz-code-client"),
            KeySpec(
                "client", .text(.line), "For the client assertion.",
                default: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
            KeySpec(
                "user", .text(.line), "For a new user assertion.",
                default: "oracle-idm:/oauth/assertion-type/user-identity/jwt"),
        ])
}
