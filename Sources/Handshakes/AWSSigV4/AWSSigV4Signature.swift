internal import Octets
internal import TLS

/// The scope of a signature: the day, region and service that its key is good for.
struct AWSSigV4CredentialScope {
    /// Eight digits.
    let date: String
    let region: String
    let service: String

    /// The last word of every scope.
    static let end = "aws4_request"

    var text: String { "\(date)/\(region)/\(service)/\(Self.end)" }

    /// The key of this day, region and service.
    fileprivate func key(_ secret: Secret) -> [UInt8] {
        var key: [UInt8] = []
        // Enough at once, so that no growth leaves a copy behind.
        key.reserveCapacity(secret.count + 4)
        key += "AWS4".utf8
        secret.withBytes { key.append(contentsOf: $0) }
        for word in [date, region, service, Self.end] {
            let next = keyedHash(key: key, Array(word.utf8))
            key.wipe()
            key = next
        }
        return key
    }
}

/// The signatures of one request: that of its head, and those of the parts of its body, each of which covers the one before.
struct AWSSigV4Signature {
    static let algorithm = "AWS4-HMAC-SHA256"
    /// Digits of a signature.
    static let length = 64

    let scope: AWSSigV4CredentialScope
    /// The value of `X-Amz-Date`.
    let timestamp: String
    private let key: Secret

    init(scope: AWSSigV4CredentialScope, timestamp: String, secret: Secret) {
        self.scope = scope
        self.timestamp = timestamp
        var key = scope.key(secret)
        self.key = Secret(taking: &key)
    }

    /// - Parameter request: the canonical request.
    /// - Returns: hexadecimal digits.
    func digits(of request: [UInt8]) -> [UInt8] {
        digits(Self.algorithm, [Hexadecimal.encode(sha256(request))])
    }

    /// - Parameters:
    ///   - hash: SHA-256 of the chunk's data.
    ///   - previous: the digits of the signature before it.
    func digits(ofChunk hash: [UInt8], after previous: [UInt8]) -> [UInt8] {
        digits(Self.algorithm + "-PAYLOAD", [text(previous), Self.hashOfNothing, Hexadecimal.encode(hash)])
    }

    /// - Parameters:
    ///   - lines: the trailers in their canonical form.
    ///   - previous: the digits of the signature of the last chunk.
    func digits(ofTrailers lines: [UInt8], after previous: [UInt8]) -> [UInt8] {
        digits(Self.algorithm + "-TRAILER", [text(previous), Hexadecimal.encode(sha256(lines))])
    }

    private static let hashOfNothing = Hexadecimal.encode(sha256([]))

    private func text(_ digits: [UInt8]) -> String { String(decoding: digits, as: UTF8.self) }

    private func digits(_ kind: String, _ parts: [String]) -> [UInt8] {
        let text = ([kind, timestamp, scope.text] + parts).joined(separator: "\n")
        return Hexadecimal.octets(of: key.withBytes { keyedHash(key: $0, Array(text.utf8)) })
    }
}
