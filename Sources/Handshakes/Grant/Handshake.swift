/// A handshake is one way to obtain a credential: how its tokens are had, which answers of an upstream are challenges to it, and where the token
/// goes in a request.
///
/// A handshake holds no state and no secret: what lasts lives in the environment, secrets are read from it at the time of use.
public protocol Handshake: Sendable {
    /// The key under which the identity is configured, for logs and status.
    var scheme: String { get }
    /// Statuses of answers worth showing to `judge`; every other answer is no challenge.
    var inspectedStatuses: [Int] { get }

    /// How the statuses of a route that names its own meet the scheme's.
    var statusRule: StatusRule { get }

    /// Whether `judge` needs the body of an answer with an inspected status.
    var readsBody: Bool { get }

    /// Says what an answer of the upstream means to this scheme. Runs on data loops for inspected statuses only; may allocate.
    func judge(_ answer: UpstreamAnswer) -> ChallengeVerdict

    /// Obtains one token: cached session, refresh, full grant; one rung down per failure, never back up (docs/design/tokens.md#rule-6).
    /// Runs on the executor of its caller.
    func acquire(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant

    /// Tells the issuer that a session is over: after a logout, also for one that came too late. Best effort.
    @discardableResult
    func revoke(_ session: LayerMaterial, environment: any GrantEnvironment) async -> Revocation

    /// Whether `revoke` has something to say of every session, not only of those with a refresh token.
    var endsSessions: Bool { get }

    /// Whether `revoke` is to be told of access tokens too, before the sessions that they came of.
    var revokesAccessTokens: Bool { get }

    /// Whether a logout ends the session alone: durable parts stay, because the issuer expects this installation to come back as the same one.
    var keepsRegistration: Bool { get }

    /// A credential authenticates the connection that it is sent on (RFC 4559 §6), which therefore serves nobody else.
    var bindsConnections: Bool { get }

    /// The first thing that `check --live` asks the issuer.
    /// - Returns: where file and issuer differ, one sentence each.
    func inquire(environment: any GrantEnvironment) async throws(GrantFailure) -> [String]

    /// The trial of `check --live` where no person is needed: the least that shows whether the issuer takes the identity.
    /// - Returns: nil where a token was had, or the secret of one, and nothing else is to be said.
    func tryOut(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> LiveTrial?

    /// Further sentences of `cardea explain`.
    var explanation: [String] { get }

    /// The field that carries the token, unless the route says otherwise.
    func injection(for token: [UInt8]) -> InjectedField

    /// The signer that computes the credential of each request; nil where the token itself is sent.
    var signer: (any RequestSigner)? { get }
}

extension Handshake {
    /// A scheme that does not say otherwise is refused with 401.
    public var inspectedStatuses: [Int] { [401] }

    /// Each inspected status is a challenge, whatever the answer says beside it.
    public func judge(_ answer: UpstreamAnswer) -> ChallengeVerdict {
        inspectedStatuses.contains(answer.status) ? .challenged(Challenge(resource: answer.requestURL)) : .none
    }

    /// A scheme that does not say otherwise finds its challenges in the head.
    public var readsBody: Bool { false }
    /// A scheme that does not say otherwise cannot end sessions at its issuer.
    public var endsSessions: Bool { false }
    /// A scheme that does not say otherwise cannot revoke access tokens.
    public var revokesAccessTokens: Bool { false }
    /// A scheme that does not say otherwise registers nothing.
    public var keepsRegistration: Bool { false }
    /// A scheme that does not say otherwise vouches for requests and not for connections.
    public var bindsConnections: Bool { false }
    /// A scheme that does not say otherwise sends its token as it is.
    public var signer: (any RequestSigner)? { nil }
    /// A scheme that does not say otherwise judges the answers whose statuses a route names.
    public var statusRule: StatusRule { .inspected }
    /// A scheme that does not say otherwise is explained by what all have.
    public var explanation: [String] { [] }

    /// A scheme that does not say otherwise has nothing to ask before a token.
    public func inquire(environment: any GrantEnvironment) async throws(GrantFailure) -> [String] { [] }

    /// A scheme that does not say otherwise is tried with one token.
    public func tryOut(
        _ wanted: Wanted, environment: any GrantEnvironment
    ) async throws(GrantFailure) -> LiveTrial? {
        _ = try await acquire(wanted, environment: environment)
        return nil
    }

    /// Schemes without a way to say so let the session run out.
    public func revoke(_ session: LayerMaterial, environment: any GrantEnvironment) async -> Revocation { .impossible }
}

/// The meaning that the statuses of a route that names its own (`on_rejected.statuses`) have for a scheme.
public enum StatusRule: Sendable, Equatable {
    /// Answers with them are shown to `judge`.
    case inspected
    /// The handshake was made for them, and looks at others too.
    case known
    /// Each is a refusal by itself, as are those that are `always` counted.
    case refusals(always: [Int] = [])
}

/// How an attempt of `check --live` went.
public struct LiveTrial: Sendable {
    /// A sentence for an operator, without a secret.
    public var text: String
    /// The attempt brought what a request needs.
    public var isGood = true
}

/// The fate of a session at its issuer.
public enum Revocation: Sendable, Equatable {
    case revoked
    /// There is no way to tell the issuer, or nothing to tell.
    case impossible
    /// The issuer did not say that it is over.
    case unconfirmed
}

/// The purpose that a token is wanted for.
public struct Wanted: Sendable {
    /// The scopes to ask for; none where the scheme or the route names none.
    public var scopes: [String]
    /// The audiences to ask for.
    public var audience: [String]
    /// Resource indicators (RFC 8707): absolute URIs without fragment.
    public var resource: [String]
    /// The challenge being answered; nil when the token is fetched ahead of a request.
    public var challenge: Challenge?
    /// Origin of the route's `to`.
    public var upstreamOrigin: String
    /// For whom, where each end user has a token.
    public var user: EndUser?
    /// The authentication that a person's login is to be made with; nil: as the issuer likes.
    public var stepUp: StepUp?

    /// Memberwise; what has a default is absent without it.
    public init(
        scopes: [String] = [], audience: [String] = [], resource: [String] = [], challenge: Challenge? = nil,
        upstreamOrigin: String
    ) {
        self.scopes = scopes
        self.audience = audience
        self.resource = resource
        self.challenge = challenge
        self.upstreamOrigin = upstreamOrigin
    }
}

/// A token, checked and fit to be injected.
public struct AccessGrant: Sendable {
    /// The token's bytes as the issuer gave them, checked against the scheme's alphabet.
    public var token: Secret
    /// The octets that the identity's signer needs to send the token, the token included; nil: the token is sent as it is.
    public var material: Secret?
    /// `Bearer`, `OAM-Auth`, `Basic`, or empty for a bare value.
    public var tokenType: String
    /// Nanoseconds from `sentAt`; nil: the issuer did not say, the identity's `default_lifetime` holds.
    public var lifetime: UInt64?
    /// Where `lifetime` is nil: when the token itself says that it was issued and ends, in seconds since 1970 by the issuer's clock.
    public var statedTimes: (issued: Int64?, expires: Int64)?
    /// When what it was given for ends, by the same clock: no token made from a caller's outlives it.
    public var notAfter: Int64?
    /// Nanoseconds of CLOCK_BOOTTIME, before the request that brought the token was sent.
    public var sentAt: UInt64
    /// The scopes that the issuer granted, sorted; nil: those that were asked for.
    public var grantedScopes: [String]?
    /// OAM: authentication level of the challenge that the token answers.
    public var level: Int?

    /// The longest life believed, in nanoseconds: a year. Also the life of a credential that does not expire.
    public static let longestLifetime: UInt64 = 365 * 86_400 * 1_000_000_000
}

/// A request field ready to be spliced into a head.
public struct InjectedField: Sendable, Equatable {
    /// The field name, as it is sent.
    public var name: String
    /// The field value, the credential in it.
    public var value: [UInt8]
}

extension InjectedField: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The name alone.
    public var description: String { "\(name): <secret>" }
    /// The name alone.
    public var debugDescription: String { description }
    /// The name alone, so that `dump` prints no credential.
    public var customMirror: Mirror { Mirror(self, children: ["name": name]) }
}
