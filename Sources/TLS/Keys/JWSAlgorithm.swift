internal import Octets

/// How a JWS is signed (RFC 7518 section 3.1, RFC 8037 section 3.1).
public enum JWSAlgorithm: String, Sendable, CaseIterable {
    case rs256 = "RS256"
    case ps256 = "PS256"
    case es256 = "ES256"
    case edDSA = "EdDSA"
    /// With a shared secret instead of a key pair.
    case hs256 = "HS256"
}

/// Compact serialisation (RFC 7515 section 3.1).
public enum JWS {
    /// - Parameters:
    ///   - header: a JSON object whose `alg` is the one that `sign` uses.
    ///   - sign: gives the signature of its argument.
    public static func compact<Failure: Error>(
        header: [UInt8], payload: [UInt8], sign: ([UInt8]) throws(Failure) -> [UInt8]
    ) throws(Failure) -> String {
        let input = Base64.encodeURL(header) + "." + Base64.encodeURL(payload)
        return input + "." + Base64.encodeURL(try sign(Array(input.utf8)))
    }
}
