internal import Configuration
internal import Numbers
internal import TLS

// Encodings of a recipe's places and pipes, on bytes.
extension Array<UInt8> {
    var hex: [UInt8] {
        let digits = HexDigits.lower
        return flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0x0F)]] }
    }

    /// All but unreserved characters (RFC 3986 §2.3), so that a value is one segment or one query value whatever it holds.
    mutating func appendPercentEncoded(_ byte: UInt8) {
        if byte.isLetterOrDigit || "-._~".utf8.contains(byte) { return append(byte) }
        append(UInt8(ascii: "%"))
        append(HexDigits.upper[Int(byte >> 4)])
        append(HexDigits.upper[Int(byte & 0x0F)])
    }

    mutating func appendJSONEscaped(_ text: [UInt8]) {
        let digits = HexDigits.lower
        for byte in text {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): self += [UInt8(ascii: "\\"), byte]
            case 0..<0x20, 0x7F: self += Array("\\u00".utf8) + [digits[Int(byte >> 4)], digits[Int(byte & 0x0F)]]
            default: append(byte)
            }
        }
    }

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
            if byte == UInt8(ascii: "%"), index + 1 < text.endIndex, text[index].isHexDigit, text[index + 1].isHexDigit
            {
                byte = ReceivedNumber(hexadecimalOctet: text[index...(index + 1)])?.within(0...UInt8.max) ?? 0
                index += 2
            }
            result.appendPercentEncoded(byte)
        }
        return result
    }
}

/// A compact JWS (RFC 7515 §7.1).
enum RecipeJWS {
    static func compact(
        payload: [UInt8], key: [UInt8], _ algorithm: RecipeTemplate.JWSAlgorithm
    ) throws(RecipeValues.Fault) -> [UInt8] {
        let header = #"{"alg":"\#(algorithm.rawValue)","typ":"JWT"}"#
        switch algorithm {
        case .hs256:
            // A shorter key makes the signature weaker than its hash (RFC 7518 §3.2).
            guard key.count >= 32 else { throw .init("HS256 needs a key of at least 32 bytes") }
            return Array(JWS.compact(header: Array(header.utf8), payload: payload) { keyedHash(key: key, $0) }.utf8)
        }
    }
}

enum UUIDText {
    /// A random UUID (RFC 9562 §5.4) out of 16 bytes.
    static func version4(_ entropy: [UInt8]) -> [UInt8] {
        var bytes = Array(entropy.prefix(16)) + Array(repeating: 0, count: Swift.max(0, 16 - entropy.count))
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        let hex = bytes.hex
        let cuts = [0, 8, 12, 16, 20, 32]
        return Array(zip(cuts, cuts.dropFirst()).map { Array(hex[$0..<$1]) }.joined(separator: [UInt8(ascii: "-")]))
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
        // A civil date from days, in years that begin in March, so that the leap day is the last of its year.
        let shifted = Swift.max(days, 0) + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let part = (5 * dayOfYear + 2) / 153
        let month = part < 10 ? part + 3 : part - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let date = [Self.padded(year, 4), Self.padded(month), Self.padded(dayOfYear - (153 * part + 2) / 5 + 1)]
        let clock = [Self.padded(second / 3600), Self.padded(second / 60 % 60), Self.padded(second % 60)]
        extended = date.joined(separator: "-") + "T" + clock.joined(separator: ":") + "Z"
        basicDate = date.joined()
        basic = basicDate + "T" + clock.joined() + "Z"
    }

    private static func padded(_ number: Int64, _ width: Int = 2) -> String {
        let digits = String(number)
        return String(repeating: "0", count: Swift.max(0, width - digits.count)) + digits
    }
}
