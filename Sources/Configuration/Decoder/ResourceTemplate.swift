internal import Numbers
internal import Octets

/// The resource that a request wants to be authorized for: a text with `{path.N}`, the N-th segment of its path (from 1), and `{query.NAME}` in it.
///
/// A value out of a request is decoded, bounded, and without control characters; inside of XML it is escaped.
public struct ResourceTemplate: Sendable, Hashable {
    enum Part: Sendable, Hashable {
        case text(String)
        case segment(Int)
        case query(String)
    }

    let parts: [Part]
    /// An MRSS fragment: values are escaped.
    let isXML: Bool

    /// Bytes that one value out of a request may have, and the whole.
    static let longestValue = 256
    static let longest = 4096

    /// Why a text is no template.
    public struct Fault: Error, Sendable, Equatable {
        /// Follows the name of the key in a diagnostic.
        public let reason: String
    }
}

// MARK: - Reading

extension ResourceTemplate {
    /// - Throws: `Fault` for more than 4 KiB, a brace without its partner and a name that is not known.
    public init(_ text: String) throws(Fault) {
        guard text.utf8.count <= Self.longest else { throw Fault(reason: "is over 4 KiB") }
        var parts: [Part] = []
        var rest = text[...]
        while let open = rest.firstIndex(where: { $0 == "{" || $0 == "}" }) {
            guard rest[open] == "{", let close = rest[open...].firstIndex(of: "}") else {
                throw Fault(reason: "has a brace without its other")
            }
            if open > rest.startIndex { parts.append(.text(String(rest[..<open]))) }
            parts.append(try Self.value(rest[rest.index(after: open)..<close]))
            rest = rest[rest.index(after: close)...]
        }
        if !rest.isEmpty { parts.append(.text(String(rest))) }
        guard !parts.isEmpty else { throw Fault(reason: "is empty") }
        self.parts = parts
        isXML = text.first { $0 != " " } == "<"
    }

    private static func value(_ name: Substring) throws(Fault) -> Part {
        let fault = Fault(
            reason: "knows only {path.1} to {path.16} and {query.name}, not '{\(Quoted.short(String(name)))}'")
        let words = name.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard words.count == 2 else { throw fault }
        switch words[0] {
        case "path":
            guard let number = ReceivedNumber(words[1])?.within(1...16), "\(number)" == words[1] else { throw fault }
            return .segment(number)
        case "query":
            let isName =
                (1...64).contains(words[1].utf8.count)
                && words[1].allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0)) }
            guard isName else { throw fault }
            return .query(String(words[1]))
        default: throw fault
        }
    }
}

// MARK: - Filling in

extension ResourceTemplate {
    /// The text for one request; nil where the request lacks a part of it, or has something there that cannot be told to anybody.
    ///
    /// - Parameter target: path and query as they were received.
    public func text(for target: some Collection<UInt8>) -> String? {
        let halves = target.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
        let segments = (halves.first ?? target[...]).split(separator: UInt8(ascii: "/"))
        var result = ""
        for part in parts {
            switch part {
            case .text(let text): result += text
            case .segment(let number):
                guard number <= segments.count, let value = value(segments[number - 1], spaces: false) else {
                    return nil
                }
                result += value
            case .query(let name):
                guard halves.count == 2, let value = parameter(name, halves[1]) else { return nil }
                result += value
            }
        }
        return result.utf8.count <= Self.longest ? result : nil
    }

    /// Exactly one: of two it would be a matter of luck which one the upstream takes.
    private func parameter(_ name: String, _ query: some Collection<UInt8>) -> String? {
        var found: String?
        for pair in query.split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard PercentEncoding.decode(parts[0], plusIsBlank: true) == Array(name.utf8) else { continue }
            guard found == nil, parts.count == 2, let value = value(parts[1], spaces: true) else { return nil }
            found = value
        }
        return found
    }

    private func value(_ raw: some Collection<UInt8>, spaces: Bool) -> String? {
        guard let bytes = PercentEncoding.decode(raw, plusIsBlank: spaces),
            (1...Self.longestValue).contains(bytes.count),
            let text = String(validating: bytes, as: UTF8.self),
            !text.unicodeScalars.contains(where: { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) })
        else { return nil }
        guard isXML else { return text }
        return text.reduce(into: "") { escaped, character in
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&apos;"
            default: escaped.append(character)
            }
        }
    }
}
