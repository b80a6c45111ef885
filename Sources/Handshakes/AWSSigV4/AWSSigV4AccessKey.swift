internal import Octets

/// An access key, as the signer gets it for a token.
struct AWSSigV4AccessKey: Sendable {
    let id: String
    let secret: Secret
    /// The token of a temporary key.
    var sessionToken: String?

    private static let part = "key"
    static let idName = "access_key_id"
    static let secretName = "secret_access_key"
    static let tokenName = "session_token"

    /// - Returns: nil for anything but `encoded`.
    init?(_ material: Secret) {
        guard let values = RecipeMaterial.decode(material)?[Self.part], let id = values[Self.idName],
            let secret = values[Self.secretName]
        else { return nil }
        self.id = id.ascii
        self.secret = secret
        sessionToken = values[Self.tokenName]?.ascii
    }

    /// - Throws: `.secretUnusable` where a value fits no signature.
    init(id: Secret, secret: Secret, sessionToken: Secret?) throws(GrantFailure) {
        // Slashes and commas part the id from what stands behind it.
        guard (1...128).contains(id.count),
            id.withBytes({ $0.allSatisfy { $0.isLetterOrDigit || "-_.".utf8.contains($0) } })
        else { throw .secretUnusable(name: Self.idName, reason: "not 1 to 128 letters, digits, '-', '_' and '.'") }
        guard (1...1024).contains(secret.count), secret.isText else {
            throw .secretUnusable(name: Self.secretName, reason: "empty, too long, or with a control character")
        }
        if let sessionToken {
            guard sessionToken.count <= Self.longestToken, TokenAlphabet.visible.admits(sessionToken) else {
                throw .secretUnusable(
                    name: Self.tokenName, reason: "empty, longer than \(Self.longestToken) bytes, or not visible ASCII")
            }
        }
        self.id = id.ascii
        self.secret = secret
        self.sessionToken = sessionToken?.ascii
    }

    /// A temporary key as AWS' `credential_process` writes it, and its life in nanoseconds.
    static func brought(by answer: ProgramAnswer) throws(GrantFailure) -> (key: Self, lifetime: UInt64?) {
        guard case .number(let version)? = try answer.found(["Version"]), version.elementsEqual("1".utf8) else {
            throw ProgramAnswer.invalid("'Version' is not 1")
        }
        let id = try answer.text(["AccessKeyId"])
        let secret = try answer.text(["SecretAccessKey"])
        let token = try answer.found(["SessionToken"]) == nil ? nil : try answer.text(["SessionToken"])
        do throws(GrantFailure) {
            return (try Self(id: id, secret: secret, sessionToken: token), try answer.time(["Expiration"]))
        } catch {
            guard case .secretUnusable(let name, let reason) = error else { throw error }
            throw ProgramAnswer.invalid("its \(name) is \(reason)")
        }
    }

    /// Leaves room for the signature beside it.
    private static let longestToken = 16 * 1024

    var encoded: Secret {
        var values = [Self.idName: Secret(id), Self.secretName: secret]
        values[Self.tokenName] = sessionToken.map { Secret($0) }
        return RecipeMaterial.encode([Self.part: values])
    }
}

extension Secret {
    fileprivate var ascii: String { withBytes { String(decoding: $0, as: UTF8.self) } }
}
