/// Connecting to one of several addresses, after RFC 8305: a pure machine, events in, actions out. `Dialer` is its interpreter.
///
/// Attempts begin 250 ms apart, or at once when the one before has failed; the first that connects wins, and the others are closed. The
/// connect timeout bounds all of them together and is the interpreter's. Section 3's waiting for the AAAA answer has no place here:
/// `getaddrinfo` gives both families in one answer, sorted after RFC 6724.
struct HappyEyeballs {
    private var attempts: [Attempt]
    private(set) var isOver = false

    /// RFC 8305 section 5, the recommended Connection Attempt Delay, nanoseconds.
    static let attemptDelay: UInt64 = 250_000_000

    private enum Attempt { case untried, trying, failed }

    enum Event: Equatable {
        case begun
        /// The attempt at this candidate.
        case failed(Int)
        case connected(Int)
        case delayPassed
        /// The time for all of them is over, or nobody wants the connection any more.
        case ended
    }

    enum Action: Equatable {
        case connect(Int)
        /// Give `delayPassed` at this time; it replaces the one before.
        case wait(until: UInt64)
        /// Close this attempt. `overtaken`: one that began later was faster.
        case abandon(Int, overtaken: Bool)
        case won(Int)
        case lost
    }

    /// - Parameter candidates: how many addresses there are, in the order in which to try them.
    init(candidates: Int) { attempts = Array(repeating: .untried, count: candidates) }

    mutating func on(_ event: Event, at now: UInt64) -> [Action] {
        guard !isOver else { return [] }
        switch event {
        case .begun, .delayPassed: return next(at: now)
        case .failed(let index):
            attempts[index] = .failed
            return next(at: now)
        case .connected(let winner):
            isOver = true
            return abandonAll(but: winner) + [.won(winner)]
        case .ended:
            isOver = true
            return abandonAll(but: nil)
        }
    }

    /// The candidates that no attempt has failed at, but for the one that was connected.
    func unfailed(but winner: Int) -> [Int] {
        attempts.indices.filter { index in
            if case .failed = attempts[index] { false } else { index != winner }
        }
    }

    private mutating func next(at now: UInt64) -> [Action] {
        guard let index = attempts.firstIndex(of: .untried) else {
            if attempts.contains(.trying) { return [] }
            isOver = true
            return [.lost]
        }
        attempts[index] = .trying
        let isLast = !attempts.contains(.untried)
        return isLast ? [.connect(index)] : [.connect(index), .wait(until: now + Self.attemptDelay)]
    }

    private func abandonAll(but winner: Int?) -> [Action] {
        attempts.indices.filter { $0 != winner && attempts[$0] == .trying }.map { index in
            .abandon(index, overtaken: winner.map { index < $0 } ?? false)
        }
    }

    // MARK: - Order

    /// Takes turns between the two families, beginning with the first element's, and keeps the order within each (RFC 8305 section 4,
    /// First Address Family Count 1).
    static func interleave<Element>(_ list: [Element], isIPv6: (Element) -> Bool) -> [Element] {
        guard let first = list.first else { return [] }
        let leading = list.filter { isIPv6($0) == isIPv6(first) }
        let following = list.filter { isIPv6($0) != isIPv6(first) }
        var result: [Element] = []
        for index in 0..<max(leading.count, following.count) {
            if index < leading.count { result.append(leading[index]) }
            if index < following.count { result.append(following[index]) }
        }
        return result
    }
}
