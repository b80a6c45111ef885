internal import Numbers
internal import Octets

/// The answer of a program that brings a credential: a JSON object in one of the forms that such programs have.
///
/// What is wrong with one is told by the names of its members alone.
struct ProgramAnswer {
    /// The forms. Each is one of a maker's, but the first.
    enum Format: String, CaseIterable, Sendable {
        /// `{"token": …, "expires_in": seconds}`, or `"expires_at"` with a time of RFC 3339.
        case token = "token"
        /// A helper of Docker's credential store.
        case docker = "docker"
        /// A plug-in of kubectl (client.authentication.k8s.io).
        case kubernetes = "kubernetes"
    }

    private let tree: JSONTree
    /// Seconds since 1970, before the program was started.
    private let begun: Int64

    /// - Throws: `.issuerAnswerInvalid` for what is no JSON object.
    init(_ answer: Secret, begun: Int64) throws(GrantFailure) {
        do throws(JSONTree.Fault) {
            tree = try answer.withBytes { bytes throws(JSONTree.Fault) in try JSONTree(Array(bytes)) }
        } catch { throw Self.invalid(error == .empty ? "it wrote nothing" : "it wrote \(error.rawValue)") }
        guard case .object = tree else { throw Self.invalid("it wrote JSON that is no object") }
        self.begun = begun
    }

    static func invalid(_ reason: String) -> GrantFailure { .issuerAnswerInvalid(reason: "program: \(reason)") }
}

// MARK: - Forms

extension ProgramAnswer {
    /// A Bearer token and its life in nanoseconds; nil where the program does not say.
    func token() throws(GrantFailure) -> (token: Secret, lifetime: UInt64?) {
        let token = try text(["token"])
        let span = try found(["expires_in"])
        let end = try time(["expires_at"])
        guard let span else { return (token, end) }
        guard end == nil else { throw Self.invalid("both 'expires_in' and 'expires_at' are there") }
        guard case .number(let digits) = span, let seconds = ReceivedNumber(json: digits) else {
            throw Self.invalid("'expires_in' is no number")
        }
        let life = TimeSpan(seconds, .seconds)
        guard life > .zero else { throw Self.invalid("'expires_in' is not positive") }
        return (token, min(life.nanoseconds, AccessGrant.longestLifetime))
    }

    /// What `Authorization` is to be: Basic credentials, or a Bearer token where there is no user but a token.
    func docker() throws(GrantFailure) -> Secret {
        let user = try text(["Username"])
        let secret = try text(["Secret"])
        // Docker's own word for a secret that is a token.
        if user.withBytes({ $0.elementsEqual("<token>".utf8) }) {
            guard TokenAlphabet.visible.admits(secret) else { throw Self.invalid("'Secret' is no token") }
            return Self.field("Bearer ", secret.withBytes { Array($0) })
        }
        guard user.isText, secret.isText, !user.withBytes({ $0.contains(UInt8(ascii: ":")) }) else {
            throw Self.invalid("'Username' or 'Secret' does not fit Basic: a control character, or a colon in the name")
        }
        return Self.field("Basic ", BasicHandshake.credentials(user: user.withBytes { Array($0) }, password: secret))
    }

    /// The token of an `ExecCredential`, and its life.
    func kubernetes() throws(GrantFailure) -> (token: Secret, lifetime: UInt64?) {
        let version = tree.text(["apiVersion"])
        guard tree.text(["kind"]) == "ExecCredential", version == Self.versions[0] || version == Self.versions[1] else {
            throw Self.invalid("no ExecCredential of client.authentication.k8s.io/v1 or v1beta1")
        }
        guard try found(["status", "token"]) != nil else {
            throw Self.invalid("'status' has no 'token'; a client certificate is not taken")
        }
        return (try text(["status", "token"]), try time(["status", "expirationTimestamp"]))
    }

    private static let versions = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"]

    /// What a plug-in of kubectl finds in its environment.
    static let kubernetesQuestion =
        #"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"interactive":false}}"#
}

// MARK: - Members

extension ProgramAnswer {
    /// Null counts as absent.
    func found(_ path: [String]) throws(GrantFailure) -> JSONTree? {
        do throws(JSONTree.Fault) {
            guard let value = try tree.value(at: path) else { return nil }
            if case .null = value { return nil }
            return value
        } catch { throw Self.invalid("'\(path.joined(separator: "."))': \(error.rawValue)") }
    }

    /// A text that is not empty.
    func text(_ path: [String]) throws(GrantFailure) -> Secret {
        let name = path.joined(separator: ".")
        switch try found(path) {
        case nil: throw Self.invalid("no '\(name)'")
        case .string(var bytes)?:
            guard !bytes.isEmpty else { throw Self.invalid("'\(name)' is empty") }
            return Secret(taking: &bytes)
        default: throw Self.invalid("'\(name)' is no text")
        }
    }

    /// Nanoseconds from the start of the program to the time that stands there.
    func time(_ path: [String]) throws(GrantFailure) -> UInt64? {
        guard let value = try found(path) else { return nil }
        let name = path.joined(separator: ".")
        guard case .string(let bytes) = value, let end = InternetTime.seconds(bytes) else {
            throw Self.invalid("'\(name)' is no time of RFC 3339")
        }
        let (seconds, overflow) = end.subtractingReportingOverflow(begun)
        let life = overflow ? .zero : TimeSpan(seconds, .seconds)
        guard life > .zero else { throw Self.invalid("'\(name)' is over") }
        return min(life.nanoseconds, AccessGrant.longestLifetime)
    }

    private static func field(_ scheme: String, _ credential: [UInt8]) -> Secret {
        var credential = credential
        var value: [UInt8] = []
        value.reserveCapacity(scheme.utf8.count + credential.count)
        value += Array(scheme.utf8)
        value += credential
        credential.wipe()
        return Secret(taking: &value)
    }
}
