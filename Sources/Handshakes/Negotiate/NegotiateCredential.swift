internal import GSSAPI
internal import Synchronization

/// The tickets of one identity, on the threads of GSSAPI.
///
/// MIT renews no credential that is held, so another one is acquired when half of its life is over, beside the requests, which go on with the
/// one that is there. A KDC that is silent blocks a call for half a minute, and the library remembers nothing of that: what has failed so is
/// not tried again at once. Neither are keys that a KDC has refused, since each attempt counts towards a lock-out.
final class NegotiateCredential: Sendable {
    private let source: GSSCredential.Source
    /// The key of its jobs: one runs at a time.
    private let name: String
    /// Milliseconds since 1970.
    private let clock: @Sendable () -> Int64
    private let state = Mutex(State())

    private struct State {
        var held: GSSCredential?
        var heldSince: Int64 = 0
        /// The keytab as it was read last.
        var keys: Secret?
        var renewsAt: Int64 = 0
        var isRenewing = false
        /// The refusal of these keys, for the calls that wait behind it. The keeper holds back later ones.
        var refusal: Rest?
        /// For which servers no KDC answered. Bounded by the hosts of routes.
        var rests: [String: Rest] = [:]
    }

    private struct Rest {
        var until: Int64
        var fault: GSSFault
    }

    /// Milliseconds without another try.
    private static let rest: Int64 = 30_000

    init(_ source: GSSCredential.Source, of name: String, clock: @escaping @Sendable () -> Int64) {
        self.source = source
        self.name = name
        self.clock = clock
    }

    /// The threads of all identities, made with the first job. They belong to no configuration, because a call that blocks
    /// outlives any.
    private static let worker = GSSWorker<String>(waiting: 4096, waitingOfKey: 1024)

    /// The first token to a server.
    struct FirstToken: Sendable {
        let initiator: GSSInitiator
        let bytes: [UInt8]
        /// Seconds that the tickets are still valid; nil: without an end.
        let lifetime: UInt32?
    }

    /// - Parameters:
    ///   - bindings: as `GSSInitiator` takes them.
    ///   - patience: milliseconds that are waited for it.
    func begin(
        to target: GSSTarget, bindings: [UInt8]?, mutual: Bool, within patience: Int64
    ) async throws(GSSFault) -> FirstToken {
        try await run(for: "\(target)", within: patience) { () throws(GSSFault) in
            let credential = try self.credential()
            let initiator = try GSSInitiator(credential, target: target, channelBindings: bindings, mutual: mutual)
            let bytes = try initiator.step(nil).output
            return FirstToken(initiator: initiator, bytes: bytes, lifetime: try credential.remainingLifetime())
        }
    }

    /// Takes in a token of the server. It asks no KDC, and so what it fails by says nothing of one.
    func advance(
        _ initiator: GSSInitiator, with token: [UInt8], within patience: Int64
    ) async throws(GSSFault) -> GSSInitiator.Step {
        try await submit(within: patience) { () throws(GSSFault) in try initiator.step(token) }
    }

    /// Seconds that the tickets are still valid; nil: without an end.
    func lifetime(within patience: Int64) async throws(GSSFault) -> UInt32? {
        try await run(for: "", within: patience) { () throws(GSSFault) in
            try self.credential().remainingLifetime()
        }
    }

    /// Tickets that were had with other keys are not used any more.
    func noteKeys(_ keys: Secret) {
        state.withLock { state in
            guard state.keys != keys else { return }
            if state.keys != nil { state.held = nil }
            state.keys = keys
            state.refusal = nil
        }
    }

    /// Nothing of before is used any more, and whatever rests may be tried at once.
    func forget() {
        state.withLock { state in
            state.held = nil
            state.refusal = nil
            state.rests = [:]
        }
    }

    /// A server has refused a token. It may have other keys since the ticket for it was made, so that the next token is made of new tickets,
    /// but for a server that refuses each of them not with every request.
    func noteRefusal() {
        state.withLock { state in
            if clock() >= state.heldSince + Self.rest { state.held = nil }
        }
    }

    // MARK: - Calls

    /// - Parameter purpose: tells what rests after a failure.
    private func run<Value: Sendable>(
        for purpose: String, within patience: Int64, _ work: @escaping @Sendable () throws(GSSFault) -> Value
    ) async throws(GSSFault) -> Value {
        if let rest = state.withLock({ $0.rests[purpose] }), clock() < rest.until { throw rest.fault }
        do throws(GSSFault) { return try await submit(within: patience, work) } catch {
            note(error, for: purpose)
            throw error
        }
    }

    private func submit<Value: Sendable>(
        within patience: Int64, _ work: @escaping @Sendable () throws(GSSFault) -> Value
    ) async throws(GSSFault) -> Value {
        let result: Result<Value, GSSFault> = await withCheckedContinuation { continuation in
            Self.worker.submit(key: name, within: patience) {
                Result { () throws(GSSFault) in try work() }
            } completion: { outcome in
                switch outcome {
                case .done(let result): continuation.resume(returning: result)
                case .tooLate:
                    continuation.resume(returning: .failure(GSSFault(.tooLate, "no answer of a KDC in time")))
                case .refused, .closed:
                    continuation.resume(returning: .failure(GSSFault(.other, "too many tickets are asked for at once")))
                }
            }
        }
        return try result.get()
    }

    private func note(_ fault: GSSFault, for purpose: String) {
        state.withLock { state in
            switch fault.kind {
            case .kdcUnreachable, .tooLate: state.rests[purpose] = Rest(until: clock() + Self.rest, fault: fault)
            // The tickets are good all the same.
            case .other, .serverUnknown: break
            // Whatever was wrong with them, the next request begins with others.
            default: state.held = nil
            }
        }
    }

    // MARK: - On a thread of GSSAPI

    private func credential() throws(GSSFault) -> GSSCredential {
        let now = clock()
        let (held, renews) = state.withLock { state in
            let renews = now >= state.renewsAt && !state.isRenewing
            if state.held != nil, renews { state.isRenewing = true }
            return (state.held, renews)
        }
        guard let held else { return try acquire() }
        guard renews else { return held }
        // A file of tickets asks no KDC.
        if case .cache = source { return renewed() ?? held }
        Self.worker.submit(key: "\(name), renewal", within: Self.rest) {
            _ = self.renewed()
        } completion: { outcome in
            // The job may never begin, or end long after this; the next request may ask for another one.
            guard case .done = outcome else { return self.postponeRenewal() }
        }
        return held
    }

    private func postponeRenewal() {
        state.withLock { ($0.isRenewing, $0.renewsAt) = (false, clock() + Self.rest) }
    }

    /// - Returns: nil where others could not be had; those that are there are good for a while yet.
    private func renewed() -> GSSCredential? {
        let made = try? acquire()
        state.withLock { state in
            state.isRenewing = false
            if made == nil { state.renewsAt = clock() + Self.rest }
        }
        return made
    }

    private func acquire() throws(GSSFault) -> GSSCredential {
        if let refusal = state.withLock({ $0.refusal }), clock() < refusal.until { throw refusal.fault }
        do throws(GSSFault) {
            let made = try GSSCredential(GSSLibrary.open(), source, mechanism: .spnego)
            let half = try made.remainingLifetime().map { Int64($0) * 500 } ?? 3_600_000
            // A file of tickets is looked at again soon: another program may have put fresher ones there.
            let span = if case .cache = source { min(half, 60_000) } else { half }
            let now = clock()
            state.withLock { ($0.held, $0.heldSince, $0.renewsAt) = (made, now, now + span) }
            return made
        } catch {
            if [.keysWrong, .clientUnknown, .clientRevoked].contains(error.kind) {
                state.withLock { $0.refusal = Rest(until: clock() + Self.rest, fault: error) }
            }
            throw error
        }
    }
}
