public import Configuration
internal import Octets

/// Initialization properties of Oracle's IDM Mobile SDK, as a configuration URL or a list of them holds them.
public struct SDKProperties: Sendable, Equatable {
    /// In the order in which they were found; each name stands once.
    public private(set) var all: [NamedValue] = []

    /// Octets of the whole.
    public static let largest = 64 * 1024
    /// The most properties of a file.
    public static let mostProperties = 256
    static let longestName = 128
    static let longestValue = 4096

    /// Why something is no list of properties. Never holds a value: it may be a secret.
    public struct Fault: Error, Equatable, CustomStringConvertible {
        /// Follows the name of the file.
        public var description: String
        init(_ description: String) { self.description = description }
    }
}

// MARK: - Reading

extension SDKProperties {
    /// A configuration URL (`scheme://host?name::=value&…`), or lines of `name = value`, of which those that begin with `#` or `//` are
    /// left out. Names are those of the SDK's constants or of its URLs.
    public init(_ bytes: [UInt8]) throws(Fault) {
        guard bytes.count <= Self.largest else { throw Fault("larger than 64 KiB") }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw Fault("not UTF-8") }
        let lines = text.split(whereSeparator: \.isNewline).map(Self.trimmed).filter { !$0.isEmpty }
        guard let first = lines.first else { throw Fault("empty") }
        if Self.isURL(first) {
            // Documents break such URLs before a `&`.
            try readURL(lines.joined())
        } else {
            try readLines(lines)
        }
        guard !all.isEmpty else { throw Fault("no property in it") }
    }

    /// A file of them.
    public init(file path: String) throws(Fault) {
        let bytes: [UInt8]
        do throws(FileReader.Fault) { bytes = try FileReader.read(path, bound: Self.largest) } catch {
            throw Fault(error.message)
        }
        try self.init(bytes)
    }

    /// Whether it begins as a configuration URL does.
    public static func isURL(_ text: String) -> Bool {
        guard let mark = text.firstRange(of: "://") else { return false }
        let scheme = text[..<mark.lowerBound]
        return (1...64).contains(scheme.utf8.count) && scheme.first?.isLetter == true
            && scheme.utf8.allSatisfy { $0.isLetterOrDigit || "+-.".utf8.contains($0) } && text.contains("?")
    }

    private mutating func readURL(_ text: String) throws(Fault) {
        guard let mark = text.firstIndex(of: "?") else { throw Fault("a URL without '?'") }
        for part in text[text.index(after: mark)...].split(separator: "&") {
            guard let sign = part.firstRange(of: "::=") else {
                throw Fault("a part of the URL is not of the form name::=value")
            }
            try add(Self.decoded(part[..<sign.lowerBound]), Self.decoded(part[sign.upperBound...]))
        }
    }

    private mutating func readLines(_ lines: [String]) throws(Fault) {
        for (index, line) in lines.enumerated() where !line.hasPrefix("#") && !line.hasPrefix("//") {
            guard let sign = line.firstIndex(where: { $0 == "=" || $0 == ":" }) else {
                throw Fault("line \(index + 1) is not of the form name = value")
            }
            var value = line[line.index(after: sign)...]
            // The sign is `::=`, the same as in the URL.
            if value.hasPrefix(":=") { value = value.dropFirst(2) }
            try add(Self.trimmed(line[..<sign]), Self.unquoted(Self.trimmed(value)))
        }
    }

    private mutating func add(_ name: String, _ value: String) throws(Fault) {
        guard (1...Self.longestName).contains(name.utf8.count),
            name.utf8.allSatisfy({ $0.isLetterOrDigit || "_()-.".utf8.contains($0) })
        else {
            throw Fault("a property's name is empty, too long, or has other characters than letters, digits, _ and ()")
        }
        guard value.utf8.count <= Self.longestValue else {
            throw Fault("the value of \(name) is longer than 4096 octets")
        }
        guard value.unicodeScalars.allSatisfy({ $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }) else {
            throw Fault("the value of \(name) has a control character")
        }
        guard !all.contains(where: { $0.name == name }) else { throw Fault("\(name) stands there twice") }
        guard all.count < Self.mostProperties else { throw Fault("more than 256 properties") }
        all.append(NamedValue(name: name, value: value))
    }

    private static func decoded(_ text: Substring) throws(Fault) -> String {
        guard let bytes = PercentEncoding.decode(text.utf8) else {
            throw Fault("a percent sign in the URL without two hexadecimal digits behind it")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Fault("a value of the URL is not UTF-8")
        }
        return text
    }

    private static func trimmed(_ text: some StringProtocol) -> String {
        var rest = Substring(text)
        while let last = rest.last, last.isWhitespace { rest.removeLast() }
        return String(rest.drop(while: \.isWhitespace))
    }

    private static func unquoted(_ text: String) -> String {
        guard text.utf8.count >= 2, text.hasPrefix("\""), text.hasSuffix("\"") else { return text }
        return String(text.dropFirst().dropLast())
    }
}
