internal import Numbers
internal import Octets

/// When a JWT says that it was issued and ends (RFC 7519 §4.1), in seconds since 1970. Read without its signature: the token is for
/// somebody else to verify, and what it says of its life is only used where the issuer's answer says nothing.
struct JWTTimes: Equatable {
    var issued: Int64?
    var expires: Int64?

    /// Nil for what is no JWT, or has no `exp`.
    init?(_ token: Secret) {
        guard let claims = JWTPayload.object(token) else { return nil }
        expires = Self.seconds(claims["exp"])
        issued = Self.seconds(claims["iat"])
        guard expires != nil else { return nil }
    }

    /// At most what the milliseconds of the year 9999 are, as some issuers write them: sums and differences of two fit.
    private static func seconds(_ member: AnswerObject.Member?) -> Int64? {
        let number: ReceivedNumber? =
            switch member {
            case .integer(let number)?: number
            case .number(let number)?: ReceivedNumber(wholePartOf: number)
            default: nil
            }
        return number?.clamped(to: WallTime.range)
    }
}

/// The payload of a JWT, without a look at its signature.
enum JWTPayload {
    /// Nil for what is no JWT.
    static func object(_ token: Secret) -> AnswerObject? {
        let payload: [UInt8]? = token.withBytes { bytes in
            let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            guard parts.count == 3 else { return nil }
            return Base64.decodeURL(Array(parts[1]))
        }
        guard var payload else { return nil }
        defer { payload.wipe() }
        return try? AnswerObject(payload)
    }
}
