internal import Octets
internal import TLS

/// The function of `Content-Digest` (RFC 9530 §5), by the names of its registry.
enum HTTPContentDigest: String, CaseIterable, Sendable {
    case sha256 = "sha-256"
    case sha512 = "sha-512"

    static let fieldName = "Content-Digest"

    var function: HashFunction {
        switch self {
        case .sha256: .sha256
        case .sha512: .sha512
        }
    }

    /// The field's value for a body of this digest.
    func value(_ digest: [UInt8]) -> [UInt8] { Array("\(rawValue)=:\(Base64.encode(digest)):".utf8) }

    /// Whether a digest is of a body with an octet in it.
    func isOfBody(_ digest: [UInt8]) -> Bool { digest != (self == .sha256 ? Self.nothing256 : Self.nothing512) }

    private static let nothing256 = HashFunction.sha256.hash([])
    private static let nothing512 = HashFunction.sha512.hash([])

    /// - Parameter lines: the caller's own `Content-Digest`.
    /// - Throws: where they say of the body what is not true. A digest by another function is not looked at.
    func check(_ lines: [[UInt8]], against digest: [UInt8]) throws(SigningFault) {
        guard !lines.isEmpty else { return }
        let told: StructuredDictionary
        do throws(StructuredDictionary.Fault) { told = try StructuredDictionary(lines) } catch {
            throw SigningFault("its Content-Digest cannot be read: \(error.rawValue)", isCallers: true)
        }
        guard let member = told[rawValue] else { return }
        guard case .item(let item) = member, case .bytes(let bytes) = item.value, bytes == digest else {
            throw SigningFault("its Content-Digest is not that of its body", isCallers: true)
        }
    }
}
