package import Handshakes
package import Tokens

/// The configuration of an identity that the keeper needs to know beyond its handshake.
package struct IdentityPolicy: Sendable {
    package var access: AccessTokenPolicy
    var lifetime: LifetimePolicy
    var attempts: AttemptLedger.Policy
    var secrets: [String: SecretSource]
    /// The program that brings the credential; nil where none does.
    package var program: SecretSource?
    package var network: IssuerNetwork
    package var kind: CredentialKind
    /// The identity must have a token before the gateway is ready.
    package var startup: Startup
    /// The keys in `secrets` that each have a mark of attempts of their own; nil: the password, or else all together.
    package var attemptSecrets: [String]?
    /// The accounts of the keys in `attemptSecrets` whose marks are not on the identity's own account.
    package var attemptAccounts: [String: Account] = [:]
    /// `basic`: different paths that must refuse a proven secret until it is held back.
    package var refusalsUntilClosed = BasicProbation.pathLimit
    /// Tokens that the identity obtained do not come back with it, after another configuration had taken its place.
    package var forgetsWhenReplaced = false
    /// Material that the identity obtains may leave this process: for the store, and for the gateways of a fleet.
    package var isShared = false
    /// Its login cannot be had anew without a person: one who logs in, or who has put a refresh token into the configuration.
    package var isIrreplaceable = false
    /// Tokens and sessions are good only with a key of this gateway's own (DPoP). The key never leaves it, so another gateway has no use
    /// for them; what is bound to no key, as the registration of a client, is shared all the same.
    package var isBoundHere = false

    package init(
        access: AccessTokenPolicy, lifetime: LifetimePolicy, attempts: AttemptLedger.Policy,
        secrets: [String: SecretSource], network: IssuerNetwork, kind: CredentialKind, startup: Startup,
        attemptSecrets: [String]? = nil, attemptAccounts: [String: Account] = [:],
        refusalsUntilClosed: Int = BasicProbation.pathLimit, forgetsWhenReplaced: Bool = false, isShared: Bool = false,
        isIrreplaceable: Bool = false, isBoundHere: Bool = false
    ) {
        self.access = access
        self.lifetime = lifetime
        self.attempts = attempts
        self.secrets = secrets
        self.network = network
        self.kind = kind
        self.startup = startup
        self.attemptSecrets = attemptSecrets
        self.attemptAccounts = attemptAccounts
        self.refusalsUntilClosed = refusalsUntilClosed
        self.forgetsWhenReplaced = forgetsWhenReplaced
        self.isShared = isShared
        self.isIrreplaceable = isIrreplaceable
        self.isBoundHere = isBoundHere
    }

    var sharesTokens: Bool { isShared && !isBoundHere }
    /// The token is a secret of the configuration, which nobody grants.
    var hasFixedToken: Bool { kind == .fixed || kind == .basic }

    /// Whether refusing what it sends may lock an account: its steps book their attempts themselves.
    var sendsPassword: Bool { attemptSecrets.map { !$0.isEmpty } ?? (secrets["password"] != nil) }

    package enum Startup: Sendable { case lazy, wait, required }
}

/// Reads a secret anew each time; the value is wiped by its owner.
package typealias SecretSource = @Sendable () throws -> Secret
