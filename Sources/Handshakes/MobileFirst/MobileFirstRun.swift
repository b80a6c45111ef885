internal import Octets

/// A run is what one flight makes of a registered client (docs/design/wire/mobilefirst.md#registered). The registration is the
/// environment's; what is asked, answered and signed is here.
///
/// The whole of it runs inside a turn of the session layer: one at a time for each device, so that two flights never answer one
/// challenge, and attempts can be booked.
final class MobileFirstRun {
    let handshake: MobileFirstHandshake
    let device: MobileFirstSettings.Device
    /// Never empty.
    let scopes: [String]
    let environment: any GrantEnvironment
    /// The server's clock minus ours, in milliseconds; told with each preauthorization.
    var clockOffset: Int64 = 0

    init(
        _ handshake: MobileFirstHandshake, _ device: MobileFirstSettings.Device, scopes: [String],
        environment: any GrantEnvironment
    ) {
        self.handshake = handshake
        self.device = device
        self.scopes = scopes.isEmpty ? ["RegisteredClient"] : scopes
        self.environment = environment
    }

    /// The result of a call that the server may answer with INVALID_CLIENT_ID.
    enum Outcome<Value> {
        case done(Value)
        case unknownClient
    }

    var scope: String { scopes.joined(separator: " ") }
}

// MARK: - The ladder

extension MobileFirstRun {
    func grant() async throws(GrantFailure) -> AccessGrant {
        var granted: AccessGrant?
        // Its own, because each turn brings the token of its own flight.
        _ = try await environment.session(SessionClaim(isOwn: true)) { _, standing throws(GrantFailure) in
            let (grant, session) = try await self.climb()
            granted = grant
            return session.joined(with: standing)
        }
        guard let granted else { throw .internal(reason: "a turn that was not taken") }
        return granted
    }

    /// With the client that stands, or a new one where the server does not know it any more: once.
    private func climb() async throws(GrantFailure) -> (AccessGrant, MobileFirstSession) {
        let standing = try await registered(unless: nil)
        if case .done(let result) = try await login(standing) { return result }
        let fresh = try await registered(unless: standing.material)
        if case .done(let result) = try await login(fresh) { return result }
        // Not to be tried again by itself: each time would leave one more dead client on the server.
        await environment.drop(.registration, ifStill: fresh.material)
        throw .interactionRequired(reason: "the server does not know the client that it has just registered")
    }

    private func login(
        _ client: MobileFirstClient
    ) async throws(GrantFailure) -> Outcome<(AccessGrant, MobileFirstSession)> {
        guard case .done(let passed) = try await preauthorize(client),
            case .done(let code) = try await authorize(client),
            case .done(let grant) = try await token(client, code: code)
        else { return .unknownClient }
        return .done((grant, MobileFirstSession(client: client, checks: passed, obtainedAt: grant.sentAt)))
    }
}

// MARK: - Authorization code and token (docs/design/wire/mobilefirst.md#authorization)

extension MobileFirstRun {
    private func authorize(_ client: MobileFirstClient) async throws(GrantFailure) -> Outcome<Secret> {
        let members = [
            ("response_type", "code"), ("client_id", client.id), ("scope", scope),
            ("redirect_uri", redirectURI(client)),
        ]
        let query = members.map { "\($0)=\(PercentEncoding.encode($1))" }.joined(separator: "&")
        guard let url = IssuerURL("\(handshake.endpoints.authorization)?\(query)") else {
            throw .configuration(reason: "authorize: too many scopes for a URL")
        }
        let answer = try await handshake.send(IssuerCall(asking: url, step: "authorize"), environment)
        let tree = try? JSONTree(answer.body)
        if answer.status == 400, MobileFirstAnswer.code(tree) == "INVALID_CLIENT_ID" { return .unknownClient }
        let reason = "authorize: status \(answer.status)"
        let code: Secret?
        switch answer.status {
        case 302, 303, 307:
            guard let location = answer.header("Location"),
                let found = MobileFirstRedirect(location, to: redirectURI(client))
            else { throw .issuerAnswerInvalid(reason: "\(reason): redirected to another place than was asked for") }
            if found.isError { throw .policyDenied(reason: "\(reason): redirected with an error") }
            code = found.code
        case 200:
            guard case .string(let bytes)? = try? tree?.value(at: ["code"]) else {
                throw .policyDenied(reason: "\(reason): no code")
            }
            code = Secret(bytes)
        case 408, 425, 429, 500..<600: throw answer.unavailable(reason)
        case 401, 403: throw .policyDenied(reason: reason)
        default: throw .configuration(reason: reason)
        }
        guard let code, TokenAlphabet.visible.admits(code), code.count <= 2048 else {
            throw .issuerAnswerInvalid(reason: "\(reason): the code is empty, too long, or not visible ASCII")
        }
        return .done(code)
    }

    private func token(_ client: MobileFirstClient, code: Secret) async throws(GrantFailure) -> Outcome<AccessGrant> {
        let assertion = Secret(try client.assertion(self, code: code.text))
        let redirect = redirectURI(client)
        var body = FormBody(capacity: 1024 + 3 * (code.count + redirect.utf8.count + assertion.count))
        body.member("grant_type", "authorization_code")
        body.member("code", code)
        body.member("redirect_uri", redirect)
        body.member("client_assertion_type", Self.assertionType)
        body.member("client_assertion", assertion)
        var call = IssuerCall(
            step: "token", method: "POST", url: handshake.endpoints.token, headers: IssuerCall.formHeaders,
            body: body.finish(), carriesPassword: true)
        defer { call.body.wipe() }
        let answer = OAuth2Answer(try await handshake.send(call, environment))
        if answer.error == "INVALID_CLIENT_ID" { return .unknownClient }
        do throws(GrantFailure) { return .done(try answer.grant()) } catch {
            // The assertion, which is made anew for every token: there is no secret that an operator could change.
            guard case .credentialRejected(let reason) = error else { throw error }
            throw .issuerAnswerInvalid(reason: "\(reason): the client assertion was refused")
        }
    }

    private func redirectURI(_ client: MobileFirstClient) -> String {
        if let configured = device.redirectURI { return configured }
        guard device.platform == "web" else { return "https://mfpredirecturi" }
        return "\(handshake.endpoints.authorization)/redirect/\(client.id)"
    }

    static let assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
}

/// The code or error of an authorization redirect (RFC 6749 §4.1.2), if it leads where it was asked to.
private struct MobileFirstRedirect {
    var code: Secret?
    var isError = false

    init?(_ location: String, to redirect: String) {
        let bytes = Array(location.utf8.prefix(8192))
        let mark = bytes.firstIndex(of: UInt8(ascii: "?")) ?? bytes.count
        guard bytes[..<mark].elementsEqual(redirect.utf8) || bytes[..<mark].elementsEqual((redirect + "/").utf8) else {
            return nil
        }
        for pair in bytes[mark...].dropFirst().split(separator: UInt8(ascii: "&")) {
            let halves = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard halves.count == 2 else { continue }
            if halves[0].elementsEqual("error".utf8) { isError = true }
            guard halves[0].elementsEqual("code".utf8), code == nil else { continue }
            guard let value = PercentEncoding.decode(halves[1]) else { return nil }
            code = Secret(value)
        }
    }
}

// MARK: - Logout (docs/design/wire/mobilefirst.md#logout)

extension MobileFirstRun {
    /// Ends what the server remembers of each check that was passed. Waits for its turn: never while a handshake runs.
    func logout(_ material: LayerMaterial) async -> Revocation {
        guard let session = MobileFirstSession(material) else { return .impossible }
        var said = Revocation.revoked
        _ = try? await environment.session(SessionClaim(isOwn: true)) { _, _ throws(GrantFailure) in
            for check in session.checks.sorted() {
                guard let assertion = try? session.client.assertion(self, code: nil) else {
                    said = .unconfirmed
                    break
                }
                var body = FormBody(capacity: 512 + 3 * (check.utf8.count + assertion.utf8.count))
                body.member("security_check", check)
                body.member("client_assertion_type", Self.assertionType)
                body.member("client_assertion", assertion)
                let call = IssuerCall(
                    step: "logout", method: "POST", url: self.handshake.endpoints.logout,
                    headers: IssuerCall.formHeaders,
                    body: body.finish(), carriesPassword: false)
                let answer = try? await self.handshake.send(call, self.environment)
                if answer.map({ !(200...299).contains($0.status) }) ?? true { said = .unconfirmed }
            }
            // The turn was all that was wanted; nothing is to be kept of it.
            throw .timedOut(step: "logout")
        }
        return said
    }
}
