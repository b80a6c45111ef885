internal import Octets

/// When a SAML assertion says that it ends: the earliest `NotOnOrAfter` in it, in seconds since 1970. As with `JWTTimes` nothing is
/// verified, and it counts only where nobody says better.
enum SAMLTimes {
    /// An assertion grows beyond this only by mistake, or with intent.
    static let largest = 256 * 1024
    private static let mostTimes = 16

    /// The expiry in the XML, or in base 64 of it, compressed or not. Nil for anything else.
    static func expiry(of token: Secret) -> Int64? {
        guard var document = document(token) else { return nil }
        defer { document.wipe() }
        return expiry(inDocument: document)
    }

    private static func document(_ token: Secret) -> [UInt8]? {
        var text = token.withBytes { $0.filter { !$0.isJSONBlank } }
        if text.first == UInt8(ascii: "<") { return token.withBytes { Array($0) } }
        defer { text.wipe() }
        guard let bytes = Base64.decode(text), let first = bytes.first else { return nil }
        if first == UInt8(ascii: "<") { return bytes }
        return Gzip.decompress(bytes, upTo: largest)
    }

    private static func expiry(inDocument document: [UInt8]) -> Int64? {
        let name = Array("NotOnOrAfter".utf8)
        var earliest: Int64?
        var found = 0
        var rest = document[...]
        while found < mostTimes, let range = rest.firstRange(of: name) {
            rest = rest[range.upperBound...].drop { $0.isJSONBlank }
            // Without a value the name may stand here once more.
            guard rest.first == UInt8(ascii: "=") else { continue }
            rest = rest.dropFirst().drop { $0.isJSONBlank }
            guard let quote = rest.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else { continue }
            rest = rest.dropFirst()
            found += 1
            guard let time = seconds(rest.prefix { $0 != quote }) else { continue }
            earliest = min(earliest ?? time, time)
        }
        return earliest
    }

    /// `2026-11-22T02:15:00.000Z`: a time of UTC (SAML core §1.3.3).
    private static func seconds(_ text: ArraySlice<UInt8>) -> Int64? {
        text.last == UInt8(ascii: "Z") ? InternetTime.seconds(text) : nil
    }
}
