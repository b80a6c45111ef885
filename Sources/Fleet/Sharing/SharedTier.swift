public import Numbers

/// The state on which a fleet of gateways agrees through a shared server. Completions come once, within a bounded time, perhaps before
/// a call returns; none of the calls blocks. Touched on the keeper's loop only.
///
/// A lease fences our own gateways, not the issuer: whoever is not sure to have one may make a grant that harms nobody, and nothing that
/// could lock an account or spend a refresh token twice.
public protocol SharedTier: Sendable {
    typealias Answer<Value> = @Sendable (Result<Value, SharedFault>) -> Void

    func name(_ kind: SharedKind, _ key: [UInt8]) -> SharedName
    func identity(of value: [UInt8]) -> String

    // MARK: Values that anybody may replace with a newer one: access tokens, registrations

    /// The value under a name, or else the right to make it.
    /// - Parameters:
    ///   - refused: the identity of a value that is of no use to the caller.
    ///   - isDead: it is of no use to anybody: it is deleted, if it still stands, and the others are told.
    func claim(_ name: SharedName, unless refused: String?, isDead: Bool, completion: @escaping Answer<SharedClaim>)

    /// The value, if there is one, and what is left of it; takes no lease.
    func value(_ name: SharedName, completion: @escaping Answer<SharedSession?>)

    /// Puts the value there and gives up the lease. False: the lease had passed to another, whose value counts.
    /// - Parameters:
    ///   - age: the time since the lease was asked for, by this gateway's clock.
    ///   - life: after which it is of no use, counted from now, however late the server takes it; nil: kept for as long as anything is.
    func publish(
        _ value: [UInt8], as identity: String, under lease: SharedLease, askedFor age: TimeSpan, for life: TimeSpan?,
        completion: @escaping Answer<Bool>)

    /// Deletes the value, if it is still this one, and tells the others.
    func withdraw(_ name: SharedName, _ identity: String)

    // MARK: Sessions, of which there is one line of versions

    /// The turn of a lock, and the session as the fleet has it.
    /// - Parameter spends: the step that follows may spend a refresh token: until its outcome is known, or its gateway has been silent for
    ///   long, nobody else gets a turn.
    func turn(
        _ lock: SharedName, session: SharedName, spends: Bool, completion: @escaping Answer<SharedTurn>)

    /// The session as it stands.
    func session(_ name: SharedName, completion: @escaping Answer<SharedSession?>)

    /// Commits the next version. False: the turn had passed to another.
    func commit(
        _ session: SharedSession, _ name: SharedName, under lease: SharedLease, completion: @escaping Answer<Bool>)

    /// Puts a session there that this gateway knows, unless the fleet has a newer one: after the server was away, or has lost something.
    /// - Parameter lease: the turn in which it came to be, whose spending is over.
    func offer(
        _ session: SharedSession, _ name: SharedName, under lease: SharedLease?, completion: @escaping Answer<Bool>)

    /// The session is dead, unless there is a newer one: its value goes, its version stays, the others are told. One that is looked up
    /// afterwards is empty.
    func endSession(_ name: SharedName, version: SessionVersion)

    /// Tells the others, and this gateway with them, what no change on the server says.
    func tell(_ news: FleetNews)

    // MARK: Leases

    func renew(_ lease: SharedLease, completion: @escaping Answer<Bool>)
    func release(_ lease: SharedLease)

    // MARK: Attempts of passwords

    /// Books an attempt, if fewer than `limit` are booked.
    func spend(_ attempt: SharedAttempt, limit: UInt32, completion: @escaping Answer<SharedVerdict>)
    /// How many are booked of its secret.
    func spent(_ attempt: SharedAttempt, completion: @escaping Answer<UInt32?>)
    /// A secret of the account was accepted: every attempt of the account is forgotten.
    func accepted(_ account: SharedName)
    /// The attempt was refused: the other gateways hear of it.
    func rejected(_ attempt: SharedAttempt)
    /// The attempt was never judged, so it is booked no longer.
    func refund(_ attempt: SharedAttempt)
    /// An operator's reset.
    func reset(_ account: SharedName)
}

/// The answer to a claim of a value.
public enum SharedClaim: Sendable {
    /// The value that another gateway has put there, and the time that it has left; nil: no end.
    case value([UInt8], identity: String, left: TimeSpan?)
    case lease(SharedLease)
    /// Another gateway is at it.
    case busy
}

/// The answer to the wish for a lock's turn.
public enum SharedTurn: Sendable {
    case lease(SharedLease, SharedSession?)
    case busy
    /// The server has just come up and may have lost something: what gateways know is being brought back first.
    case settling
}

/// Whether a secret may be sent. `settling`: not known yet.
public enum SharedVerdict: Sendable, Equatable {
    case allowed, spent, settling
}

/// The right to make something, for a while. The generation rises with each one under a name and is never given twice: with the owner's
/// random bytes it tells a late holder from the present one.
public struct SharedLease: Sendable, Equatable {
    /// The name that is leased.
    public let name: SharedName
    let owner: String
    let generation: Int64
    let spends: Bool

    /// Whether news of `FleetNews.spending` are of this one.
    public func isOwned(by owner: String) -> Bool { self.owner == owner }
    /// Milliseconds that it holds from before it was asked for.
    public static let duration: Int64 = 6000
    /// How often a holder renews it.
    public static let renewal: Int64 = 2000
    /// Milliseconds after the last renewal for which a turn that may have spent a refresh token keeps everybody else away.
    public static let silence: Int64 = 30_000
}

/// A session as the fleet has it; `value` is empty where it is dead.
public struct SharedSession: Sendable, Equatable {
    /// Decides which of two sessions is newer.
    public var version: SessionVersion
    /// The keeper's encoding, sealed on the way.
    public var value: [UInt8]
    /// After which it is of no use; nil: kept for as long as anything is.
    public var lasts: TimeSpan?

    /// Memberwise.
    public init(version: SessionVersion, value: [UInt8], lasts: TimeSpan? = nil) {
        self.version = version
        self.value = value
        self.lasts = lasts
    }
}

/// A single sending of one secret of one account.
public struct SharedAttempt: Sendable, Hashable {
    /// The account for which the attempt counts.
    public let account: SharedName
    let secret: String
    let number: String

    /// - Parameters:
    ///   - secret: under which the secret's own attempts are counted.
    ///   - number: tells one attempt from another; the same one booked twice counts once.
    public init(account: SharedName, secret: SharedName, number: String) {
        self.account = account
        self.secret = String(secret.text.prefix(32))
        self.number = number
    }
}
