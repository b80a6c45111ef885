internal import Handshakes

/// Logins and logouts under way, and those that ended a short time ago.
struct Logins {
    /// By their flows, which name them.
    private var flows: [String: KeptLogin] = [:]
    /// When operators are told next that a login is needed.
    var alarm: Alarm?
    /// The authentication that logins are to be made with, and were.
    var stepUps = StepUps()

    /// Under way and ended together.
    static let most = 32
    /// Nanoseconds for which nobody may ask before a login counts as left, and for which its end can be asked for.
    static let lease: UInt64 = 60_000_000_000
    static let memory: UInt64 = 300_000_000_000

    subscript(flow: String) -> KeptLogin? { flows[flow] }

    func of(_ identity: KeptIdentity) -> [KeptLogin] {
        flows.values.filter { $0.identity === identity }.inOrder { Array($0.flow.utf8) }
    }

    mutating func add(_ login: KeptLogin) { flows[login.flow] = login }

    /// Forgets what ended long ago, and the one that ended first where there are too many.
    /// - Returns: what is forgotten.
    mutating func makeRoom(at now: UInt64) -> [KeptLogin] {
        let ended = flows.values.filter { $0.endedAt != nil }.sorted {
            ($0.endedAt ?? 0, $0.flow) < ($1.endedAt ?? 0, $1.flow)
        }
        var gone = ended.filter { now - ($0.endedAt ?? now) > Self.memory }
        if flows.count - gone.count >= Self.most { gone = Array(ended.prefix(gone.count + 1)) }
        for login in gone { flows[login.flow] = nil }
        return gone
    }

    var hasRoom: Bool { flows.count < Self.most }
}

/// When what a person's login brought ends.
struct LoginEnd: Equatable {
    let end: UInt64
    /// From when on that is worth a warning: the last fifth of its life, at most a week.
    let warning: UInt64

    /// Nil where nobody has said when.
    init?(_ material: LayerMaterial) {
        let life =
            material.refreshToken == nil
            ? material.lifetime.map { RefreshLife(left: $0, whole: $0) } : material.refreshLife
        guard let life else { return nil }
        let (end, overflow) = material.obtainedAt.addingReportingOverflow(life.left)
        guard !overflow else { return nil }
        self.end = end
        warning = end - min(end, min(life.whole / 5, 7 * 86_400_000_000_000))
    }

    /// - Returns: the first moment after now at which there is something new to tell.
    func next(after now: UInt64) -> UInt64 { [end, warning].filter { $0 > now }.min() ?? .max }
}

extension LoginNeed {
    /// - Parameters:
    ///   - material: what the identity's session holds; nil: nothing.
    ///   - wish: what an upstream asks of the next login.
    init(_ material: LayerMaterial?, asked wish: StepUp?, at now: UInt64) {
        self.init(material, at: now)
        asked = wish.map { "\($0)" }
        if word == .good, wish != nil { word = .soon }
    }

    /// - Parameter material: what the identity's session holds; nil: nothing.
    init(_ material: LayerMaterial?, at now: UInt64) {
        guard let material, material.refreshToken != nil || material.isLive(at: now) else {
            self.init(word: .needed, expiresIn: nil)
            return
        }
        guard let life = LoginEnd(material) else {
            self.init(word: .good, expiresIn: nil)
            return
        }
        self.init(
            word: now >= life.end ? .needed : now >= life.warning ? .soon : .good,
            expiresIn: life.end - min(life.end, now))
    }
}
