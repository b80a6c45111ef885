import Configuration

@testable import Handshakes

/// The identities whose issuers are hostile: each scheme, each way of it to a token. An input names one by its place in this list, so that
/// further ones are added at the end.
enum Cast {
    static let text = """
        identities:
          static: { static: { value: env:value } }
          basic: { basic: { username: u, password: env:password } }
          credentials:
            oauth2: { token_url: "https://idp.example.com/token", client_id: c, client_secret: env:secret, allowed_scopes: [a, b] }
          password:
            oauth2:
              { token_url: "https://idp.example.com/token", grant: password, client_id: c, client_secret: env:secret, username: u,
                password: env:password, revocation_url: "https://idp.example.com/revoke" }
          refresh:
            oauth2:
              { token_url: "https://idp.example.com/token", grant: refresh_token, client_id: c, client_auth: none,
                refresh_token: env:refresh }
          discovered:
            oauth2:
              { issuer: "https://idp.example.com", client_id: c, client_secret: env:secret, introspection: true,
                allowed_issuers: ["https://login.example.com/tenant"] }
          signed:
            oauth2: { issuer: "https://idp.example.com", client_id: c, client_auth: private_key_jwt, key: env:key }
          bearer:
            oauth2:
              { token_url: "https://idp.example.com/token", grant: jwt_bearer, client_id: c, client_auth: none, assertion: env:assertion }
          saml:
            oauth2:
              { token_url: "https://idp.example.com/token", grant: saml2_bearer, client_id: c, client_auth: none,
                assertion: env:assertion }
          exchanged:
            oauth2:
              { token_url: "https://idp.example.com/token", grant: token_exchange, client_id: c, client_secret: env:secret,
                subject_token: env:subject }
          proven:
            oauth2: { issuer: "https://idp.example.com", client_id: c, client_secret: env:secret, dpop: true }
          newcomer:
            oauth2:
              { token_url: "https://idp.example.com/token", registration: { url: "https://idp.example.com/register",
                initial_access_token: env:initial, metadata: { client_name: n } }, introspection: true,
                introspection_url: "https://idp.example.com/introspect" }
          device:
            oauth2: { issuer: "https://idp.example.com", grant: device_code, client_id: c, client_auth: none }
            scopes: [openid]
          browser:
            oauth2:
              { token_url: "https://idp.example.com/token", authorization_url: "https://idp.example.com/authorize",
                grant: authorization_code, client_id: c, client_auth: none }
            scopes: [openid]
          webgate:
            oam_webgate:
              { service: "https://oam.example.com/oic_rest/rest/s", user_agent_prefix: OIC, client_id: c, username: u,
                password: env:password, context_source: auto }
          twelve:
            oam_oauth:
              { dialect: 12c, base_url: "https://oam.example.com", identity_domain: D, client_id: c, client_secret: env:secret }
          sim:
            oam_oauth:
              { dialect: sim, token_url: "https://sim.example.com/oauth/tokens", identity_domain: t, grant: jwt_bearer, client_id: c,
                client_auth: private_key_jwt, key: env:key, username: u }
          idcs:
            oam_oauth:
              { dialect: idcs, token_url: "https://idcs.example.com/oauth2/v1/token",
                revocation_url: "https://idcs.example.com/oauth2/v1/revoke", client_id: c, client_secret: env:secret,
                introspection: true }
          eleven:
            oam_oauth:
              { dialect: 11g, service_endpoint: "https://oam.example.com/ms_oauth/oauth2/endpoints/s", client_type: mobile,
                grant: jwt_bearer, client_id: c, username: u, password: env:password, device_profile: { ostype: linux, osversion: "1" } }
          desk:
            oam_oauth:
              { dialect: 12c, base_url: "https://oam.example.com", identity_domain: D, grant: authorization_code, client_id: c,
                client_secret: env:secret }
          confidential:
            mobilefirst:
              { base: "https://mfp.example.com/mfp/api", client_id: c, client_secret: env:secret, allowed_scopes: [a] }
          registered:
            mobilefirst:
              { base: "https://mfp.example.com/mfp/api", mode: registered, application: com.acme.teller, platform: web,
                answers: { Pin: { pin: env:pin } }, min_remaining_attempts: 2 }
          anonymous:
            mobile_hub:
              { base_url: "https://hub.example.com", backend_id: 00000000-1111-2222-3333-444444444444, method: basic_anonymous,
                anonymous_key: env:anonymous }
          hub:
            mobile_hub:
              { base_url: "https://hub.example.com", backend_id: 00000000-1111-2222-3333-444444444444, method: oauth_client,
                token_url: "https://idcs.example.com/oauth2/v1/token", client_id: c, client_secret: env:secret }
          exchange:
            mobile_hub:
              { base_url: "https://hub.example.com", backend_id: 00000000-1111-2222-3333-444444444444, method: token_exchange,
                third_party_token: env:subject, persist_tokens: true }
          consumer:
            mobile_hub:
              { base_url: "https://hub.example.com", backend_id: 00000000-1111-2222-3333-444444444444, method: token_exchange,
                exchange_endpoint: auth_token, client_id: c, client_secret: env:secret, third_party_token: env:subject }
          living:
            adobe_pass:
              { base_url: "https://sp.example.com", service_provider: NORTH1, mvpd: CableCo, software_statement: env:statement,
                domain_name: north.example, redirect_url: "https://north.example/done", resource: "{path.1}", preauthorize: [CH1, CH2] }
          older:
            adobe_pass:
              { base_url: "https://sp.example.com", api: v1, service_provider: NORTH1, mvpd: CableCo, software_statement: env:statement,
                domain_name: north.example, resource: "{path.1}", preauthorize: [CH1] }
          recipe:
            recipe:
              secrets: { password: { value: env:password, to: "https://sso.example.com" } }
              challenge:
                status: [302, 400, 401, 403, 429, 503]
                scheme: In-House
                take:
                  gate: { param: realm, match: '^([^:]{1,64}):' }
                  nonce: { header: Retry-After, match: '([0-9]+)', else: none }
                  cookie: { cookie: c, else: none }
              key: [gate]
              steps:
                - name: device
                  layer: durable
                  post: https://sso.example.com/device
                  form: { id: "{uuid}" }
                  take: { id: { json: /device/id } }
                - name: login
                  layer: session
                  post: https://sso.example.com/login
                  json: { user: svc, password: "{secret.password}", device: "{device.id}" }
                  accepted: { status: [200, 302] }
                  rejected: { status: [400, 401], json: /error, match: '^(bad_[a-z]+)$' }
                  stale: { status: 403, json: /unknown_device }
                  take: { user: { cookie: SSO }, lifetime: { header: X-Lifetime, else: 30m } }
                - name: access
                  post: https://sso.example.com/access/{challenge.gate}?n={challenge.nonce}
                  headers: { X-User: "{login.user}", X-Cookie: "{challenge.cookie}" }
                  form: { url: "{request.url}", method: "{request.method}" }
                  stale: { status: 401 }
                  take: { token: { json: /token, match: '^([!-~]+)$' }, lifetime: { json: /expires_in, else: 15m } }
              attempts: { json: /attempts_left }
              token: "{access.token}"
              inject: { value: "In-House {token}" }
        store: { path: /t, key: env:K }
        routes:
        """

    /// A part of every secret, so that one is found wherever it went.
    static let canary = "c4n4ry"

    /// RFC 7515 appendix A.3.
    static let key =
        #"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}"#

    struct Member: Sendable {
        let name: String
        let handshake: any Handshake
        /// The issuer's own answer says where to go.
        let isLed: Bool
    }

    /// Fixed, so that an answer can know what was asked with it.
    static let world = GrantWorld(
        wallMilliseconds: { 1_780_000_000_000 }, random: { [UInt8](repeating: 0x11, count: $0) })

    static let members: [Member] = {
        let names = text.split(separator: "\n").filter { $0.hasPrefix("  ") && !$0.hasPrefix("   ") }
            .compactMap { $0.split(separator: ":").first.map { $0.drop { $0 == " " } } }
        let routes = names.enumerated().map { number, name in
            let more = ["living", "older"].contains(name) ? ", inject: { header: X-Media }" : ""
            return "  - { listen: \"127.0.0.1:\(8000 + number)\", to: \"https://u.example.com\", use: \(name)\(more) }"
        }
        let loaded = Configuration.load(.text(text + "\n" + routes.joined(separator: "\n"))) { _ in "x" }
        guard let configuration = loaded.configuration else {
            refute("the configuration: \(loaded.errors.map(\.description))")
        }
        return configuration.identities.map { identity in
            guard let scheme = identity.scheme as? any Scheme,
                let handshake = try? scheme.handshake(of: identity, statuses: nil, world)
            else {
                // A missing one would move the places of all behind it, and nobody would see that it is not tried.
                refute("the identity \(identity.name) has no handshake")
            }
            return Member(
                name: identity.name, handshake: handshake,
                isLed: ["discovered", "signed", "proven", "device"].contains(identity.name))
        }
    }()

    static let origins: Set<String> = Set(
        ["idp", "oam", "sim", "idcs", "mfp", "hub", "sp", "sso"].map { "https://\($0).example.com" })
}
