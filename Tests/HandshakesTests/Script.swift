import Synchronization

@testable import Handshakes

/// An issuer that follows a script and keeps what it was sent.
final class ScriptedIssuer: IssuerClient {
    enum Line: Sendable {
        case answer(Int, String, [(name: String, value: String)])
        case fault(IssuerFault)

        static func ok(_ body: String) -> Line { .answer(200, body, []) }
        static func status(_ status: Int, _ body: String = "") -> Line { .answer(status, body, []) }
    }

    struct Sent: Sendable {
        var step: String
        var method: String
        var url: String
        var headers: [(name: String, value: String)]
        var body: String
        var carriesPassword: Bool

        func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
    }

    private let state: Mutex<(lines: [Line], sent: [Sent])>
    let journal: Journal

    init(_ lines: [Line], journal: Journal = Journal()) {
        state = Mutex((lines, []))
        self.journal = journal
    }

    var sent: [Sent] { state.withLock { $0.sent } }
    var steps: [String] { sent.map(\.step) }
    var isFinished: Bool { state.withLock { $0.lines.isEmpty } }

    func send(_ call: IssuerCall) async throws(IssuerFault) -> IssuerAnswer {
        journal.write("send \(call.step)")
        let line = state.withLock { state in
            state.sent.append(
                Sent(
                    step: call.step, method: call.method, url: call.url.description, headers: call.headers,
                    body: String(decoding: call.body, as: UTF8.self), carriesPassword: call.carriesPassword))
            return state.lines.isEmpty ? nil : state.lines.removeFirst()
        }
        switch line {
        case nil: throw IssuerFault(.refused, provablyUnsent: true)
        case .fault(let fault)?: throw fault
        case .answer(let status, let body, let headers)?:
            return IssuerAnswer(status: status, headers: headers, body: Array(body.utf8), sentAt: 5_000, overTLS: true)
        }
    }
}

/// What happened, in order, over issuer and environment.
final class Journal: Sendable {
    private let lines = Mutex<[String]>([])
    func write(_ line: String) { lines.withLock { $0.append(line) } }
    var all: [String] { lines.withLock { $0 } }
}

/// Layers and attempts in plain memory, for one flight at a time.
final class MemoryEnvironment: GrantEnvironment {
    struct State: Sendable {
        var durables: [DurablePart: LayerMaterial] = [:]
        var session: LayerMaterial?
        /// One flight gets one new session.
        var isRenewed = false
        var secrets: [String: String] = ["password": "pa\"ss\\wörd", "client_secret": "s:cret +", "value": "fixed"]
        var outcomes: [AttemptOutcome] = []
        var isQuarantined = false
        var openAttempts = 0
        var refusesCommits = false
        var forgetsCommits = false
    }

    let state: Mutex<State>
    let journal: Journal
    private let issuer = Mutex<(any IssuerClient)?>(nil)

    init(_ state: State = State(), journal: Journal = Journal()) {
        self.state = Mutex(state)
        self.journal = journal
    }

    convenience init(
        handle: String? = nil, session: String? = nil, password: String? = nil, journal: Journal = Journal()
    ) {
        var state = State()
        if let handle {
            state.durables[.registration] = LayerMaterial(bytes: Secret(handle), obtainedAt: 1, lifetime: nil)
        }
        if let session {
            state.session = LayerMaterial(bytes: Secret(session), obtainedAt: 1, lifetime: 1_000_000)
        }
        if let password { state.secrets["password"] = password }
        self.init(state, journal: journal)
    }

    /// The same environment; from now on its calls are answered by this issuer.
    func over(_ issuer: any IssuerClient) -> MemoryEnvironment {
        self.issuer.withLock { $0 = issuer }
        return self
    }

    func send(_ call: IssuerCall) async throws(IssuerFault) -> IssuerAnswer {
        guard let issuer = issuer.withLock({ $0 }) else { throw IssuerFault(.unresolvable, provablyUnsent: true) }
        return try await issuer.send(call)
    }

    var outcomes: [AttemptOutcome] { state.withLock { $0.outcomes } }
    var isBalanced: Bool { state.withLock { $0.openAttempts == 0 } }
    var heldHandle: Secret? { state.withLock { $0.durables[.registration]?.bytes } }
    var heldSession: Secret? { state.withLock { $0.session?.bytes } }

    func durable(_ part: DurablePart) async -> LayerMaterial? {
        let now = await now()
        return state.withLock { $0.durables[part].flatMap { $0.isLive(at: now) ? $0 : nil } }
    }

    func durable(
        _ part: DurablePart, unless refused: LayerMaterial?,
        make: () async throws(GrantFailure) -> LayerMaterial
    ) async throws(GrantFailure) -> LayerMaterial {
        if let refused { await drop(part, ifStill: refused) }
        if let standing = await durable(part) { return standing }
        let made = try await make()
        try await commit(part, made)
        return made
    }

    func commit(_ part: DurablePart, _ material: LayerMaterial) async throws(GrantFailure) {
        journal.write("commit \(part.name)")
        let refused = state.withLock { state in
            if !state.refusesCommits { state.durables[part] = material }
            return state.refusesCommits
        }
        if refused { throw .internal(reason: "epoch passed") }
    }

    func drop(_ part: DurablePart, ifStill material: LayerMaterial) async {
        journal.write("drop \(part.name)")
        state.withLock { if $0.durables[part] == material { $0.durables[part] = nil } }
    }

    func session() async -> LayerMaterial? {
        let now = await now()
        return state.withLock { $0.session.flatMap { $0.isLive(at: now) ? $0 : nil } }
    }

    func session(
        _ claim: SessionClaim,
        step: (SessionRung, LayerMaterial?) async throws(GrantFailure) -> LayerMaterial
    ) async throws(GrantFailure) -> SessionGrant {
        if let refused = claim.refused {
            journal.write("session refused")
            let isSecond = state.withLock { state in
                defer { state.isRenewed = true }
                if state.session == refused { state.session = nil }
                return state.isRenewed
            }
            if isSecond { throw .policyDenied(reason: "a second session was refused") }
        }
        if !claim.isOwn, let standing = await session() { return SessionGrant(material: standing, isFresh: false) }
        let standing = state.withLock { $0.session }
        var made: LayerMaterial?
        if standing?.refreshToken != nil {
            do throws(GrantFailure) { made = try await step(.refreshToken, standing) } catch {
                switch error {
                case .credentialRejected, .interactionRequired:
                    journal.write("drop refresh token")
                    state.withLock { $0.session?.refreshToken = nil }
                    if !claim.canGrantFully { throw .interactionRequired(reason: "\(error)") }
                case .configuration, .policyDenied, .issuerAnswerInvalid:
                    if !claim.canGrantFully { throw error }
                default: throw error
                }
            }
        } else if !claim.canGrantFully {
            throw .interactionRequired(reason: "a person must log in")
        }
        let material: LayerMaterial
        if let made { material = made } else { material = try await step(.fullGrant, standing) }
        journal.write("commit session")
        state.withLock { if !$0.forgetsCommits { $0.session = material } }
        return SessionGrant(material: material, isFresh: true)
    }

    func secret(_ name: String) async throws(GrantFailure) -> Secret {
        guard let text = state.withLock({ $0.secrets[name] }) else {
            throw .secretUnreadable(name: name, reason: "absent")
        }
        return Secret(text)
    }

    func token(of identity: String) async throws(GrantFailure) -> Secret {
        Secret("token of \(identity)")
    }

    func spendAttempt(user: String, secret: String) async throws(GrantFailure) {
        let quarantined = state.withLock { state in
            if state.isQuarantined { return true }
            state.openAttempts += 1
            return false
        }
        if quarantined { throw .quarantined }
        journal.write("spend \(user)")
    }

    func settleAttempt(_ outcome: AttemptOutcome, secret: String?) async {
        journal.write("settle \(outcome)")
        state.withLock { state in
            state.openAttempts -= 1
            state.outcomes.append(outcome)
            if outcome == .rejected || outcome == .unknown { state.isQuarantined = true }
        }
    }

    func now() async -> UInt64 { 10_000 }
}

func failure(_ body: () async throws -> Void) async -> GrantFailure? {
    do {
        try await body()
        return nil
    } catch {
        return error as? GrantFailure
    }
}

extension GrantFailure {
    /// The case alone, for tables.
    var kind: String {
        switch self {
        case .issuerUnavailable: "unavailable"
        case .issuerAnswerInvalid: "invalid"
        case .credentialRejected: "rejected"
        case .quarantined, .unanswered: "quarantined"
        case .configuration: "configuration"
        case .interactionRequired: "interaction"
        case .policyDenied: "denied"
        case .timedOut: "timedOut"
        case .challengeNeeded: "challengeNeeded"
        case .secretUnreadable, .secretUnusable: "secret"
        case .storeUnusable: "store"
        case .internal: "internal"
        }
    }
}

extension Secret {
    var text: String { withBytes { String(decoding: $0, as: UTF8.self) } }
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

/// Questions that most tests do not answer.
extension GrantEnvironment {
    /// An environment without a clock does not wait.
    func pause(_ span: UInt64) async {}
    /// An environment without quotas lets every call go.
    func turn(_ quota: CallQuota) async throws(GrantFailure) {}
    /// An environment without sessions takes every first refresh token as unspent.
    func standing(ofFirst refreshToken: Secret, beside held: Secret?) async -> FirstRefreshToken { .unspent }

    /// An environment without an upstream cannot ask one.
    func askUpstream(_ call: IssuerCall) async throws(IssuerFault) -> IssuerAnswer {
        throw IssuerFault(.unresolvable, provablyUnsent: true)
    }

    /// An environment without a thread for blocking work does it here.
    func aside(_ work: @escaping @Sendable () throws -> Secret) async throws(GrantFailure) -> Secret {
        do { return try work() } catch { throw .internal(reason: "\(error)") }
    }

    /// An environment without operators drops it.
    func tell(_ news: GrantNews) async {}

    /// For environments that keep no version.
    func latestSecret(_ name: String) async throws(GrantFailure) -> Secret {
        try await secret(name)
    }

    /// An environment without other identities has no tokens of theirs.
    func token(of identity: String) async throws(GrantFailure) -> Secret {
        throw .internal(reason: "no tokens of other identities here")
    }
}
