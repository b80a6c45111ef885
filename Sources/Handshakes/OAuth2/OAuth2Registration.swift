internal import Numbers
internal import Octets
internal import Synchronization

/// How a client without an id of its own gets one (RFC 7591).
struct ClientRegistration: Sendable {
    /// Beside what metadata says.
    var url: IssuerURL?
    /// There is a secret `initial_access_token` (RFC 7591 §3).
    var hasInitialToken = false
    /// There is a secret `software_statement` (RFC 7591 §2.3).
    var hasStatement = false
    /// Further members of the client's metadata, in order.
    var metadata: [Member] = []

    struct Member: Sendable {
        var name: String
        /// A single value, where the member is no list.
        var values: [String]
        var isList: Bool
    }
}

/// The client that a registration brought.
struct RegisteredClient: Sendable {
    var id: String
    var secret: Secret?
    /// Set when the server says that it does not know this client, or no longer.
    let refusal = ClientRefusal()

    private static let layer = "registration"

    var material: Secret {
        var values = ["client_id": Secret(id)]
        values["client_secret"] = secret
        return RecipeMaterial.encode([Self.layer: values])
    }
}

extension RegisteredClient {
    /// Nil for what `material` did not make.
    init?(_ material: Secret) {
        guard let values = RecipeMaterial.decode(material)?[Self.layer], let id = values["client_id"] else {
            return nil
        }
        self.init(id: id.text, secret: values["client_secret"])
    }
}

/// Whether one client was refused, told from whatever else a flight may fail of.
final class ClientRefusal: Sendable {
    private let value = Atomic<Bool>(false)
    var isSet: Bool { value.load(ordering: .relaxed) }
    func set() { value.store(true, ordering: .relaxed) }
}

extension OAuth2Handshake {
    /// Does `work` as the client that the server knows: the one that stands, or one that is registered for it, and once more as another
    /// where the server has forgotten it.
    func asRegistered<Outcome>(
        _ environment: any GrantEnvironment,
        _ work: (OAuth2Handshake) async throws(GrantFailure) -> Outcome
    ) async throws(GrantFailure) -> Outcome {
        guard settings.registration != nil else { return try await work(self) }
        var refused: LayerMaterial?
        while true {
            let standing = try await environment.durable(.registration, unless: refused) {
                () async throws(GrantFailure) in try await register(environment)
            }
            guard let client = RegisteredClient(standing.bytes) else {
                guard refused == nil else { throw .internal(reason: "the registration that was kept cannot be read") }
                refused = standing
                continue
            }
            do throws(GrantFailure) { return try await work(known(as: client)) } catch {
                guard client.refusal.isSet, refused == nil else { throw error }
                refused = standing
                await environment.tell(.concern("the issuer does not know the client any more; it is registered again"))
            }
        }
    }

    /// Under the name that the server gave.
    func known(as client: RegisteredClient) -> OAuth2Handshake {
        var known = self
        known.settings.clientID = client.id
        known.client = client
        return known
    }

    private func register(_ environment: any GrantEnvironment) async throws(GrantFailure) -> LayerMaterial {
        guard let registration = settings.registration else { throw .internal(reason: "no registration") }
        let endpoints = try await endpoints(environment)
        guard let url = endpoints.registration else {
            throw .configuration(reason: "registration: the issuer names no registration_endpoint")
        }
        var headers = IssuerCall.jsonHeaders
        if registration.hasInitialToken {
            let token = try await environment.text("initial_access_token")
            guard TokenAlphabet.b64token.admits(token) else {
                throw .secretUnusable(name: "initial_access_token", reason: "not fit for a header")
            }
            headers.append(("Authorization", "Bearer " + token.text))
        }
        headers += settings.headers
        let statement = registration.hasStatement ? try await environment.text("software_statement") : nil
        // An initial access token may be good for one client: no second one is registered because an answer was lost on a stale connection.
        var call = IssuerCall(
            step: "registration", method: "POST", url: url, headers: headers,
            body: metadata(registration, statement), carriesPassword: true)
        defer { call.body.wipe() }
        let answer = try await environment.answer(to: call)
        return try registered(answer)
    }

    private func metadata(_ registration: ClientRegistration, _ statement: Secret?) -> [UInt8] {
        var body = JSONBody(capacity: 2048 + 6 * (statement?.count ?? 0))
        let redirects = "redirect_uris"
        for member in registration.metadata where member.name != redirects {
            if member.isList {
                body.list(member.name, member.values)
            } else {
                body.member(member.name, member.values.first ?? "")
            }
        }
        let others = registration.metadata.first { $0.name == redirects }?.values ?? []
        body.member("token_endpoint_auth_method", authMethod)
        let grant = settings.grant.registeredName
        let keepsAnother = settings.grant.keepsRefreshToken && grant != "refresh_token"
        body.list("grant_types", [grant] + (keepsAnother ? ["refresh_token"] : []))
        if case .authorizationCode = settings.grant {
            body.list("response_types", ["code"])
            // Loopback with any port (RFC 8252 §7.3).
            let own = settings.redirectText ?? "http://127.0.0.1/callback"
            body.list(redirects, [own] + others.filter { $0 != own })
        } else {
            // The default would be `code`, which wants a redirect address (RFC 7591 §2).
            body.list("response_types", [])
            // Some servers want one of each client, whatever it is for.
            if !others.isEmpty { body.list(redirects, others) }
        }
        if settings.dpop { body.flag("dpop_bound_access_tokens", true) }
        if let statement { body.member("software_statement", statement) }
        return body.finish()
    }

    private var authMethod: String {
        switch settings.clientAuth {
        case .basic: "client_secret_basic"
        case .post: "client_secret_post"
        case .clientSecretJWT: "client_secret_jwt"
        case .privateKeyJWT: "private_key_jwt"
        case .tls: "tls_client_auth"
        case .none: "none"
        }
    }

    /// Only the initial access token could be rejected; where none was shown, there is nothing to hold back.
    private func refused(_ reason: String) -> GrantFailure {
        settings.registration?.hasInitialToken == true
            ? .credentialRejected(reason: reason)
            : .configuration(reason: "\(reason); does the issuer want an initial_access_token?")
    }

    /// `registration_client_uri` and its token (RFC 7592) are not kept: where the gateway goes is not for an answer to say.
    private func registered(_ answer: IssuerAnswer) throws(GrantFailure) -> LayerMaterial {
        let object = try? AnswerObject(answer.body)
        switch answer.status {
        case 200, 201: break
        case 300..<400:
            throw .configuration(
                reason: "registration: redirect (\(answer.status)); the URL is not that of the registration endpoint")
        case 408, 425, 429, 500..<600: throw answer.unavailable("registration: status \(answer.status)")
        case 401, 403: throw refused("registration: status \(answer.status)")
        // Authlib refuses a wrong initial access token by this, with a 400.
        case 400 where object.flatMap(OAuth2Answer.errorCode) == "access_denied":
            throw refused("registration: status 400, access_denied")
        case 400..<500:
            let code = object.flatMap(OAuth2Answer.errorCode).map { ", \(OAuth2Answer.shown($0))" } ?? ""
            throw .configuration(reason: "registration: status \(answer.status)\(code)")
        default: throw .issuerAnswerInvalid(reason: "registration: status \(answer.status)")
        }
        guard let object else { throw .issuerAnswerInvalid(reason: "registration: no JSON object") }
        guard let id = object.string("client_id"), (1...1024).contains(id.utf8.count),
            id.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        else { throw .issuerAnswerInvalid(reason: "registration: no client_id, or one that is not printable ASCII") }
        // A server may register something else than it was asked for (RFC 7591 §3.2.1).
        if let method = object.string("token_endpoint_auth_method"), method != authMethod {
            throw .configuration(reason: "registration: the issuer wants another client_auth than \(authMethod)")
        }
        var client = RegisteredClient(id: id, secret: nil)
        var lifetime: UInt64?
        switch settings.clientAuth {
        case .basic, .post, .clientSecretJWT:
            guard let secret = object.string("client_secret").map({ Secret($0) }),
                TokenAlphabet.fieldValue.admits(secret)
            else { throw .issuerAnswerInvalid(reason: "registration: no client_secret, or one that cannot be sent") }
            client.secret = secret
            // 0 says that it does not end (RFC 7591 §3.2.1).
            if case .integer(let end)? = object["client_secret_expires_at"], WallTime(seconds: end).milliseconds > 0 {
                let left = WallTime(seconds: end).left(
                    at: WallTime(seconds: ReceivedNumber(answer.date ?? world.wallSeconds)))
                guard left > .zero else {
                    throw .issuerAnswerInvalid(reason: "registration: a secret that has expired")
                }
                lifetime = left.nanoseconds
            }
        case .privateKeyJWT, .tls, .none: break
        }
        return LayerMaterial(bytes: client.material, obtainedAt: answer.sentAt, lifetime: lifetime)
    }
}

extension OAuth2Settings.Grant {
    /// The grant's name in `grant_types` (RFC 7591 §2).
    fileprivate var registeredName: String {
        switch self {
        case .clientCredentials: "client_credentials"
        // The grants of OAM register in a way of their own, and never here.
        case .password, .oamUser, .oamCredentials: "password"
        case .refreshToken: "refresh_token"
        case .authorizationCode: "authorization_code"
        case .deviceCode: "urn:ietf:params:oauth:grant-type:device_code"
        case .jwtBearer, .mintedJWT: "urn:ietf:params:oauth:grant-type:jwt-bearer"
        case .saml2Bearer: "urn:ietf:params:oauth:grant-type:saml2-bearer"
        case .tokenExchange: "urn:ietf:params:oauth:grant-type:token-exchange"
        }
    }
}
