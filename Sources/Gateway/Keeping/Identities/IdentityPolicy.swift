internal import Handshakes
internal import Tokens

/// What the keeper needs to know of an identity's configuration beyond its handshake.
struct IdentityPolicy: Sendable {
    var access: AccessTokenPolicy
    var lifetime: LifetimePolicy
    var attempts: AttemptLedger.Policy
    var secrets: [String: SecretSource]
    var network: IssuerNetwork
    var kind: CredentialKind
    /// The identity must have a token before the gateway is ready.
    var startup: Startup
    /// The keys in `secrets` that each have a mark of attempts of their own; nil: the password, or else all together.
    var attemptSecrets: [String]?
    /// Those of them whose marks are not on the identity's own account.
    var attemptAccounts: [String: Account] = [:]
    /// `basic`: different paths that must refuse a proven secret until it is held back.
    var refusalsUntilClosed = BasicProbation.pathLimit
    /// What it obtained does not come back with it, after another configuration had taken its place.
    var forgetsWhenReplaced = false
    /// What it obtains may leave this process: for the store, and for the gateways of a fleet.
    var isShared = false
    /// Its login cannot be had anew without a person: one who logs in, or who has put a refresh token into the configuration.
    var isIrreplaceable = false
    /// Tokens and sessions are good only with a key of this gateway's own (DPoP). The key never leaves it, so another gateway has no use
    /// for them; what is bound to no key, as the registration of a client, is shared all the same.
    var isBoundHere = false

    var sharesTokens: Bool { isShared && !isBoundHere }

    /// Whether refusing what it sends may lock an account: its steps book their attempts themselves.
    var sendsPassword: Bool { attemptSecrets.map { !$0.isEmpty } ?? (secrets["password"] != nil) }

    enum Startup: Sendable { case lazy, wait, required }
}

/// Reads a secret anew each time; the value is wiped by its owner.
typealias SecretSource = @Sendable () throws -> Secret
