extension Keys {
    static let mobileHub = Block(
        name: "mobile_hub", description: "Oracle Mobile Hub or Mobile Cloud Service.",
        keys: [
            KeySpec(
                "base_url", .text(.httpURL),
                "The backend's base URL, exactly as its settings page shows it: the scope begins with it, port and all.",
                required: true),
            KeySpec("backend_id", .text(.headerValue), "The backend's id on its settings page.", required: true),
            KeySpec(
                "backend_version", .text(.line),
                "The backend's version. Tokens are bound to base URL, backend and version: when one of them changes, what is kept is deleted at once."
            ),
            KeySpec(
                "method", .words(MobileHubHandshake.Method.self),
                "basic_anonymous: the anonymous key; basic_user: a user of the service; oauth_client, oauth_password: a token for the consumer or for a user; token_exchange: a token for another issuer's.",
                required: true),
            KeySpec(
                "generation", .words(MobileHubHandshake.Generation.self),
                "Who gives OAuth tokens: Identity Cloud Service, which wants a scope; or a classic identity domain, which wants its name."
            ),
            KeySpec(
                "anonymous_key", .secret, "The anonymous key as the settings page shows it; for method basic_anonymous."
            ),
            KeySpec("username", .text(.line), "The user of basic_user or oauth_password."),
            KeySpec(
                "password", .secret, "The user's password: after one refusal it is not sent again until it changes."),
            KeySpec("token_url", .text(.httpURL), "The OAuth token endpoint, complete."),
            KeySpec("client_id", .text(.line), "The OAuth consumer of the backend."),
            KeySpec("client_secret", .secret, "Its secret."),
            KeySpec(
                "scope", .text(.scope),
                "Of the token request; without it base_url with urn:opc:resource:consumer::all behind it, or none for generation classic."
            ),
            KeySpec(
                "identity_domain", .text(.headerValue),
                "The identity domain, sent with token requests; generation classic needs it."),
            KeySpec(
                "identity_domain_header", .text(.headerName), "The header that carries it.",
                default: "X-User-Identity-Domain-Name"),
            KeySpec(
                "exchange_endpoint", .words(MobileHubHandshake.ExchangeEndpoint.self),
                "sso_exchange: GET /mobile/platform/sso/exchange-token; auth_token: POST /mobile/platform/auth/token, which wants the consumer too."
            ),
            KeySpec(
                "third_party_token", .either([.secret, .block(subjectToken)]),
                "The token to exchange: a secret, or that of another identity; left out: the caller's own, on routes with subject: from_caller_token."
            ),
            KeySpec(
                "token_format", .words(MobileHubHandshake.TokenFormat.self),
                "What it is: sent as it stands, or an XML document that is compressed and encoded first."),
            KeySpec(
                "client_auth", .words(MobileHubHandshake.ClientAuth.self),
                "How the consumer proves itself at auth_token: header, form, or a token of its own."),
            KeySpec(
                "grant_type", .text(.line), "The form's grant_type at auth_token; none leaves it out.",
                default: "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            KeySpec("extra_headers", .named(.headerName, .text(.headerValue)), "Further headers of an exchange."),
            KeySpec(
                "send_backend_id_with_bearer", .boolean,
                "Whether requests name the backend also beside a token; beside Basic they always do.", default: "false"),
            KeySpec(
                "persist_tokens", .boolean, "Whether tokens go to the store, and outlive a restart.", default: "false"),
        ])
}
