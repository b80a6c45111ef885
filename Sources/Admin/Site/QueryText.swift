internal import DataPath
internal import Octets

/// The first value of a name in a query string (application/x-www-form-urlencoded), decoded; nil when the name is missing or the
/// value is not well-formed UTF-8 with whole escapes.
func queryValue(_ name: String, in query: String) -> String? {
    for pair in query.utf8.split(separator: UInt8(ascii: "&")) {
        let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
        guard let key = unescaped(parts[0]), key == name else { continue }
        return parts.count == 2 ? unescaped(parts[1]) : ""
    }
    return nil
}

extension AdminRequest {
    /// The value of a query parameter; nil where it is missing or empty.
    func value(_ name: String) -> String? { queryValue(name, in: query).flatMap { $0.isEmpty ? nil : $0 } }
}

private func unescaped(_ text: some Sequence<UInt8>) -> String? {
    PercentEncoding.decode(text, plusIsBlank: true).flatMap { String(validating: $0, as: UTF8.self) }
}
