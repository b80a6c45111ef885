import Synchronization

@testable import Handshakes

/// An environment in plain memory that answers some questions as a test says, and keeps which turns were waited for.
final class AskedEnvironment: GrantEnvironment {
    private let inner: MemoryEnvironment
    private let state = Mutex<[Int]>([])
    /// Names of secrets that are quarantined.
    private let quarantined: Set<String>
    /// The values of secrets when they are read once more.
    private let latest: [String: String]
    /// The token of every other identity; nil: what the plain one has.
    private let otherToken: String?

    init(
        _ inner: MemoryEnvironment, quarantined: Set<String> = [], latest: [String: String] = [:],
        otherToken: String? = nil
    ) {
        self.inner = inner
        self.otherToken = otherToken
        self.quarantined = quarantined
        self.latest = latest
    }

    /// The calls that each turn was waited for.
    var turns: [Int] { state.withLock { $0 } }

    func turn(_ quota: CallQuota) async throws(GrantFailure) { state.withLock { $0.append(quota.calls) } }

    func spendAttempt(user: String, secret: String) async throws(GrantFailure) {
        guard !quarantined.contains(secret) else { throw .quarantined }
        try await inner.spendAttempt(user: user, secret: secret)
    }

    func latestSecret(_ name: String) async throws(GrantFailure) -> Secret {
        if let text = latest[name] { return Secret(text) }
        return try await inner.latestSecret(name)
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
    func drop(_ part: DurablePart, ifStill material: LayerMaterial) async {
        await inner.drop(part, ifStill: material)
    }
    func session() async -> LayerMaterial? { await inner.session() }
    func session(
        _ claim: SessionClaim,
        step: (SessionRung, LayerMaterial?) async throws(GrantFailure) -> LayerMaterial
    ) async throws(GrantFailure) -> SessionGrant { try await inner.session(claim, step: step) }
    func secret(_ name: String) async throws(GrantFailure) -> Secret { try await inner.secret(name) }
    func token(of identity: String) async throws(GrantFailure) -> Secret {
        if let otherToken { return Secret(otherToken) }
        return try await inner.token(of: identity)
    }
    func settleAttempt(_ outcome: AttemptOutcome, secret: String?) async {
        await inner.settleAttempt(outcome, secret: secret)
    }
    func now() async -> UInt64 { await inner.now() }
}
