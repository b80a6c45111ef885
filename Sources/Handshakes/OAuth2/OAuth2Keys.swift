internal import Configuration

/// The keys of `oauth2`. No digest counts how the client proves itself, since it stays the same client while its keys are replaced, nor how a
/// person is led to the issuer, nor what is asked about a token by a check alone.
enum OAuth2Keys {
    static let block = Block(
        name: "oauth2", description: "Any OAuth 2.0 server.",
        keys: [
            KeySpec(
                "issuer", .text(.httpURL),
                "The issuer whose metadata (RFC 8414, OpenID) names the endpoints, spelt as the server spells it."),
            KeySpec("token_url", .text(.httpURL), "The token endpoint; instead of issuer."),
            KeySpec(
                "revocation_url", .text(.httpURL),
                "Where refresh tokens are revoked (RFC 7009), beside token_url; beside issuer it counts where the metadata has none.",
                digest: .nothing),
            KeySpec(
                "authorization_url", .text(.httpURL),
                "Where a person logs in with grant authorization_code, beside token_url; beside issuer it counts where the metadata has none.",
                digest: .nothing),
            KeySpec(
                "device_authorization_url", .text(.httpURL),
                "Where grant device_code gets its codes, beside token_url; beside issuer it counts where the metadata has none.",
                digest: .nothing),
            KeySpec(
                "grant", .words(OAuth2Scheme.Grant.self),
                "How a token is had; authorization_code and device_code need a person once: cardea login."),
            redirectURI,
            KeySpec(
                "login_parameters", .named(.line, .text(.anyLine)),
                "Further parameters of the authorization request, such as prompt or access_type."),
            KeySpec("step_up", .block(stepUp), "The stronger login that an upstream may ask for.", digest: .nothing),
            KeySpec("client_id", .text(.line), "The client; instead of registration."),
            KeySpec("client_secret", .secret, "The client's secret."),
            KeySpec(
                "registration", .block(registration),
                "The client registers itself (RFC 7591), once; the id and secret that it gets are kept in the store."),
            KeySpec(
                "introspection", .boolean,
                "Whether check --live asks the issuer if the token that it got is active (RFC 7662).", default: "false",
                digest: .nothing),
            KeySpec(
                "introspection_url", .text(.httpURL),
                "Where to ask, beside token_url; beside issuer it counts where the metadata has none.", digest: .nothing
            ),
            KeySpec(
                "client_auth",
                .words(
                    OAuth2Settings.ClientAuth.allCases.map(\.rawValue),
                    aliases: [
                        "client_secret_basic": "basic", "client_secret_post": "post", "tls_client_auth": "tls",
                        "self_signed_tls_client_auth": "tls",
                    ]), "How the client proves itself; the RFC's registered names too."),
            KeySpec(
                "basic_encoding", .words(OAuth2Settings.BasicEncoding.self),
                "Whether id and secret are form-encoded before Basic."),
            KeySpec(
                "key", .oneOrMore(.secret),
                "The key that signs assertions: PEM, PKCS#8, PKCS#12, JWK or JWK set; of several the first that the server accepts. Read anew for every grant.",
                digest: .nothing),
            keyPassword,
            KeySpec("signing", .block(signing), "How assertions are signed.", digest: .nothing),
            KeySpec(
                "claims", .named(.line, .text(.anyLine)),
                "Claims of the assertion that jwt_bearer makes with key; iss and sub are the client unless they stand here. {subject} is the route's subject, which is also sub where no claim names it."
            ),
            KeySpec(
                "assertion", .secret,
                "The assertion of jwt_bearer, or of saml2_bearer as XML or base64; read anew for every grant.",
                digest: .place),
            KeySpec("username", .text(.line), "The user of grant password."),
            KeySpec("password", .secret, "The password of grant password."),
            refreshToken,
            KeySpec(
                "subject_token", .either([.secret, .block(Keys.subjectToken)]),
                "The token to exchange: a secret, or that of another identity; left out: the caller's own, on routes with subject: from_caller_token.",
                digest: .place),
            KeySpec(
                "subject_token_type", .text(.line),
                "Its type: access_token, refresh_token, id_token, saml1, saml2, jwt, or a URI.", default: "access_token"
            ),
            KeySpec("actor_token", .secret, "The token of the party that acts for the subject.", digest: .place),
            KeySpec("actor_token_type", .text(.line), "Its type, as subject_token_type."),
            KeySpec(
                "requested_token_type", .text(.line),
                "The type to ask for, as subject_token_type; without it the issuer decides."),
            KeySpec(
                "extra", .named(.line, .text(.anyLine)),
                "Further members of the token request; {subject} is the route's subject."),
            KeySpec("headers", .named(.headerName, .text(.headerValue)), "Further headers of the token request."),
            KeySpec(
                "allowed_scopes", .list(.text(.scope)),
                "Where it is given, the only scopes that routes may ask for, and those that a challenge of the API may add. Not given: routes "
                    + "ask for what they like, and a challenge adds none.", digest: .nothing),
            KeySpec(
                "allowed_issuers", .list(.text(.httpURL)),
                "Issuers, as they spell themselves, of which an API may want its tokens instead: named by its metadata (RFC 9728), to which resource_metadata in a 401 leads. They get what the client proves itself with.",
                digest: .nothing),
            KeySpec("identity_domain", .text(.headerValue), "The tenant, sent with every token request."),
            KeySpec(
                "identity_domain_header", .text(.headerName), "The header that carries the tenant.",
                default: "X-USER-IDENTITY-DOMAIN-NAME"),
            KeySpec(
                "dpop", .boolean,
                "Tokens are bound to a key pair that the gateway makes and keeps, and every request proves its possession (RFC 9449). The gateways of a fleet do not share it, nor what is bound to it.",
                default: "false"),
        ])

    static let redirectURI = KeySpec(
        "redirect_uri", .text(.httpURL),
        "Where the browser of grant authorization_code is sent back to, spelt as the server has it registered; without it http://127.0.0.1/callback at any port.",
        digest: .nothing)

    static let keyPassword = KeySpec(
        "key_password", .secret, "The passphrase of an encrypted key or of a PKCS#12 file.", digest: .nothing)

    static let refreshToken = KeySpec(
        "refresh_token", .secret,
        "The first refresh token of grant refresh_token; those that replace it go to the store.", digest: .place
    )

    private static let stepUp = Block(
        name: "step_up",
        description: "The login that a 401 of an upstream may ask for (insufficient_user_authentication, RFC 9470).",
        keys: [
            KeySpec(
                "acr_values", .list(.text(.line)),
                "Classes of authentication (acr) that may be asked for; of those that an upstream names the others are left out."
            ),
            KeySpec(
                "max_age", .duration(atLeast: .seconds(1)),
                "The shortest time since the person's authentication that may be asked for; without it none."),
        ])

    private static let registration = Block(
        name: "registration", description: "How the client gets its id.",
        keys: [
            KeySpec(
                "url", .text(.httpURL),
                "The registration endpoint, beside token_url; beside issuer it counts where the metadata has none."),
            KeySpec("initial_access_token", .secret, "What the server wants to see of who registers."),
            KeySpec("software_statement", .secret, "A signed statement about this software (RFC 7591 section 2.3)."),
            KeySpec(
                "metadata", .named(.line, .oneOrMore(.text(.anyLine))),
                "Further members of the client's metadata, such as client_name, scope or redirect_uris; a list where the standard has one."
            ),
        ])

    private static let signing = Block(
        name: "signing", description: "How assertions are signed.",
        keys: [
            KeySpec(
                "algorithm", .words(["auto", "RS256", "PS256", "ES256", "EdDSA"]),
                "The algorithm; auto: what the JWK names, else RS256, ES256 or EdDSA by the kind of key."),
            KeySpec("key_id", .text(.line), "The kid of the header; without it that of the JWK."),
            KeySpec(
                "thumbprint", .words(JWTSigning.Thumbprint.self),
                "Which thumbprint of the certificate goes into the header: x5t (SHA-1) or x5t#S256."),
            KeySpec(
                "certificate", .text(.path),
                "PEM file of the certificate that thumbprint names; without it the one beside the key."),
            KeySpec(
                "audience", .text(.line),
                "The aud claim: token_url (at other endpoints this first, and where it is refused the endpoint's own URL), issuer, or a text of its own.",
                default: "token_url"),
            KeySpec(
                "lifetime", .duration(atLeast: .seconds(10)), "From now to the exp of an assertion; at most 1h.",
                default: "60s"),
        ])
}
