internal import Fleet
internal import Handshakes
internal import Tokens

/// The sessions of a fleet as this gateway knows them: how far each has come, under which name news are of it, and what a step may start
/// from where the server does not have the newest one that is known. Whoever writes to the server can delete a session or put an older one
/// back, it may have to make room, and it may come up empty.
struct FleetSessions: Sendable {
    var versions = FleetVersions()
    /// The sessions that news are about, by the names in them. Entries of sessions that are gone are dropped now and then.
    private var keys: [SharedName: SessionKey] = [:]
    /// The versions of all other sessions that news have told.
    private var heard = HeardSessions()
    /// When the others were last asked for a session that the server does not have. Nanoseconds of the loop's clock.
    private var recalls: [SessionKey: UInt64] = [:]
    /// Versions of which operators were told that they are lost.
    private var toldLost: [SessionKey: SessionVersion] = [:]
    /// Turns whose outcome could not be committed: what they spent is known to this gateway alone.
    var uncommitted: [SessionKey: SharedLease] = [:]

    /// For which whoever has a missing session puts it back: longer than a gateway needs to connect again. Nanoseconds.
    static let recallTime: UInt64 = 1_500_000_000
    /// All gateways are asked for a session at most once in this time, whatever becomes of it. Nanoseconds.
    static let recallInterval: UInt64 = 30_000_000_000
    /// Sessions of which `recalls` and `toldLost` are kept each.
    private static let most = 1024

    /// From now on news under this name are of the session; what they have told until now counts.
    /// - Parameter wall: milliseconds since 1970.
    mutating func met(_ name: SharedName, _ key: SessionKey, beside sessions: Sessions, at wall: Int64) {
        if keys.count > 2 * (sessions.held.count + versions.count) + 1024 {
            keys = keys.filter { sessions[$0.value] != nil || versions[$0.value] != nil }
        }
        guard keys.updateValue(key, forKey: name) == nil, let heard = heard.take(name) else { return }
        if heard.isOver {
            versions.ended(heard.version, of: key, at: wall)
        } else {
            _ = versions.saw(heard.version, of: key, at: wall)
        }
    }

    // MARK: - Where a step starts

    /// A step whose turn with the fleet has come.
    struct Step {
        let key: SessionKey
        /// The rung at which this gateway's own ladder stands, and the material there.
        let rung: SessionRung
        let standing: LayerMaterial?
        /// The session as the server has it.
        let found: SharedSession?
        /// The server's material, where it has just been taken up as newer than what was here.
        let newer: LayerMaterial?
        let claim: SessionClaim
        /// The login can be replaced by a person alone.
        let isIrreplaceable: Bool
        /// The session that is here has a refresh token.
        let hasRefreshToken: Bool

        /// Another gateway has brought what is wanted.
        func ready(at now: UInt64) -> LayerMaterial? {
            guard !claim.isOwn, let newer, newer.isLive(at: now), newer.bytes != claim.refused?.bytes else {
                return nil
            }
            return newer
        }
    }

    enum Start: Equatable {
        case from(SessionRung, LayerMaterial?)
        /// The others are asked first for what the server does not have.
        case askOthers
        case lost
    }

    mutating func start(_ step: Step, at now: UInt64) -> Start {
        if let newer = step.newer { return .from(newer.refreshToken == nil ? .fullGrant : .refreshToken, newer) }
        let ground = ground(of: step)
        if ground != .sound, mayAsk(for: step.key, at: now) { return .askOthers }
        guard ground == .lost else { return .from(step.rung, step.standing) }
        return step.claim.canGrantFully && !step.isIrreplaceable ? .from(.fullGrant, nil) : .lost
    }

    /// The soundness of what a step would start from.
    private enum Ground {
        /// Nothing that is known to be newer is missing.
        case sound
        /// The server has not what this gateway knows; nothing newer is known, but others may know more.
        case missing
        /// Something newer than what this gateway has is known, and the server does not have it.
        case lost
    }

    private func ground(of step: Step) -> Ground {
        let isRefresh = step.rung == .refreshToken
        // A grant that any secret can make anew spends nothing.
        guard isRefresh || step.isIrreplaceable else { return .sound }
        if let found = step.found, found.version >= versions.newest(of: step.key) {
            // The refresh token of a session that has ended is not sent any more, and a session that could not be read may be newer
            // than the one here.
            let isHeld = (versions.held(of: step.key) ?? .none) == found.version && !found.value.isEmpty
            return isRefresh && !isHeld ? .lost : .sound
        }
        // A first refresh token that nobody is known to have sent.
        guard let known = versions[step.key] else { return .missing }
        if known.isEnded { return isRefresh ? .lost : .missing }
        return versions.holdsNewest(of: step.key) && (step.hasRefreshToken || !isRefresh) ? .missing : .lost
    }

    private mutating func mayAsk(for key: SessionKey, at now: UInt64) -> Bool {
        if let asked = recalls[key], now - min(asked, now) < Self.recallInterval { return false }
        if recalls.count > Self.most { recalls = recalls.filter { now - min($0.value, now) < Self.recallInterval } }
        recalls[key] = now
        return true
    }

    /// - Returns: whether operators are to be told that the newest one is lost: once for each version.
    mutating func noteLost(_ key: SessionKey) -> Bool {
        guard versions.newest(of: key) != toldLost[key] else { return false }
        if toldLost.count > Self.most { toldLost = [:] }
        toldLost[key] = versions.newest(of: key)
        return true
    }

    // MARK: - News

    /// The action that news of a session ask for.
    enum Answer: Equatable {
        case nothing
        /// The session is looked up on the server.
        case look(SessionKey)
        /// The session is looked up on the server, because it has moved; what is known of its version goes to disk.
        case follow(SessionKey)
        /// The session as this gateway has it goes to the server.
        case offer(SessionKey, SessionVersion)
        /// The server is told that the session has ended.
        case end(SessionVersion)
        /// The session has ended with that version.
        case drop(SessionKey, SessionVersion)
    }

    /// Another gateway has brought a version.
    mutating func moved(
        _ name: SharedName, to version: SessionVersion, at wall: Int64, _ catalogue: Catalogue, _ sessions: Sessions
    ) -> Answer {
        guard let key = keys[name] else {
            heard.note(version, of: name, isOver: false)
            return .nothing
        }
        guard let identity = catalogue.identityOrRetired(key.digest) else { return .nothing }
        guard versions.saw(version, of: key, at: wall) else {
            // The gateway that tells an older version was away and starts from it, or was given it.
            return version < versions.newest(of: key) ? missed(name, sessions) : .nothing
        }
        return identity.policy.isIrreplaceable || sessions.hasRefreshToken(key) ? .follow(key) : .nothing
    }

    /// The server has not got what another gateway knows of.
    func missed(_ name: SharedName, _ sessions: Sessions) -> Answer {
        guard let key = keys[name] else { return .nothing }
        if sessions[key] != nil, let version = versions.offered(key) { return .offer(key, version) }
        if let known = versions[key], known.isTold { return .end(known.newest) }
        return .nothing
    }

    /// Another gateway has ended the session.
    mutating func ended(_ name: SharedName, _ version: SessionVersion?) -> Answer {
        guard let key = keys[name] else {
            if let version { heard.note(version, of: name, isOver: true) }
            return .nothing
        }
        // Nothing is erased for news that do not say which one it was: anybody can send those.
        return version.map { .drop(key, $0) } ?? .look(key)
    }

    /// The session has ended with that version, as far as is known.
    /// - Returns: whether that is new, and goes to disk.
    mutating func noteEnded(_ key: SessionKey, _ version: SessionVersion, at wall: Int64) -> Bool {
        if let known = versions[key], known.isTold, known.newest >= version { return false }
        versions.ended(version, of: key, at: wall)
        return versions[key] != nil
    }
}
