internal import DataPath
internal import Fleet
internal import Handshakes
internal import HotCache
internal import Tokens

/// The token of one access key, as the keeper holds it: the machine, the bytes that it decides over, and who waits for them.
/// Touched on the keeper's loop only, hence safe to hand through its tasks.
final class KeptToken: @unchecked Sendable {
    let key: AccessKey
    let slot: Slot
    let identity: KeptIdentity
    var machine: AccessTokenMachine

    /// The ready field line of the served token and of one that waits for its commit, with their generations.
    var line: (generation: UInt64, bytes: Secret)?
    var landing: (generation: UInt64, bytes: Secret)?
    /// The generation whose row is in the store; 0 for none. Its bytes may be in the hot cache alone.
    var storedGeneration: UInt64 = 0
    /// An earlier life of the gateway may have left a row, and nobody has looked yet.
    var mayBeStored = false
    var recall: KeptRecall?
    /// Under which the fleet knows it, and the value that is or was served, where there is a fleet.
    var sharedName: SharedName?
    var sharedIdentity: String?
    /// The challenge that the next flight answers. Single-use, never stored.
    var challenge: Handshakes.Challenge?
    /// The one that the flight under way answers.
    var answering: Handshakes.Challenge?
    /// The route whose request met it.
    weak var challengedRoute: KeptRoute?
    /// The route that the token was first made for: where a probe goes.
    weak var route: KeptRoute?
    /// Scopes, audience and resource as configured, for the request to the issuer.
    let wanted: Wanted
    /// Challenges that ask for more than the flight under way brings, as they came; looked at again when it is over. Few: each is a request
    /// that waits, but for one whose answer has gone to its caller.
    var postponed: [ChallengeOfRequest] = []

    /// Requests that the keeper answers one by one; loops that wait with the slot stand in the machine.
    var tickets: [Ticket] = []
    /// For `basic`: its secret has to succeed once before it is published.
    var probation: BasicProbation?
    /// In a fleet, the turn in which that is tried; and one is being waited for.
    var trial: FleetHold?
    var seeksTrial = false
    /// When it was last seen to be used: by a request that needed the keeper's word, or by hits since the look before.
    var usedAt: UInt64 = 0
    /// The stamps of the token's slot at the last look.
    var stamps: UInt64 = 0
    /// While it runs.
    var flightTask: Task<Void, Never>?
    /// Begun so far.
    var flights: UInt64 = 0
    /// Under which the flight claims a session.
    var claimant: SessionMachine.Claimant?
    var alarm: Alarm?
    /// The further state of a token for one end user or one URL; nil for all others.
    var subject: KeptSubject?
    var grants: UInt64 = 0
    /// The generation of the wider token that it was last served from, under a number of its own.
    var borrowed: UInt64 = 0
    /// Its last grant had fewer scopes than were asked for.
    var isNarrower = false
    /// No configured route leads to it; it serves exchanges that began when one did, and is not stored.
    var isRetired = false
    var lastFailure: String? {
        didSet {
            (failedAt, failureServer, failureReason) = (nil, nil, nil)
            toldFailure = lastFailure
        }
    }
    /// The last failure as callers may see it.
    fileprivate(set) var toldFailure: String?
    private(set) var failedAt: UInt64?
    /// The last failure in one word of ours.
    fileprivate(set) var failureReason: String?
    /// The server that was asked last before it.
    private(set) var failureServer: String?
    /// Where the last failure was a secret of ours and not the issuer.
    var secretFault: Fault.Kind?
    /// When a fixed credential's secret was last read.
    var loadedAt: UInt64 = 0
    /// The reading that was begun last, as long as it runs, by its claimant.
    var reading: SessionMachine.Claimant?
    /// Work that waits for the reading to end, whatever the reading brings.
    var onLoaded: [() -> Void] = []

    init(key: AccessKey, slot: Slot, identity: KeptIdentity, machine: AccessTokenMachine, wanted: Wanted) {
        self.key = key
        self.slot = slot
        self.identity = identity
        self.machine = machine
        self.wanted = wanted
    }

    fileprivate func note(_ server: String?, at now: UInt64) { (failedAt, failureServer) = (now, server) }
}

extension KeptToken {
    /// - Parameter server: the one that was asked last, `host:port`; nil where none was.
    func failed(_ failure: Handshakes.GrantFailure, asking server: String?, at now: UInt64) {
        failed("\(failure)", asking: server, at: now)
        toldFailure = failure.toldToCallers
        failureReason = failure.word.rawValue
        secretFault = Fault.Kind(secret: failure)
    }

    func failed(_ reason: String, asking server: String?, at now: UInt64) {
        lastFailure = reason
        note(server, at: now)
    }

    /// Whether the store has to be asked before the machine is.
    /// - Parameter cached: the generation whose bytes are in the hot cache.
    func needsRecall(cached: @autoclosure () -> UInt64?) -> Bool {
        guard line == nil, landing == nil else { return recall != nil }
        guard let held = machine.heldGrant else { return mayBeStored }
        // A refused token is out of the cache too; its bytes are of no use to those who wait for its successor.
        return held.generation == storedGeneration && !machine.isRefused && cached() != held.generation
    }

    /// Challenges that could not be answered by the flight that is over. Who asks for the highest level comes first.
    /// - Returns: with all scopes that they ask for, so that one flight more serves them all.
    func takePostponed() -> (reports: [ChallengeOfRequest], scopes: [String]) {
        let reports = postponed.enumerated().sorted { one, other in
            (other.element.challenge.level ?? -1, one.offset) < (one.element.challenge.level ?? -1, other.offset)
        }.map(\.element)
        postponed = []
        return (reports, reports.flatMap(\.challenge.scopes))
    }

    /// Whether a flight would need the caller's token and there is none: after a restart, until the user comes again.
    var lacksCallerToken: Bool {
        subject != nil && subject?.token == nil && key.subject?.bytes.first == SubjectPlan.digestMark
    }

    /// Somebody waits for it, or a flight or a lookup is under way.
    var isAtWork: Bool { machine.isBusy || recall != nil || !tickets.isEmpty }

    /// For operators, who have to know which server is meant.
    var failureWords: String? { lastFailure.map { IssuerTrail.words($0, asking: failureServer) } }

    /// A request found no token: what has failed before may be its answer.
    func noteMiss(at now: UInt64) {
        usedAt = now
        switch machine.state(at: now) {
        case .negative, .quarantined, .loginNeeded: identity.negativeHits += 1
        case .empty, .acquiring, .fresh, .refreshAhead, .renewalFailing, .expiredGrace: break
        }
    }
}

extension KeptToken {
    /// The end user whose token it is; nil where the token is everybody's, and where each URL has one.
    var user: ByteString? { identity.bindsToURL ? nil : key.subject }

    var isOfURL: Bool { identity.bindsToURL && key.subject != nil }
}

extension ChallengeReport {
    /// - Parameter along: scopes that others who wait want beside it.
    init(_ report: ChallengeOfRequest, of token: KeptToken, along: [String]) {
        self.init(
            generation: report.sent.flatMap { $0.slot == token.slot ? $0.generation : nil } ?? 0,
            isReplay: report.isReplay, justGranted: report.justGranted, demand: Demand(report.challenge),
            target: RequestTarget(route: report.route, path: report.path.prefix { $0 != UInt8(ascii: "?") }.hashValue),
            hadTaken: report.hadTaken, along: ScopeSet(along.map { ByteString($0) }))
    }
}

extension Demand {
    init(_ challenge: Handshakes.Challenge) {
        self.init(
            level: challenge.level, scopes: ScopeSet(challenge.scopes.map { ByteString($0) }),
            lacksScope: challenge.error == "insufficient_scope")
    }
}
