internal import GSSAPI
internal import HTTP1
internal import Octets

/// `negotiate`: each request carries a token that Kerberos made for it and its connection (RFC 4559 §4). The connection counts as authenticated
/// by it, and serves this identity alone.
struct NegotiateHandshake: OneTimeHandshake {
    let settings: NegotiateSettings
    private let credential: NegotiateCredential
    /// Milliseconds that a request waits for its token.
    private let patience: Int64

    /// - Throws: `.configuration` where no file is named.
    init(_ settings: NegotiateSettings, of name: String, patience: Int64, _ world: GrantWorld) throws(GrantFailure) {
        guard let source = settings.source else { throw .configuration(reason: "no keytab and no cache") }
        self.settings = settings
        self.patience = patience
        credential = NegotiateCredential.shared(GSSCredential.Source(source), of: name, clock: world.wallMilliseconds)
    }

    var scheme: String { "negotiate" }

    var explanation: [String] {
        [
            "asks Kerberos for a token for \(settings.service ?? "HTTP at the host of 'to'"), a new one for each request",
            "its connections serve no other identity, since the token authenticates them",
            settings.wantsProof
                ? "an answer passes once the server has proven who it is" : "the server need not prove who it is",
        ] + (settings.users.map(Self.explanation) ?? [])
    }

    private static func explanation(of users: NegotiateUsers) -> [String] {
        [
            "asks in the name of the request's subject, a user of \(users.realm) whom 'allow' has and 'deny' has not",
            "no two users share a connection",
        ]
    }

    func injection(for token: [UInt8]) -> InjectedField { InjectedField(name: "Authorization", value: token) }

    /// A refusal of ours names the scheme; another scheme's is the caller's.
    func judge(_ answer: UpstreamAnswer) -> ChallengeVerdict {
        guard inspectedStatuses.contains(answer.status) else { return .none }
        let challenges = AuthChallenge.list(answer.values(of: "WWW-Authenticate"))
        let isOurs = answer.status != 401 || challenges.contains { $0.scheme.matches("negotiate") }
        return isOurs ? .challenged(Challenge(resource: answer.requestURL)) : .none
    }

    // MARK: - One request

    /// The server's name; nothing of the request is in it.
    func resource(of target: [UInt8], on wanted: Wanted) -> String? {
        settings.service ?? IssuerURL(wanted.upstreamOrigin).map { "HTTP@\($0.host)" }
    }

    func credential(
        for need: OneTimeNeed, environment: any GrantEnvironment
    ) async throws(GrantFailure) -> OneTimeCredential {
        let user = try user(of: need)
        try await readKeys(environment)
        let bindings = need.serverEndPoint.map { Array("tls-server-end-point:".utf8) + $0 }
        let first = try await told { () async throws(GSSFault) -> NegotiateCredential.FirstToken in
            try await credential.begin(
                to: NegotiateSettings.target(need.resource), for: user, bindings: bindings, mutual: settings.wantsProof,
                within: patience)
        }
        return OneTimeCredential(
            Self.secret(first.bytes), negotiation: NegotiateExchange(first, of: self), isNewGrant: first.isNewGrant)
    }

    /// The principal in whose name the ticket is; nil: our own.
    private func user(of need: OneTimeNeed) throws(GrantFailure) -> String? {
        guard let users = settings.users else { return nil }
        guard case .name(let subject)? = need.user else { throw .internal(reason: "a request without a subject") }
        do throws(NegotiateUsers.Refusal) { return try users.principal(of: subject) } catch {
            throw .policyDenied(reason: error.description)
        }
    }

    static func secret(_ token: [UInt8]) -> Secret { Secret(Array("Negotiate \(Base64.encode(token))".utf8)) }

    /// Takes in a token of the server.
    func advance(_ initiator: GSSInitiator, with token: [UInt8]) async throws(GrantFailure) -> GSSInitiator.Step {
        do throws(GSSFault) { return try await credential.advance(initiator, with: token, within: patience) } catch {
            // The server alone says so, whatever it says: no KDC has had a part in it.
            guard error.kind != .tooLate else { throw .timedOut(step: "proof") }
            throw .issuerAnswerInvalid(reason: error.message)
        }
    }

    var bindsConnections: Bool { true }
    func forget() { credential.forget() }
    func noteRefusal(of user: EndUser?) {
        guard let users = settings.users else { return credential.noteRefusal(of: nil) }
        guard case .name(let subject)? = user, let principal = try? users.principal(of: subject) else { return }
        credential.noteRefusal(of: principal)
    }

    // MARK: - Ahead of requests

    /// Gets the tickets, and says how long they last. The grant's token is a word that opens nothing.
    func acquire(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        try await readKeys(environment)
        let seconds = try await told { () async throws(GSSFault) -> UInt32? in
            try await credential.lifetime(forUsers: settings.users != nil, within: patience)
        }
        let lifetime = seconds.map { UInt64($0) * 1_000_000_000 } ?? AccessGrant.longestLifetime
        return AccessGrant(
            token: Secret("ready"), tokenType: "", lifetime: min(lifetime, AccessGrant.longestLifetime),
            sentAt: await environment.now())
    }

    /// Tickets of users need a user.
    func tryOut(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> LiveTrial? {
        _ = try await acquire(wanted, environment: environment)
        return settings.users.map { _ in
            LiveTrial(text: "token obtained in its own name; one in a user's name needs a subject and was not tried")
        }
    }

    /// The library reads the file itself. The keeper does, too, so that it knows which keys a KDC has refused, and sees new ones.
    private func readKeys(_ environment: any GrantEnvironment) async throws(GrantFailure) {
        guard settings.cache == nil else { return }
        let keys = try await environment.secret("keytab")
        credential.noteKeys(keys)
    }

    func facts(of session: LayerMaterial) -> [IdentityFact] { [] }
    var hasPreview: Bool { false }
    func preview(environment: any GrantEnvironment) async throws(GrantFailure) -> [IdentityFact] { [] }

    private func told<Value>(_ work: () async throws(GSSFault) -> Value) async throws(GrantFailure) -> Value {
        do throws(GSSFault) { return try await work() } catch {
            // The user's, and nobody else's.
            if error.kind == .requestRefused, settings.users != nil { throw .policyDenied(reason: error.message) }
            throw GrantFailure(error, of: settings.cache == nil ? "keytab" : "cache")
        }
    }
}

extension GrantFailure {
    /// No ticket, or no token of it.
    /// - Parameter key: of the file that tickets come from.
    init(_ fault: GSSFault, of key: String) {
        let reason = fault.message
        switch fault.kind {
        case .libraryMissing, .invalidArgument, .serverUnknown: self = .configuration(reason: reason)
        case .keytabUnreadable, .credentialMissing: self = .secretUnreadable(name: key, reason: reason)
        case .credentialExpired: self = .secretUnusable(name: key, reason: reason)
        // The KDC may count each further try towards a lock-out.
        case .clientUnknown, .clientRevoked, .keysWrong: self = .credentialRejected(reason: reason)
        case .tooLate: self = .timedOut(step: "ticket")
        case .kdcUnreachable, .clockSkew: self = .issuerUnavailable(retryAfterSeconds: nil, reason: reason)
        case .requestRefused, .other: self = .issuerUnavailable(retryAfterSeconds: 1, reason: reason)
        default: self = .issuerAnswerInvalid(reason: reason)
        }
    }
}
