import GoldenFiles
import Testing

@testable import Tokens

/// The octets under which stores and fleets keep what they have.
@Suite struct GoldenKeyTests {
    @Test func everyKeyHasTheOctetsThatItHad() {
        var lines = KeyTests.variants.enumerated().map {
            line("access", "variant \($0.offset + 1)", KeyCodec.encode($0.element))
        }
        lines.append(line("access", "whole", KeyCodec.encode(KeyTests.key)))
        let bare = AccessKey(digest: digest(1), origin: issuer)
        lines.append(line("access", "bare", KeyCodec.encode(bare)))
        var user = bare
        user.subject = ByteString([0xff, 0x00, 0x25])
        lines.append(line("access", "subject of any octets", KeyCodec.encode(user)))
        for subject in [nil, "", "jane"] as [ByteString?] {
            let key = SessionKey(digest: digest(3), issuer: issuer, subject: subject)
            lines.append(line("session", "subject \(subject.map { "'\($0)'" } ?? "absent")", KeyCodec.encode(key)))
        }
        for part in ["registration", "device", "access_token", "proof-key", "user_assertion", "recipe"] as [ByteString]
        {
            let key = DurableKey(digest: digest(3), issuer: issuer, part: part)
            lines.append(line("durable", "part '\(part)'", KeyCodec.encode(key)))
        }
        let file = GoldenFile(
            "keys.txt", "Layer, what it shows, and the octets of a key (KeyCodec) in hexadecimal.",
            cost:
                "rows of stores on disk and values of shared servers are looked for under other names, so every stored token, session and "
                + "registration is lost, and a fleet of two versions shares nothing.")
        if let difference = file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
    }

    /// Keys of older versions are read for what they were.
    @Test func whatIsRecordedDecodesToItself() throws {
        let lines = GoldenFile("keys.txt", "", cost: "").lines
        #expect(!lines.isEmpty)
        for line in lines {
            let bytes = octets(line.split(separator: " ").last ?? "")
            switch line.split(separator: " ").first {
            case "access": #expect(try KeyCodec.encode(KeyCodec.accessKey(bytes)) == bytes, "\(line)")
            case "session": #expect(try KeyCodec.encode(KeyCodec.sessionKey(bytes)) == bytes, "\(line)")
            default: #expect(try KeyCodec.encode(KeyCodec.durableKey(bytes)) == bytes, "\(line)")
            }
        }
    }

    /// Attempts of passwords: forgotten ones would let a refused password be sent again.
    @Test func everyMarkHasTheOctetsThatItHad() {
        let mark = AttemptMark(
            account: Account(issuer: issuer, user: "svc-hr"), secretHash: ByteString((0..<32).map { UInt8($0) }))
        var lines: [String] = []
        let entries: [(String, AttemptLedger.Entry)] = [
            ("spent once", .init(spent: 1)), ("spent 3 times, 2 left", .init(spent: 3, remaining: 2)),
            ("none left", .init(spent: 1, remaining: 0)),
            ("negative count of the issuer", .init(spent: 1, remaining: -1)),
        ]
        for (what, entry) in entries { lines.append(line("attempt", what, AttemptLedger.encode(mark, entry))) }
        let histories: [(String, AttemptLedger.History)] = [
            ("accepted", .init(wasAccepted: true)),
            ("accepted, tried once more", .init(wasAccepted: true, hasRetried: true)),
            ("rejected", .init(wasRejected: true)),
            ("all of it", .init(wasAccepted: true, hasRetried: true, wasRejected: true)),
        ]
        for (what, history) in histories { lines.append(line("history", what, AttemptLedger.encode(mark, history))) }
        let file = GoldenFile(
            "attempt-marks.txt",
            "Kind, what it says, and the octets of a mark of a password's attempts in hexadecimal.",
            cost:
                "marks of before are not understood, so that a password which was refused, or sent without an answer, is sent once more "
                + "after an upgrade, and an account may be locked.")
        if let difference = file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
        var ledger = AttemptLedger()
        for line in file.lines where line.hasPrefix("attempt spent once") {
            ledger.restore(octets(line.split(separator: " ").last ?? ""))
        }
        #expect(ledger.verdict(for: mark, .init()) == .spent)
    }

    @Test func aLearnedTableHasTheOctetsThatItHad() throws {
        var lines: [String] = []
        for (binding, word) in [(LearnedTable.Binding.realm, "realm"), (.url, "url")] {
            var table = LearnedTable(binding: binding)
            for (path, realm) in [("/hr/a", "HR_WG"), ("/hr/b/c", "HR_ADMIN"), ("/stock/x", "STOCK")] {
                _ = table.learnChallenge(
                    of: Realm(ByteString(binding == .url ? path : realm)),
                    at: LearnedEntry(path: Array(path.utf8), method: Array("GET".utf8)))
            }
            _ = table.learnOpen(at: LearnedEntry(path: Array("/hr/b/c/open".utf8), method: Array("HEAD".utf8)))
            lines.append(line("learned", word, table.encode()))
            let read = try LearnedTable(decoding: table.encode(), binding: binding)
            #expect(read.encode() == table.encode())
        }
        let file = GoldenFile(
            "learned-tables.txt",
            "What tokens are bound to, and the octets of a table of learned paths in hexadecimal.",
            cost:
                "what routes have learned is forgotten at an upgrade: each path costs one more refused request, and routes without a "
                + "probe have no token ahead.")
        if let difference = file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
    }

    private func line(_ kind: String, _ what: String, _ bytes: [UInt8]) -> String {
        "\(kind) \(what): \(hexadecimal(bytes))"
    }
}
