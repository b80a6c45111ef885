/// The trial of a `basic` secret: every request is a login attempt, so an unproven secret is tried by one request alone
/// (docs/design/tokens.md#rule-3).
///
/// Until the secret has succeeded once, nothing is published: every request is a miss and asks here. After that the record
/// is in the hot cache, and only refusals (and successes while `wantsSuccesses`) are reported.
public struct BasicProbation: Sendable {
    /// Different paths that must refuse, with no success between, before a proven secret counts as changed elsewhere: one may be closed
    /// to this user alone.
    public static let pathLimit = 3

    /// A request that waits for the verdict on the secret.
    public typealias Ticket = ScoutMachine.Ticket

    /// The keeper's orders, to be carried out in this order.
    public enum Action: Equatable, Sendable {
        /// Goes out with the credential; its result is reported.
        case dispatch(Ticket)
        /// The secret has succeeded: publish it, then let these go.
        case publish([Ticket])
        case refuse([Ticket], GrantFailure)
        /// Persist the mark and take the record out of the cache.
        case quarantine
        /// Take the record out of the cache; whoever has met the refusal has booked it.
        case withdraw
    }

    /// `unproven`: no answer has shown yet that the upstream takes the secret. `quarantined`: it is not sent again.
    public enum State: Equatable, Sendable {
        case unproven, proven, quarantined
    }

    /// Begins as unproven; `restored` and the events below change it.
    public private(set) var state = State.unproven
    /// The ticket of the request that makes the one try of an unproven secret.
    public private(set) var trial: Ticket?
    /// The try has left, and the upstream will answer it.
    private var isSent = false
    private var waiting: [Ticket] = []
    private var refusedPaths: Set<ByteString> = []

    private let pathLimit: Int

    /// - Parameter pathLimit: the paths that must refuse before a proven secret is quarantined, at least 1.
    public init(pathLimit: Int = BasicProbation.pathLimit) { self.pathLimit = pathLimit }

    /// The secret is on its one try.
    public var isTrying: Bool { trial != nil }

    /// Whether a success tells anything new.
    var wantsSuccesses: Bool { state == .unproven || !refusedPaths.isEmpty }

    // MARK: - Events

    /// A request wants to go out with the secret.
    public mutating func arrived(_ ticket: Ticket) -> [Action] {
        switch state {
        case .quarantined: return [.refuse([ticket], .credentialRejected)]
        case .proven: return [.publish([ticket])]
        case .unproven:
            guard trial != nil else {
                trial = ticket
                return [.dispatch(ticket)]
            }
            waiting.append(ticket)
            return []
        }
    }

    /// Whether a dispatch that was ordered a while ago is still to be carried out.
    public func isToSend(_ ticket: Ticket) -> Bool { trial == ticket && !isSent }

    /// The dispatch has been carried out.
    public mutating func sent(_ ticket: Ticket) {
        if trial == ticket { isSent = true }
    }

    /// Any answer but a refusal of the credential.
    public mutating func succeeded() -> [Action] {
        refusedPaths = []
        guard state == .unproven else { return [] }
        state = .proven
        return [.publish(endTrial())]
    }

    /// - Returns: whoever is to be told of the outcome; the try that has left is told by the upstream.
    private mutating func endTrial() -> [Ticket] {
        defer { (trial, isSent, waiting) = (nil, false, []) }
        return (isSent ? [] : trial.map { [$0] } ?? []) + waiting
    }

    /// A 401 to the credential. It was sent with the secret of now; later ones are told by `secretChanged`.
    public mutating func refused(path: ByteString) -> [Action] {
        switch state {
        case .quarantined: return []
        case .unproven: return quarantine()
        case .proven:
            refusedPaths.insert(path)
            return refusedPaths.count >= pathLimit ? quarantine() : []
        }
    }

    /// The marks say that this secret was refused before, or another gateway of the fleet has just met a refusal. The request on trial, if
    /// any, has not gone out. A proven secret is in the cache, from where it would go out with every further request.
    public mutating func quarantined() -> [Action] {
        let isPublished = state == .proven
        state = .quarantined
        refusedPaths = []
        return (isPublished ? [.withdraw] : []) + refuseAll(.credentialRejected)
    }

    /// The try may not be made now; whoever waits for it is told so, and the next one asks again.
    public mutating func withheld() -> [Action] {
        refuseAll(.notPermitted(retryAfter: .seconds(1)))
    }

    private mutating func refuseAll(_ failure: GrantFailure) -> [Action] {
        let refused = endTrial()
        return refused.isEmpty ? [] : [.refuse(refused, failure)]
    }

    /// A caller left, or its exchange ended without an answer: nothing is proven, the next one tries.
    public mutating func left(_ ticket: Ticket) -> [Action] {
        guard trial == ticket else {
            waiting.removeAll { $0 == ticket }
            return []
        }
        return tryNext()
    }

    private mutating func tryNext() -> [Action] {
        trial = waiting.isEmpty ? nil : waiting.removeFirst()
        isSent = false
        return trial.map { [.dispatch($0)] } ?? []
    }

    /// A new secret, or a reset by the operator: all begins anew. The first that waits tries it, before all others the one whose try of
    /// the former secret has not left.
    public mutating func secretChanged() -> [Action] {
        state = .unproven
        refusedPaths = []
        if let trial, !isSent { return [.dispatch(trial)] }
        return tryNext()
    }

    private mutating func quarantine() -> [Action] {
        state = .quarantined
        refusedPaths = []
        return [.quarantine] + refuseAll(.credentialRejected)
    }
}
