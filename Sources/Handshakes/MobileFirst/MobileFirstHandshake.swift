internal import HTTP1
internal import Octets

/// `mobilefirst`: IBM MobileFirst Foundation 8, as a confidential client or as a registered one that answers challenges.
///
/// A server's words about a failed check (`errorMsg`, `failure`) may hold the very secret that was expected: nothing of them leaves the
/// reading of the answer.
struct MobileFirstHandshake: Handshake {
    let settings: MobileFirstSettings
    let endpoints: MobileFirstSettings.Endpoints
    let world: GrantWorld

    /// Throws `.configuration` if a setting cannot be put on the wire.
    init(_ settings: MobileFirstSettings, _ world: GrantWorld = GrantWorld()) throws(GrantFailure) {
        self.settings = settings
        self.world = world
        endpoints = try settings.endpoints()
        for scope in settings.allowedScopes where !OAuth2Scope.isToken(scope) {
            throw .configuration(reason: "allowed_scopes: not a scope")
        }
    }

    var scheme: String { "mobilefirst" }
    var endsSessions: Bool { true }
    var inspectedStatuses: [Int] { [401, 403, 409] }

    func injection(for token: [UInt8]) -> InjectedField {
        InjectedField(name: "Authorization", value: Array("Bearer ".utf8) + token)
    }

    func acquire(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        let scopes = try scopes(wanted)
        switch settings.client {
        case .confidential(let id):
            return try await confidentialGrant(id, scopes, environment)
        case .registered(let device):
            return try await MobileFirstRun(self, device, scopes: scopes, environment: environment)
                .grant()
        }
    }

    func revoke(_ session: LayerMaterial, environment: any GrantEnvironment) async -> Revocation {
        guard case .registered(let device) = settings.client else { return .impossible }
        return await MobileFirstRun(self, device, scopes: [], environment: environment).logout(session)
    }

    /// The wanted scopes, sorted, because a server may cache by them (docs/design/wire/mobilefirst.md#lifetime).
    private func scopes(_ wanted: Wanted) throws(GrantFailure) -> [String] {
        let added = (wanted.challenge?.scopes ?? []).filter(mayAsk)
        let scopes = Set(wanted.scopes + added).sorted()
        guard scopes.allSatisfy(OAuth2Scope.isToken) else { throw .configuration(reason: "scopes: not a scope") }
        return scopes
    }

    /// `RegisteredClient` stands for having a client at all, and every token has it.
    private func mayAsk(_ scope: String) -> Bool {
        scope == "RegisteredClient" || settings.allowedScopes.contains(scope)
    }
}

// MARK: - Confidential client (docs/design/wire/mobilefirst.md#confidential)

extension MobileFirstHandshake {
    private func confidentialGrant(
        _ id: String, _ scopes: [String], _ environment: any GrantEnvironment
    ) async throws(GrantFailure) -> AccessGrant {
        let secret = try await environment.secret("client_secret")
        guard !secret.isEmpty, secret.withBytes({ $0.allSatisfy { (0x20...0x7E).contains($0) } }) else {
            throw .secretUnusable(name: "client_secret", reason: "empty, or not ASCII")
        }
        var credentials = BasicHandshake.credentials(user: Array(id.utf8), password: secret)
        defer { credentials.wipe() }
        var body = FormBody(capacity: 128 + 3 * scopes.reduce(0) { $0 + $1.utf8.count + 1 })
        body.member("grant_type", "client_credentials")
        if !scopes.isEmpty { body.member("scope", scopes.joined(separator: " ")) }
        let call = IssuerCall(
            step: "token", method: "POST", url: endpoints.token,
            headers: [("Authorization", "Basic " + String(decoding: credentials, as: UTF8.self))]
                + IssuerCall.formHeaders, body: body.finish(), carriesPassword: false)
        return try OAuth2Answer(try await send(call, environment)).grant()
    }

    /// Sends a call that does no harm twice, again for as long as the server says that it met a conflict.
    func send(_ call: IssuerCall, _ environment: any GrantEnvironment) async throws(GrantFailure) -> IssuerAnswer {
        for conflict in 0...MobileFirstSettings.mostConflicts {
            let answer = try await environment.answer(to: call)
            guard answer.status == 409, answer.header("MFP-Conflict") != nil else { return answer }
            await environment.pause(ConflictPause.nanoseconds(after: conflict))
        }
        throw .issuerUnavailable(retryAfterSeconds: nil, reason: "\(call.step): one conflict after the other")
    }
}

/// How long to wait for others to be through, after one conflict and after several.
public enum ConflictPause {
    /// - Parameter conflict: 0 for the first one.
    /// - Returns: 50 ms to 1.6 s.
    public static func nanoseconds(after conflict: Int) -> UInt64 { 50_000_000 << UInt64(min(max(conflict, 0), 5)) }
}

// MARK: - Challenges (docs/design/wire/mobilefirst.md#resource)

extension MobileFirstHandshake {
    func judge(_ answer: UpstreamAnswer) -> ChallengeVerdict {
        switch answer.status {
        case 409:
            // Without the field it is the application's own.
            guard !answer.values(of: "MFP-Conflict").isEmpty else { return .none }
            let mayRepeat = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"].contains {
                answer.requestMethod.elementsEqual($0.utf8)
            }
            return mayRepeat || settings.replaysAllConflicts ? .conflict : .none
        case 401, 403: return judgeBearer(answer)
        default: return .none
        }
    }

    /// A 401 or 403 counts only where it speaks of Bearer; anything else is the application's.
    private func judgeBearer(_ answer: UpstreamAnswer) -> ChallengeVerdict {
        let all = AuthChallenge.list(answer.values(of: "WWW-Authenticate")).filter { $0.scheme.matches("Bearer") }
        guard let bearer = all.first(where: { $0.fault == nil }) else {
            return all.first?.fault.map { .unusable(reason: $0.rawValue) } ?? .none
        }
        var challenge = Challenge(resource: answer.requestURL)
        if case .one(let code) = bearer["error"] {
            challenge.error = ["insufficient_scope", "invalid_token", "invalid_request"].first {
                code.elementsEqual($0.utf8)
            }
        }
        guard answer.status == 403 else { return .challenged(challenge) }
        // The upstream must not steer which checks are answered: what it names counts only where all of it is allowed.
        guard challenge.error == "insufficient_scope", case .one(let text) = bearer["scope"],
            let asked = OAuth2Scope.set(String(decoding: text, as: UTF8.self)), !asked.isEmpty,
            asked.allSatisfy(mayAsk)
        else { return .none }
        challenge.scopes = asked
        return .challenged(challenge)
    }
}
