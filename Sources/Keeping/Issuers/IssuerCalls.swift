internal import DataPath
internal import Handshakes
internal import Tokens

/// The servers that the keeper calls: the ways to reach each, how many calls are under way, whether the server answers,
/// and what its clock says. Time is a parameter.
struct IssuerCalls {
    /// Calls to one issuer that wait for each other. Calls that are allowed different numbers do not: behind one that may be the fourth, a
    /// sixtieth would wait in vain.
    struct Line: Hashable {
        let issuer: IssuerKey
        /// Calls at once, as `network.connections` allows.
        let limit: Int
    }

    /// Issuers of which connections, breakers and clocks are kept; reloads and discovery bring new ones.
    static let most = 256

    private let seed: UInt64
    private var groups: [IssuerKey: UpstreamGroup] = [:]
    /// Queues at issuers that are called now. No call waits longer than any caller of its does (`acquire_timeout`), so there are no more of
    /// them than tokens.
    private var queues: [Line: CallQueue] = [:]
    /// By origin, as URLs write it.
    private var breakers: [String: Breaker] = [:]
    /// By host and port.
    private var skews: [String: ClockSkew] = [:]

    /// - Parameter seed: of the jitter of pauses.
    init(seed: UInt64) { self.seed = seed }

    // MARK: - Queues

    /// No issuer is called now.
    var isIdle: Bool { queues.isEmpty }
    var waiting: [Wait<Bool>] { queues.values.flatMap(\.waiting) }

    /// - Returns: false where the call has to wait.
    mutating func enter(_ line: Line, _ wait: Wait<Bool>) -> Bool {
        queues[line, default: CallQueue()].enter(wait, limit: line.limit)
    }

    /// - Returns: whose call may be made now.
    mutating func leave(_ line: Line) -> Wait<Bool>? {
        defer { if queues[line]?.isEmpty == true { queues[line] = nil } }
        return queues[line]?.leave()
    }

    mutating func giveUp(_ wait: Wait<Bool>, in line: Line) { queues[line]?.giveUp(wait) }

    // MARK: - Breakers

    /// Before a call. Each that may be made is followed by `answered` or `failed`.
    mutating func ask(_ origin: String, at now: UInt64) throws(IssuerFault) {
        if breakers.count >= Self.most, breakers[origin] == nil {
            // Discovery names issuers that nobody calls any more.
            breakers = breakers.filter { $0.value.state(at: now) == .open }
            guard breakers.count < Self.most else { throw IssuerFault(.overloaded, provablyUnsent: true) }
        }
        if case .refuse(let wait) = breakers[origin, default: Breaker(seed: seed)].ask(at: now) {
            throw IssuerFault(.suspended(seconds: Int(clamping: wait / 1_000_000_000 + 1)), provablyUnsent: true)
        }
    }

    /// - Parameter wall: milliseconds since 1970.
    /// - Returns: for how many nanoseconds the issuer is left alone, where this answer has begun a pause.
    mutating func answered(_ answer: IssuerAnswer, to url: IssuerURL, at now: UInt64, wall: Int64) -> UInt64? {
        if let time = answer.issuerTime {
            let server = Self.server(url.host, url.port)
            // The next answer of each teaches it again.
            if skews.count >= Self.most, skews[server] == nil { skews = [:] }
            skews[server, default: ClockSkew()].learn(issuerDate: time, wall: wall / 1000)
        }
        guard answer.status < 500, answer.status != 429 else {
            let wait = answer.retryAfter.map { UInt64(max(0, $0)) * 1_000_000_000 }
            return breakers[url.origin, default: Breaker(seed: seed)].failed(retryAfter: wait, at: now)
        }
        breakers[url.origin]?.answered()
        return nil
    }

    /// - Returns: as above.
    mutating func failed(_ fault: IssuerFault, _ origin: String, at now: UInt64) -> UInt64? {
        switch fault.kind {
        // Our own limits say nothing of the issuer.
        case .overloaded, .cancelled:
            breakers[origin]?.notSent()
            return nil
        default: return breakers[origin, default: Breaker(seed: seed)].failed(retryAfter: nil, at: now)
        }
    }

    func statuses(at now: UInt64) -> [IssuerStatus] {
        breakers.sorted { $0.key < $1.key }.map { origin, breaker in
            IssuerStatus(issuer: origin, breaker: breaker.state(at: now), pauses: breaker.pauses)
        }
    }

    // MARK: - Clocks

    private static func server(_ host: some CustomStringConvertible, _ port: some BinaryInteger) -> String {
        "\(host):\(port)"
    }

    func skew(of issuer: Origin) -> ClockSkew { skews[Self.server(issuer.host, issuer.port)] ?? ClockSkew() }

    // MARK: - Connections

    func group(_ key: IssuerKey) -> UpstreamGroup? { groups[key] }

    /// A group that is not used gives way where there are too many.
    mutating func add(_ group: UpstreamGroup, _ key: IssuerKey) throws(IssuerFault) {
        if groups.count >= Self.most {
            let unused = groups.filter { $0.value.isUnused }.keys
            guard let unused = unused.min(by: { $0.origin < $1.origin }) else {
                throw IssuerFault(.overloaded, provablyUnsent: true)
            }
            groups[unused] = nil
        }
        groups[key] = group
    }
}
