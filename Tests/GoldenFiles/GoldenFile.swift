import FoundationEssentials

/// A text under Tests/Golden: how something stood when it was last agreed on, of which others hold copies. Stores on disk, servers that a
/// fleet shares, scrapers and scripts outlive a release, so a difference is a decision and never an accident.
///
/// `make golden` writes all of them anew from what the code says now.
public struct GoldenFile: Sendable {
    /// The file's name under Tests/Golden.
    public let name: String
    /// A sentence that says what a line is, for whoever opens the file.
    public let title: String
    /// The loss of users when a line changes or goes, in one or two sentences.
    public let cost: String

    /// Memberwise.
    public init(_ name: String, _ title: String, cost: String) {
        self.name = name
        self.title = title
        self.cost = cost
    }

    /// Nil where the file has exactly these lines, or was just written with them.
    /// - Returns: what differs, what it means, and what to do.
    public func difference(from lines: [String]) -> String? {
        if Self.writes {
            write(lines)
            return nil
        }
        let recorded = self.lines
        guard recorded != lines else { return nil }
        let gone = recorded.filter { !Set(lines).contains($0) }
        let fresh = lines.filter { !Set(recorded).contains($0) }
        let changes = (gone.map { "- " + $0 } + fresh.map { "+ " + $0 }).prefix(Self.shown)
        let rest = gone.count + fresh.count - changes.count
        var text = "Tests/Golden/\(name) and the code differ:\n" + changes.joined(separator: "\n")
        if rest > 0 { text += "\n… and \(rest) more" }
        if gone.isEmpty && fresh.isEmpty { text += "The order of its lines is another one." }
        if gone.isEmpty {
            text +=
                "\nLines are new and none has changed: `make golden` adds them; commit the file with the change that brings them."
        } else {
            text +=
                "\nWhat has changed costs somebody something: \(cost)\nWhere that was not meant, mend the code. Where it is, say in the "
                + "commit what users lose and what they do about it, then `make golden` writes the file anew."
        }
        return text
    }

    /// The lines as they stand on disk, without the head. Empty where there is no file.
    public var lines: [String] {
        guard let bytes = try? Data(contentsOf: URL(filePath: path)) else { return [] }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
            .filter { !$0.hasPrefix("# ") }
    }

    /// The folder of all of them, with a slash at its end.
    public static let folder = #filePath.split(separator: "/").dropLast(2).map { "/" + $0 }.joined() + "/Golden/"

    private static let shown = 24
    /// Whether files are written anew (`make golden`) instead of compared.
    public static let writes = ProcessInfo.processInfo.environment["CARDEA_GOLDEN"] == "write"
    private var path: String { Self.folder + name }

    private func write(_ lines: [String]) {
        let text = (["# \(title)", "# A change costs: \(cost)"] + lines).joined(separator: "\n") + "\n"
        do { try Data(text.utf8).write(to: URL(filePath: path)) } catch { print("\(path): \(error)") }
    }
}

/// Lower-case hexadecimal digits, two an octet.
public func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

/// The octets of hexadecimal digits; empty for any other text.
public func octets(_ digits: some StringProtocol) -> [UInt8] {
    let digits = Array(digits.utf8)
    guard digits.count % 2 == 0 else { return [] }
    return stride(from: 0, to: digits.count, by: 2).compactMap {
        UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)
    }
}

/// Octets for a person: visible ASCII as it is, a backslash doubled, everything else as `\xHH`.
public func readable(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { byte in
        switch byte {
        case 0x5c: "\\\\"
        case 0x20...0x7e: String(UnicodeScalar(byte))
        default: "\\x" + hexadecimal([byte])
        }
    }.joined()
}
