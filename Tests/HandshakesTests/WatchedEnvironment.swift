import Synchronization

@testable import Handshakes

/// An environment in plain memory with an upstream, a clock that a test moves, and an operator who keeps what is told.
final class WatchedEnvironment: GrantEnvironment {
    struct State: Sendable {
        var now: UInt64 = 10_000
        var pauses: [UInt64] = []
        var concerns: [String] = []
        var refusedTokens: [String] = []
        var throttled: [CallQuota] = []
        var turns: [Int] = []
        var runs: [RunTrace] = []
        var standing: FirstRefreshToken = .unspent
        /// Secrets as they are when they are read once more.
        var latest: [String: String] = [:]
        /// Names of secrets that are quarantined.
        var quarantined: Set<String> = []
        /// The token of every other identity; nil: what the plain one has.
        var otherToken: String?
    }

    let inner: MemoryEnvironment
    private let upstream: ScriptedIssuer
    private let state: Mutex<State>

    init(
        _ inner: MemoryEnvironment = MemoryEnvironment(), upstream: ScriptedIssuer = ScriptedIssuer([]),
        _ state: State = State()
    ) {
        self.inner = inner
        self.upstream = upstream
        self.state = Mutex(state)
    }

    var seen: State { state.withLock { $0 } }
    var concerns: [String] { seen.concerns }

    func over(_ issuer: any IssuerClient) -> WatchedEnvironment {
        _ = inner.over(issuer)
        return self
    }

    func pass(seconds: UInt64) { state.withLock { $0.now += seconds * 1_000_000_000 } }
    func stand(_ standing: FirstRefreshToken) { state.withLock { $0.standing = standing } }

    func now() async -> UInt64 { state.withLock { $0.now } }

    func pause(_ span: UInt64) async {
        state.withLock {
            $0.now += span
            $0.pauses.append(span)
        }
    }

    func turn(_ quota: CallQuota) async throws(GrantFailure) { state.withLock { $0.turns.append(quota.calls) } }

    func askUpstream(_ call: IssuerCall) async throws(IssuerFault) -> IssuerAnswer { try await upstream.send(call) }

    func standing(ofFirst refreshToken: Secret, beside held: Secret?) async -> FirstRefreshToken {
        state.withLock { $0.standing }
    }

    func tell(_ news: GrantNews) async {
        state.withLock {
            switch news {
            case .concern(let text): $0.concerns.append(text)
            case .refused(let token): $0.refusedTokens.append(token.text)
            case .throttled(let quota): $0.throttled.append(quota)
            case .run(let trace): $0.runs.append(trace)
            }
        }
    }

    func latestSecret(_ name: String) async throws(GrantFailure) -> Secret {
        if let text = state.withLock({ $0.latest[name] }) { return Secret(text) }
        return try await inner.secret(name)
    }

    func send(_ call: IssuerCall) async throws(IssuerFault) -> IssuerAnswer { try await inner.send(call) }
    func durable(_ part: DurablePart) async -> LayerMaterial? { await inner.durable(part) }
    func durable(
        _ part: DurablePart, unless refused: LayerMaterial?,
        make: () async throws(GrantFailure) -> LayerMaterial
    ) async throws(GrantFailure) -> LayerMaterial { try await inner.durable(part, unless: refused, make: make) }
    func commit(_ part: DurablePart, _ material: LayerMaterial) async throws(GrantFailure) {
        try await inner.commit(part, material)
    }
    func drop(_ part: DurablePart, ifStill material: LayerMaterial) async { await inner.drop(part, ifStill: material) }
    func session() async -> LayerMaterial? { await inner.session() }
    func session(
        _ claim: SessionClaim,
        step: (SessionRung, LayerMaterial?) async throws(GrantFailure) -> LayerMaterial
    ) async throws(GrantFailure) -> SessionGrant { try await inner.session(claim, step: step) }
    func secret(_ name: String) async throws(GrantFailure) -> Secret { try await inner.secret(name) }
    func token(of identity: String) async throws(GrantFailure) -> Secret {
        if let text = seen.otherToken { return Secret(text) }
        return try await inner.token(of: identity)
    }
    func spendAttempt(user: String, secret: String) async throws(GrantFailure) {
        guard !seen.quarantined.contains(secret) else { throw .quarantined }
        try await inner.spendAttempt(user: user, secret: secret)
    }
    func settleAttempt(_ outcome: AttemptOutcome, secret: String?) async {
        await inner.settleAttempt(outcome, secret: secret)
    }
}

/// A person whose waiting moves the clock of an environment.
final class WaitingPerson: LoginDialogue {
    let redirectPort: UInt16? = nil
    private let environment: WatchedEnvironment
    private let state = Mutex<(prompts: [LoginPrompt], words: [String])>(([], []))

    init(_ environment: WatchedEnvironment) { self.environment = environment }

    var prompts: [LoginPrompt] { state.withLock { $0.prompts } }
    var words: [String] { state.withLock { $0.words } }

    func show(_ prompt: LoginPrompt) async { state.withLock { $0.prompts.append(prompt) } }
    func progress(_ text: String) async { state.withLock { $0.words.append(text) } }
    func pause(_ nanoseconds: UInt64) async throws(GrantFailure) { await environment.pause(nanoseconds) }
    func redirected(
        within patience: UInt64, judge: @escaping @Sendable (String) -> RedirectVerdict
    ) async throws(GrantFailure) -> Secret { throw .loginExpired }
}
