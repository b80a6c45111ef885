// Compiled with Tests/HandshakesTests/Script.swift, whose environment keeps the layers.
import Synchronization

@testable import Handshakes

/// The environment of a flight whose issuer, upstream and person are the input.
final class Flight: GrantEnvironment, LoginDialogue {
    private struct State {
        var answers: [Course.Answer]
        var queries: [String]
        var calls = 0
    }

    let memory: MemoryEnvironment
    let member: Cast.Member
    let redirectPort: UInt16? = 8765
    private let state: Mutex<State>
    /// Keys that were made once take long; the first of each identity is everybody's.
    private static let made = Mutex<[String: Secret]>([:])

    init(_ course: Course, _ member: Cast.Member) {
        self.member = member
        state = Mutex(State(answers: course.answers, queries: course.queries))
        var memory = MemoryEnvironment.State()
        memory.secrets = [:]
        if course.hasSession {
            memory.session = LayerMaterial(
                bytes: Secret("session-1"), obtainedAt: 1, lifetime: course.hasRefreshToken ? 1 : nil,
                refreshToken: course.hasRefreshToken ? Secret("refresh-\(Cast.canary)") : nil, isHuman: true)
        }
        self.memory = MemoryEnvironment(memory)
    }

    /// Calls so far.
    var calls: Int { state.withLock { $0.calls } }

    // MARK: - Answers

    func send(_ call: IssuerCall) async throws(IssuerFault) -> IssuerAnswer {
        check(call)
        return try next()
    }

    func askUpstream(_ call: IssuerCall) async throws(IssuerFault) -> IssuerAnswer { try next() }

    private func next() throws(IssuerFault) -> IssuerAnswer {
        let answer = state.withLock { state in
            state.calls += 1
            return state.answers.isEmpty ? nil : state.answers.removeFirst()
        }
        expect(calls < 200, "a flight without an end")
        switch answer {
        case nil: throw IssuerFault(.refused, provablyUnsent: true)
        case .fault(let kind)?: throw IssuerFault(kind, provablyUnsent: kind == .refused)
        case .answer(let status, let fields, let body)?:
            return IssuerAnswer(status: status, headers: fields, body: body, sentAt: 5_000, overTLS: true)
        }
    }

    /// A call must be one request whatever answer has led to it, and a secret goes nowhere but where the configuration sends it.
    private func check(_ call: IssuerCall) {
        expect(isPlain(call.url.path) && !call.url.path.contains(" "), "a path that ends the request line")
        expect(call.url.path.hasPrefix("/"), "a path that is none")
        for field in call.headers {
            expect(isPlain(field.name) && !field.name.contains(":") && isPlain(field.value), "a field that is two")
        }
        guard !member.isLed else { return }
        expect(Cast.origins.contains(call.url.origin), "a call to \(call.url.origin)")
    }

    // MARK: - Layers and secrets

    func durable(_ part: DurablePart) async -> LayerMaterial? { await memory.durable(part) }

    func durable(
        _ part: DurablePart, unless refused: LayerMaterial?,
        make: () async throws(GrantFailure) -> LayerMaterial
    ) async throws(GrantFailure) -> LayerMaterial { try await memory.durable(part, unless: refused, make: make) }

    func commit(_ part: DurablePart, _ material: LayerMaterial) async throws(GrantFailure) {
        try await memory.commit(part, material)
    }

    func drop(_ part: DurablePart, ifStill material: LayerMaterial) async { await memory.drop(part, ifStill: material) }

    func session() async -> LayerMaterial? { await memory.session() }

    func session(
        _ claim: SessionClaim,
        step: (SessionRung, LayerMaterial?) async throws(GrantFailure) -> LayerMaterial
    ) async throws(GrantFailure) -> SessionGrant {
        let grant = try await memory.session(claim, step: step)
        checkMaterial(grant.material)
        return grant
    }

    func secret(_ name: String) async throws(GrantFailure) -> Secret {
        Secret(name == "key" ? Cast.key : "\(name)-\(Cast.canary)")
    }

    func token(of identity: String) async throws(GrantFailure) -> Secret { Secret("other-\(Cast.canary)") }

    func aside(_ work: @escaping @Sendable () throws -> Secret) async throws(GrantFailure) -> Secret {
        if let made = Self.made.withLock({ $0[member.name] }) { return made }
        do {
            let secret = try work()
            Self.made.withLock { $0[member.name] = secret }
            return secret
        } catch { throw .internal(reason: "\(error)") }
    }

    func spendAttempt(user: String, secret: String) async throws(GrantFailure) {
        try await memory.spendAttempt(user: user, secret: secret)
    }

    func settleAttempt(_ outcome: AttemptOutcome, secret: String?) async {
        await memory.settleAttempt(outcome, secret: secret)
    }

    func now() async -> UInt64 { 10_000 }

    func tell(_ news: GrantNews) async {
        if case .concern(let words) = news { checkWords(words) }
    }

    // MARK: - The person

    func show(_ prompt: LoginPrompt) async {
        for text in [prompt.url, prompt.completeURL ?? "", prompt.code ?? ""] {
            expect(isPlain(text) && text.utf8.allSatisfy { $0 < 0x7F } && text.utf8.count <= 4096, "a prompt: \(text)")
        }
    }

    func progress(_ text: String) async { checkWords(text) }

    func pause(_ nanoseconds: UInt64) async {
        let calls = state.withLock { state in
            state.calls += 1
            return state.calls
        }
        expect(calls < 200, "a wait without an end")
    }

    func redirected(
        within patience: UInt64, judge: @escaping @Sendable (String) -> RedirectVerdict
    ) async throws(GrantFailure) -> Secret {
        while let query = state.withLock({ $0.queries.isEmpty ? nil : $0.queries.removeFirst() }) {
            switch judge(query) {
            case .accepted(let code): return code
            case .failed(let failure): throw failure
            case .refused(let reason): checkWords(reason)
            }
        }
        throw .loginExpired
    }
}

/// Without an octet that ends a line or a field.
func isPlain(_ text: String) -> Bool { text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }

/// Words for operators: bounded, in one line, and without a secret.
func checkWords(_ words: String) {
    expect(isPlain(words), "words with control octets: \(words)")
    expect(words.utf8.count <= 1000, "many words: \(words)")
    expect(!words.contains(Cast.canary), "words with a secret: \(words)")
}

func checkMaterial(_ material: LayerMaterial) {
    expect((material.lifetime ?? 0) <= 10 * AccessGrant.longestLifetime, "a session for ever")
    expect(material.refreshToken?.isEmpty != true, "a refresh token without an octet")
}
