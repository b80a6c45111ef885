internal import Configuration
internal import Octets
internal import TLS

// Encodings of a recipe's places and pipes, on bytes.
extension Array<UInt8> {
    var xmlEscaped: [UInt8] {
        flatMap { byte -> [UInt8] in
            switch byte {
            case UInt8(ascii: "&"): Array("&amp;".utf8)
            case UInt8(ascii: "<"): Array("&lt;".utf8)
            case UInt8(ascii: ">"): Array("&gt;".utf8)
            case UInt8(ascii: "\""): Array("&quot;".utf8)
            case UInt8(ascii: "'"): Array("&#39;".utf8)
            default: [byte]
            }
        }
    }

    /// A query as signatures want it: each name and value decoded and encoded in one way, `=` always there, sorted by bytes.
    var canonicalQuery: [UInt8] {
        let parameters = split(separator: UInt8(ascii: "&")).map { parameter -> (name: [UInt8], value: [UInt8]) in
            let cut = parameter.firstIndex(of: UInt8(ascii: "=")) ?? parameter.endIndex
            return (Self.reencoded(parameter[..<cut]), Self.reencoded(parameter[cut...].dropFirst()))
        }
        let sorted = parameters.sorted { one, other in
            one.name == other.name
                ? one.value.lexicographicallyPrecedes(other.value) : one.name.lexicographicallyPrecedes(other.name)
        }
        return Array(sorted.map { $0.name + [UInt8(ascii: "=")] + $0.value }.joined(separator: [UInt8(ascii: "&")]))
    }

    private static func reencoded(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var index = text.startIndex
        while index < text.endIndex {
            var byte = text[index]
            index += 1
            if byte == UInt8(ascii: "%"), index + 1 < text.endIndex,
                let octet = Hexadecimal.octet(text[index], text[index + 1])
            {
                byte = octet
                index += 2
            }
            result.appendPercentEncoded(byte)
        }
        return result
    }
}

/// A compact JWS (RFC 7515 §7.1).
enum RecipeJWS {
    /// - Parameters:
    ///   - name: the secret's, for the reason of a fault.
    ///   - keyID: `kid`; nil: that of the JWK, if any.
    ///   - known: keys that were read before.
    static func compact(
        payload: [UInt8], key: Secret, named name: String, _ algorithm: JWSAlgorithm, keyID: String?, known: ProofKeys?
    ) throws(RecipeValues.Fault) -> [UInt8] {
        guard algorithm == .hs256 else {
            let keys = try keys(in: key, named: name, known)
            let fitting = keys.filter { $0.key.signs(algorithm) && ($0.algorithm ?? algorithm) == algorithm }
            guard let found = fitting.first(where: { keyID != nil && $0.id == keyID }) ?? fitting.first else {
                throw .init("secret.\(name): \(algorithm.rawValue) does not go with its kind of key")
            }
            do throws(TLSFault) {
                let header = header(algorithm, keyID ?? found.id)
                return Array(
                    try JWS.compact(header: header, payload: payload) { input throws(TLSFault) in
                        try found.key.sign(input, algorithm)
                    }.utf8)
            } catch { throw .init("secret.\(name): \(error.message)") }
        }
        // A shorter key makes the signature weaker than its hash (RFC 7518 §3.2).
        guard key.count >= 32 else { throw .init("HS256 needs a key of at least 32 bytes") }
        return Array(
            JWS.compact(header: header(algorithm, keyID), payload: payload) { input in
                key.withBytes { keyedHash(key: $0, input) }
            }.utf8)
    }

    private static func header(_ algorithm: JWSAlgorithm, _ keyID: String?) -> [UInt8] {
        var header = JSONBody(capacity: 64 + (keyID?.utf8.count ?? 0))
        header.member("alg", algorithm.rawValue)
        header.member("typ", "JWT")
        if let keyID { header.member("kid", keyID) }
        return header.finish()
    }

    private static func keys(
        in secret: Secret, named name: String, _ known: ProofKeys?
    ) throws(RecipeValues.Fault) -> [NamedSigningKey] {
        do throws(GrantFailure) {
            if let found = known?.signingKeys(of: secret) { return found }
            let found = try NamedSigningKey.read(secret, password: nil, name: name)
            known?.know(found, of: secret)
            return found
        } catch {
            guard case .secretUnreadable(_, let reason) = error else { throw .init("secret.\(name): cannot be read") }
            throw .init("secret.\(name): \(reason)")
        }
    }
}

/// An instant in UTC, in the forms of ISO 8601.
struct WallClockText {
    /// `2026-11-21T08:00:00Z`
    let extended: String
    /// `20261121T080000Z`
    let basic: String
    /// `20261121`
    let basicDate: String

    init(_ seconds: Int64) {
        let (days, second) = seconds.quotientAndRemainder(dividingBy: 86_400)
        let day = CivilDate(daysSince1970: Int(Swift.max(days, 0)))
        let date = [Self.padded(day.year, 4), Self.padded(day.month), Self.padded(day.day)]
        let clock = [Self.padded(second / 3600), Self.padded(second / 60 % 60), Self.padded(second % 60)]
        extended = date.joined(separator: "-") + "T" + clock.joined(separator: ":") + "Z"
        basicDate = date.joined()
        basic = basicDate + "T" + clock.joined() + "Z"
    }

    private static func padded(_ number: some BinaryInteger, _ width: Int = 2) -> String {
        let digits = String(number)
        return String(repeating: "0", count: Swift.max(0, width - digits.count)) + digits
    }
}
