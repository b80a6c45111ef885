internal import DataPath
internal import Tokens

/// Who has a token of his own: how many users, URLs and realms there may be, and whose requests wait.
struct Users {
    /// End users, and URLs that have a token each.
    var subjects: SubjectBook
    /// The pace at which realms and paths take the place of others.
    var realms: SubjectBook
    /// Requests of end users that wait: a gateway may hold too many users to look through.
    private var waiting: [Ticket: WeakToken] = [:]
    private var swept = 0

    init(_ limits: SubjectBook.Limits) {
        subjects = SubjectBook(limits)
        realms = SubjectBook(limits)
    }

    var limits: SubjectBook.Limits {
        get { subjects.limits }
        set {
            subjects.limits = newValue
            realms.limits = newValue
        }
    }

    /// Requests that are found by their tickets; some of them may have been answered.
    var waitingCount: Int { waiting.count }

    /// So that one who leaves is found without a look at every token. Requests for what is everybody's are not noted.
    mutating func waits(_ ticket: Ticket, for token: KeptToken) {
        guard token.key.subject != nil else { return }
        waiting[ticket] = WeakToken(token: token)
        // Requests that were answered are swept now and then instead of one by one.
        guard waiting.count > 2 * swept + 1024 else { return }
        waiting = waiting.filter { ticket, waiting in waiting.token?.isAwaited(by: ticket) ?? false }
        swept = waiting.count
    }

    /// - Returns: whose token it waited for; nil where it was not an end user's.
    mutating func left(_ ticket: Ticket) -> KeptToken? { waiting.removeValue(forKey: ticket)?.token }

    /// A ticket keeps nobody in memory.
    private struct WeakToken {
        weak var token: KeptToken?
    }
}

extension KeptToken {
    func isAwaited(by ticket: Ticket) -> Bool {
        tickets.contains(ticket) || postponed.contains { $0.ticket == ticket }
    }

    /// The request has left.
    func drop(_ ticket: Ticket) {
        if !tickets.isEmpty { tickets.removeAll { $0 == ticket } }
        if !postponed.isEmpty { postponed.removeAll { $0.ticket == ticket } }
    }
}
