/// `mobilefirst`: IBM MobileFirst Foundation 8 (docs/design/wire/mobilefirst.md).
public struct MobileFirstHandshake: Sendable, Equatable {
    public enum Mode: String, Sendable, CaseIterable {
        case confidential = "confidential"
        case registered = "registered"
    }

    public enum ConflictReplay: String, Sendable, CaseIterable {
        case idempotent = "idempotent"
        case all = "all"
    }

    public enum JWSEncoding: String, Sendable, CaseIterable {
        case base64url = "base64url"
        case base64 = "base64"
    }

    /// Up to and with `/api`.
    public var base: ServiceURL
    /// Of `az/v1/…`; nil: `base`.
    public var azBase: ServiceURL?
    public var mode: Mode
    /// Both are set in mode `confidential`, and nil in the other.
    public var clientID: String?
    public var clientSecret: SecretReference?
    /// Set in mode `registered`.
    public var application: String?
    public var applicationVersion: String?
    public var platform: String
    public var device: Device
    /// In the order of the file.
    public var answers: [CheckAnswer]
    public var minRemainingAttempts: Int
    /// nil: until a reset or a new secret.
    public var cooldown: Duration?
    public var allowedScopes: [String]
    public var conflictReplay: ConflictReplay
    /// As it is written: the server compares it so.
    public var redirectURI: String?
    public var audience: String
    public var assertionLifetime: Duration
    public var jwsEncoding: JWSEncoding

    public struct Device: Sendable, Equatable {
        /// nil: made once and kept.
        public var id: String?
        public var platform: String
        public var hardware: String
        public var name: String?
    }

    /// What a security check is answered with.
    public struct CheckAnswer: Sendable, Equatable {
        public var check: String
        public var fields: [(name: String, value: SecretReference)]

        public static func == (left: CheckAnswer, right: CheckAnswer) -> Bool {
            left.check == right.check && left.fields.elementsEqual(right.fields, by: ==)
        }

        /// Under which the secret of a field is found.
        public func secretName(_ field: String) -> String { "answers.\(check).\(field)" }
    }
}
