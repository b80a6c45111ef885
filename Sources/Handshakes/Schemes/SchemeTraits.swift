package import Configuration
package import Tokens

/// How the credential of an identity is had and kept.
public enum CredentialKind: Sendable {
    /// There is nothing to be had anew: a secret, a signature, a certificate.
    case fixed
    /// Every request is a login with one password.
    case basic
    /// Tokens are fetched ahead of requests.
    case proactive
    /// A token needs data out of an upstream's challenge.
    case challengeDriven
}

/// The facts that the keeper has to know of an identity beyond its handshake.
package struct SchemeTraits: Sendable {
    package var kind: CredentialKind
    /// The account whose refused credential is not sent again.
    package var account: Account?
    /// Who is asked for tokens; nil where nobody is.
    package var issuer: Tokens.Origin?
    /// Whether what is obtained may leave the process at all.
    package var keepsTokens = true
    /// Values of secrets stand in a token as they were when it was obtained.
    package var holdsSecrets = false
    /// Tokens and sessions are good only with a key of this gateway's own.
    package var isBoundHere = false
    /// The login cannot be had anew without a person: one who logs in, or who has put a refresh token into the configuration.
    package var isIrreplaceable = false
    /// A token that was obtained does not come back with the identity, after another configuration had taken its place.
    package var forgetsWhenReplaced = false
    /// For `basic`: different paths that must refuse a proven secret until it is held back.
    package var refusalsUntilClosed = BasicProbation.pathLimit
    /// Which secrets' attempts are counted, each for itself; nil: the password's, or else those of all together.
    package var attempts: [Attempt]?

    /// Secrets that are sent together, so that a refusal is one of them all.
    package struct Attempt: Sendable {
        /// Under which the attempts are booked, and the secrets read as one value.
        package var key: String
        /// Names of secrets, in the order in which they are joined.
        package var secrets: [String]
        /// nil: the identity's own.
        package var account: Account?
    }

    /// - Parameters:
    ///   - user: whose refused credential is not sent again.
    ///   - url: of the issuer.
    init(_ kind: CredentialKind, user: String, at url: IssuerURL) {
        let issuer = Tokens.Origin(url)
        self.init(kind, account: Account(issuer: issuer, user: ByteString(user)), issuer: issuer)
    }

    package init(_ kind: CredentialKind, account: Account? = nil, issuer: Tokens.Origin? = nil) {
        self.kind = kind
        self.account = account
        self.issuer = issuer
    }
}

/// The changes of a scheme in requests and answers of a route, beside the token.
package struct SchemeEdits: Sendable {
    /// The beginning of the request's `User-Agent`.
    package var userAgent: String?
    /// Whether the caller's own stands behind it.
    package var keepsUserAgent = true
    /// Fields of the request that only the scheme writes.
    package var ownedFields: [String] = []
    package var fields: [NamedValue] = []
    /// Fields of the answer that are meant for the gateway.
    package var dropsFields: [String] = []
    /// Beginnings of the names of cookies that are meant for the gateway.
    package var dropsCookies: [String] = []
    /// Whether each URL has a token of its own.
    package var bindsToURL = false
    /// Whether the upstream's view of a URL, or the caller's, names the resource.
    package var resourceFromCaller = false

    package init() {}
}

extension Tokens.Origin {
    package init(file origin: FileOrigin) {
        self.init(scheme: ByteString(origin.scheme.rawValue), host: ByteString(origin.host), port: origin.port)
    }

    init(_ url: IssuerURL) {
        self.init(scheme: ByteString(url.scheme), host: ByteString(url.host), port: UInt16(clamping: url.port))
    }
}
