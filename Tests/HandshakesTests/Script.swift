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

    nonisolated(nonsending) func send(_ call: IssuerCall) async throws(IssuerFault) -> IssuerAnswer {
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

/// What happened, in order, over issuer and ledger.
final class Journal: Sendable {
    private let lines = Mutex<[String]>([])
    func write(_ line: String) { lines.withLock { $0.append(line) } }
    var all: [String] { lines.withLock { $0 } }
}

/// Layers and attempts in plain memory.
final class MemoryLedger: GrantLedger {
    struct State: Sendable {
        var layers: [Layer: LayerMaterial] = [:]
        var secrets: [String: String] = ["password": "pa\"ss\\wörd", "client_secret": "s:cret +", "value": "fixed"]
        var outcomes: [AttemptOutcome] = []
        var isQuarantined = false
        var openAttempts = 0
        var appearsDuringWait: [Layer: LayerMaterial] = [:]
        var refusesCommits = false
        var forgetsCommits = false
    }

    let state: Mutex<State>
    let journal: Journal

    init(_ state: State = State(), journal: Journal = Journal()) {
        self.state = Mutex(state)
        self.journal = journal
    }

    convenience init(
        handle: String? = nil, session: String? = nil, password: String? = nil, journal: Journal = Journal()
    ) {
        var state = State()
        if let handle { state.layers[.durable] = LayerMaterial(bytes: Secret(handle), obtainedAt: 1, lifetime: nil) }
        if let session {
            state.layers[.session] = LayerMaterial(bytes: Secret(session), obtainedAt: 1, lifetime: 1_000_000)
        }
        if let password { state.secrets["password"] = password }
        self.init(state, journal: journal)
    }

    var outcomes: [AttemptOutcome] { state.withLock { $0.outcomes } }
    var isBalanced: Bool { state.withLock { $0.openAttempts == 0 } }
    func held(_ layer: Layer) -> Secret? { state.withLock { $0.layers[layer]?.bytes } }

    nonisolated(nonsending) func material(_ layer: Layer) async -> LayerMaterial? {
        state.withLock { $0.layers[layer] }
    }

    nonisolated(nonsending) func commit(_ layer: Layer, _ material: LayerMaterial) async throws(GrantFailure) {
        journal.write("commit \(layer)")
        let refused = state.withLock { state in
            if !state.refusesCommits, !state.forgetsCommits { state.layers[layer] = material }
            return state.refusesCommits
        }
        if refused { throw .internal(reason: "epoch passed") }
    }

    nonisolated(nonsending) func drop(_ layer: Layer, ifStill material: LayerMaterial) async {
        journal.write("drop \(layer)")
        state.withLock { if $0.layers[layer] == material { $0.layers[layer] = nil } }
    }

    nonisolated(nonsending) func secret(_ name: String) async throws(GrantFailure) -> Secret {
        guard let text = state.withLock({ $0.secrets[name] }) else {
            throw .secretUnreadable(name: name, reason: "absent")
        }
        return Secret(text)
    }

    nonisolated(nonsending) func spendAttempt(user: String) async throws(GrantFailure) {
        let quarantined = state.withLock { state in
            if state.isQuarantined { return true }
            state.openAttempts += 1
            for (layer, material) in state.appearsDuringWait { state.layers[layer] = material }
            return false
        }
        if quarantined { throw .quarantined }
        journal.write("spend \(user)")
    }

    nonisolated(nonsending) func settleAttempt(_ outcome: AttemptOutcome) async {
        journal.write("settle \(outcome)")
        state.withLock { state in
            state.openAttempts -= 1
            state.outcomes.append(outcome)
            if outcome == .rejected || outcome == .unknown { state.isQuarantined = true }
        }
    }

    nonisolated(nonsending) func now() async -> UInt64 { 10_000 }
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
        case .quarantined: "quarantined"
        case .configuration: "configuration"
        case .interactionRequired: "interaction"
        case .policyDenied: "denied"
        case .timedOut: "timedOut"
        case .challengeNeeded: "challengeNeeded"
        case .secretUnreadable: "secret"
        case .internal: "internal"
        }
    }
}

extension Secret {
    var text: String { withBytes { String(decoding: $0, as: UTF8.self) } }
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
