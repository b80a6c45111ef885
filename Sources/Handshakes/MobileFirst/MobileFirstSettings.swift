/// Settings of a `mobilefirst` identity. The wire: docs/design/wire/mobilefirst.md.
struct MobileFirstSettings: Sendable {
    /// The runtime's API, up to and with `/api`.
    var base: IssuerURL
    /// Where `az/v1/…` is.
    var azBase: IssuerURL
    var client: Client
    /// The only scopes that a challenge may add.
    var allowedScopes: [String] = []
    /// Send every request again after a conflict, not only those that may be repeated.
    var replaysAllConflicts = false

    init(base: IssuerURL, azBase: IssuerURL? = nil, client: Client) {
        self.base = base
        self.azBase = azBase ?? base
        self.client = client
    }

    enum Client: Sendable {
        /// An id, and a secret under `client_secret` (docs/design/wire/mobilefirst.md#confidential).
        case confidential(id: String)
        /// A device that registers itself (docs/design/wire/mobilefirst.md#registered).
        case registered(Device)
    }

    /// A device, and how it answers.
    struct Device: Sendable {
        var application: String
        /// nil for the web.
        var version: String?
        var platform = "web"
        /// nil: made once and kept.
        var id: String?
        var system = "linux"
        var hardware = "server"
        var name: String?
        /// Security checks in the order of the file.
        var answers: [Answer] = []
        /// A challenge that leaves fewer is not answered. At least 1.
        var leastAttempts = 2
        /// Seconds until a failed check is tried again; nil: not by itself.
        var cooldown: Int?
        /// nil: what clients of the platform use.
        var redirectURI: String?
        var audience = "az/v1/token"
        /// Milliseconds from `iat` to `exp` of an assertion.
        var assertionLifetime: Int64 = 60_000
        /// The alphabet and padding of IBM's web SDK instead of RFC 7515's.
        var usesStandardBase64 = false
        /// The account that login attempts are booked on, with the check's name behind it.
        var account: String

        /// `iss` of an assertion (docs/design/wire/mobilefirst.md#assertion).
        var issuer: String { ([application, platform] + (version.map { [$0] } ?? [])).joined(separator: "$") }

        func account(of check: String) -> String { "\(account)/\(check)" }
    }

    /// The answer to one security check.
    struct Answer: Sendable {
        var check: String
        var fields: [Field]

        struct Field: Sendable {
            var name: String
            /// The configuration key of its secret.
            var secret: String
        }

        /// The key of all its secrets together: under this an attempt is booked.
        var attemptKey: String { "answers.\(check)" }
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
