import Admin
import Glibc

/// The table that `cardea tokens` prints: a line for each token, and for each identity that has none.
struct TokenTable: Encodable {
    /// A line's cells, in the order of the columns.
    struct Row: Equatable {
        var identity: String
        var key = "–"
        var upstream = "–"
        var state: String
        var age = "–"
        var expires = "–"
        var next = "–"
        var grants: UInt64
        var failure: String?
        var isBad = false
    }

    private var identities: [StatusDocument.Identity]
    private var tokens: [StatusDocument.Token]
    private var leftOut: Int

    private enum CodingKeys: String, CodingKey { case identities, tokens, leftOut = "tokensLeftOut" }

    /// - Parameter names: of the identities that are asked for; empty for all.
    init(_ status: StatusDocument, of names: [String] = []) {
        identities = status.identities.filter { names.isEmpty || names.contains($0.name) }
        tokens = status.tokens.filter { names.isEmpty || names.contains($0.identity) }
        leftOut = status.tokensLeftOut
    }

    /// In the order of the configuration.
    var rows: [Row] {
        let owned = Dictionary(grouping: tokens, by: \.identity)
        return identities.flatMap { identity -> [Row] in
            // A failure is told once, beside the token that it befell.
            guard let tokens = owned[identity.name] else { return [Self.row(of: identity)] }
            return tokens.map { Self.row(of: $0, identity) }
        }
    }

    private static func row(of identity: StatusDocument.Identity) -> Row {
        Row(
            identity: identity.name, state: identity.state, next: identity.advice ?? "–", grants: identity.grants,
            failure: told(identity.lastFailure, identity.lastFailureSecondsAgo), isBad: isBad(identity))
    }

    private static func row(of token: StatusDocument.Token, _ identity: StatusDocument.Identity) -> Row {
        var row = Row(
            identity: token.identity, state: token.state, grants: token.grants,
            failure: told(token.lastFailure, token.lastFailureSecondsAgo))
        row.key = [token.realm + (token.level.map { ":\($0)" } ?? ""), token.scopes].filter { !$0.isEmpty }
            .joined(separator: " / ")
        if row.key.isEmpty { row.key = "–" }
        row.upstream = shortOrigin(token.upstream)
        if let count = token.subjects {
            row.state = "\(count) \(count == 1 ? "user" : "users")"
            row.grants = identity.grants
        } else if let age = token.ageSeconds {
            row.age = span(age)
            row.expires = token.expiresInSeconds.map { $0 <= 0 ? "expired" : "in \(span($0))" } ?? "never"
        }
        if identity.quarantined || identity.state == "login_needed" {
            row.isBad = true
            if token.ageSeconds == nil { row.state = identity.state }
            row.next = identity.advice ?? "–"
            row.failure = row.failure ?? told(identity.lastFailure, identity.lastFailureSecondsAgo)
        } else if let retry = token.retryInSeconds, retry > 0 {
            row.next = "retry \(span(retry))"
        } else if let refresh = token.refreshInSeconds {
            row.next = refresh <= 0 ? "refresh due" : "refresh \(span(refresh))"
        } else if token.waiting > 0 {
            row.next = "\(token.waiting) waiting"
        }
        if token.earlierSettings == true {
            // Not the trouble of the identity as it is now; and renewed no more.
            row.isBad = false
            row.next = "of earlier settings, goes soon"
        }
        return row
    }

    private static func told(_ failure: String?, _ seconds: Double?) -> String? {
        failure.map { failure in seconds.map { "\(span($0)) ago: \(failure)" } ?? failure }
    }

    private static func isBad(_ identity: StatusDocument.Identity) -> Bool {
        identity.quarantined || ["login_needed", "failed", "negative"].contains(identity.state)
    }

    /// The largest unit alone, as one looks at it: `12m`, `3d`.
    static func span(_ seconds: Double) -> String {
        switch seconds {
        case ..<60: "\(Int(max(seconds, 0)))s"
        case ..<3600: "\(Int(seconds / 60))m"
        case ..<172_800: "\(Int(seconds / 3600))h"
        default: "\(Int(min(seconds / 86_400, 1e9)))d"
        }
    }

    /// An origin as people write it.
    private static func shortOrigin(_ origin: String) -> String {
        guard origin.hasPrefix("https://") else { return origin }
        return String(
            origin.dropFirst(8).reversed().starts(with: ":443".reversed())
                ? origin.dropFirst(8).dropLast(4) : origin.dropFirst(8))
    }
}

// MARK: - Text

extension TokenTable {
    func text(hasColours: Bool) -> String { lines(hasColours: hasColours).joined(separator: "\n") }

    /// The table's lines, its head first.
    func lines(hasColours: Bool) -> [String] {
        let head = ["IDENTITY", "REALM / SCOPE", "UPSTREAM", "STATE", "AGE", "EXPIRES", "NEXT", "GRANTS", "LAST ERROR"]
        let rows = self.rows
        let cells = rows.map { row in
            [
                row.identity, row.key, row.upstream, row.state, row.age, row.expires, row.next, String(row.grants),
                row.failure ?? "–",
            ].map(Self.printable)
        }
        var widths = head.map(\.unicodeScalars.count)
        for line in cells {
            for (column, cell) in line.enumerated() { widths[column] = max(widths[column], cell.unicodeScalars.count) }
        }
        func line(_ cells: [String], colour: String? = nil) -> String {
            var parts: [String] = []
            for (column, cell) in cells.enumerated() {
                let room = String(repeating: " ", count: widths[column] - cell.unicodeScalars.count)
                // Numbers end where numbers end; the last column needs no room behind it.
                let shown = column == 3 ? colour.map { "\u{1B}[\($0)m\(cell)\u{1B}[0m" } ?? cell : cell
                parts.append(column == 7 ? room + shown : column == cells.count - 1 ? shown : shown + room)
            }
            return parts.joined(separator: "  ")
        }
        var lines = [line(head)]
        for (row, cells) in zip(rows, cells) { lines.append(line(cells, colour: hasColours && row.isBad ? "31" : nil)) }
        if identities.isEmpty { lines = ["no identities: every route forwards without a credential"] }
        if leftOut > 0 { lines.append("and \(leftOut) more tokens") }
        return lines
    }

    /// Realms and failures come from the network: nothing of theirs may move a terminal's cursor or fill it.
    static func printable(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars.prefix(120) {
            switch scalar.value {
            case 0..<0x20, 0x7F...0x9F, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069: result += "\u{FFFD}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return text.unicodeScalars.count > 120 ? result + "…" : result
    }
}

/// The abilities of standard output.
enum Terminal {
    static var hasColours: Bool {
        let environment = ConfigurationAccess.environment
        return isatty(1) == 1 && (environment("NO_COLOR") ?? "").isEmpty && environment("TERM") != "dumb"
    }

    /// Standard output is a terminal that can be written anew from its top.
    static var hasScreen: Bool {
        isatty(1) == 1 && !["", "dumb"].contains(ConfigurationAccess.environment("TERM") ?? "")
    }
}
