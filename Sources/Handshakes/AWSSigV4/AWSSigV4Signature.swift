internal import Octets
internal import TLS

/// The scope of a signature: the day, region and service that its key is good for.
struct AWSSigV4CredentialScope {
    /// Eight digits.
    let date: String
    let region: String
    let service: String

    var text: String { "\(date)/\(region)/\(service)/aws4_request" }

    /// The key of this day, region and service.
    fileprivate func key(_ secret: Secret) -> [UInt8] {
        var key: [UInt8] = []
        // Enough at once, so that no growth leaves a copy behind.
        key.reserveCapacity(secret.count + 4)
        key += "AWS4".utf8
        secret.withBytes { key.append(contentsOf: $0) }
        for word in [date, region, service, "aws4_request"] {
            let next = keyedHash(key: key, Array(word.utf8))
            key.wipe()
            key = next
        }
        return key
    }
}

/// The signature of one request.
struct AWSSigV4Signature {
    static let algorithm = "AWS4-HMAC-SHA256"

    let scope: AWSSigV4CredentialScope
    /// The value of `X-Amz-Date`.
    let timestamp: String

    /// - Parameter request: the canonical request.
    /// - Returns: hexadecimal digits.
    func digits(of request: [UInt8], with secret: Secret) -> [UInt8] {
        var key = scope.key(secret)
        defer { key.wipe() }
        let hash = Hexadecimal.encode(sha256(request))
        let text = [Self.algorithm, timestamp, scope.text, hash].joined(separator: "\n")
        return Hexadecimal.octets(of: keyedHash(key: key, Array(text.utf8)))
    }
}
