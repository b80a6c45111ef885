/// Settings of a `mobilefirst` identity. The wire: docs/design/wire/mobilefirst.md.
public struct MobileFirstSettings: Sendable {
    /// The runtime's API, up to and with `/api`.
    public var base: IssuerURL
    /// Where `az/v1/…` is.
    public var azBase: IssuerURL
    public var client: Client
    /// The only scopes that a challenge may add.
    public var allowedScopes: [String] = []
    /// Send every request again after a conflict, not only those that may be repeated.
    public var replaysAllConflicts = false

    public init(base: IssuerURL, azBase: IssuerURL? = nil, client: Client) {
        self.base = base
        self.azBase = azBase ?? base
        self.client = client
    }

    public enum Client: Sendable {
        /// An id, and a secret under `client_secret` (docs/design/wire/mobilefirst.md#confidential).
        case confidential(id: String)
        /// A device that registers itself (docs/design/wire/mobilefirst.md#registered).
        case registered(Device)
    }

    /// A device, and how it answers.
    public struct Device: Sendable {
        public var application: String
        /// nil for the web.
        public var version: String?
        public var platform = "web"
        /// nil: made once and kept.
        public var id: String?
        public var system = "linux"
        public var hardware = "server"
        public var name: String?
        /// Security checks in the order of the file.
        public var answers: [Answer] = []
        /// A challenge that leaves fewer is not answered. At least 1.
        public var leastAttempts = 2
        /// Seconds until a failed check is tried again; nil: not by itself.
        public var cooldown: Int?
        /// nil: what clients of the platform use.
        public var redirectURI: String?
        public var audience = "az/v1/token"
        /// Milliseconds from `iat` to `exp` of an assertion.
        public var assertionLifetime: Int64 = 60_000
        /// The alphabet and padding of IBM's web SDK instead of RFC 7515's.
        public var usesStandardBase64 = false
        /// What the marks of login attempts are booked on, with the check's name behind it.
        public var account: String

        public init(application: String, account: String) {
            self.application = application
            self.account = account
        }

        /// `iss` of an assertion (docs/design/wire/mobilefirst.md#assertion).
        var issuer: String { ([application, platform] + (version.map { [$0] } ?? [])).joined(separator: "$") }

        public func account(of check: String) -> String { "\(account)/\(check)" }
    }

    /// What one security check is answered with.
    public struct Answer: Sendable {
        public var check: String
        public var fields: [Field]

        public struct Field: Sendable {
            public var name: String
            /// The configuration key of its secret.
            public var secret: String

            public init(name: String, secret: String) {
                self.name = name
                self.secret = secret
            }
        }

        public init(check: String, fields: [Field]) {
            self.check = check
            self.fields = fields
        }

        /// The key of all its secrets together: under this an attempt is booked.
        public var attemptKey: String { Self.attemptKey(check) }
        public static func attemptKey(_ check: String) -> String { "answers.\(check)" }
    }

    /// Answers with `MFP-Conflict` after which a call is given up (docs/design/wire/mobilefirst.md#resource).
    static let mostConflicts = 6
}

// MARK: - Endpoints (docs/design/wire/mobilefirst.md#endpoints)

extension MobileFirstSettings {
    struct Endpoints: Sendable {
        var token, authorization, register, preauthorize, logout: IssuerURL
    }

    /// Throws `.configuration` where a base is no place for further segments.
    func endpoints() throws(GrantFailure) -> Endpoints {
        guard let token = azBase.appending(path: "az/v1/token"),
            let authorization = azBase.appending(path: "az/v1/authorization"),
            let register = base.appending(path: "registration/v1/self"),
            let preauthorize = base.appending(path: "preauth/v1/preauthorize"),
            let logout = base.appending(path: "preauth/v1/logout")
        else { throw .configuration(reason: "base, az_base: not a URL") }
        return Endpoints(
            token: token, authorization: authorization, register: register, preauthorize: preauthorize, logout: logout)
    }
}
