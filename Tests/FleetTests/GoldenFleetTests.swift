import GoldenFiles
internal import Numbers
internal import TLS
import Testing

@testable import Fleet

/// Names and values that the gateways of one fleet write to the shared server and read there, whatever version each of them is of.
@Suite struct GoldenFleetTests {
    private static let kinds: [(SharedKind, String)] = [
        (.token, "token"), (.session, "session"), (.lock, "lane"), (.durable, "durable"), (.account, "account"),
        (.secret, "secret"),
    ]
    private static let now = WallTime(milliseconds: 1_800_000_000_000)

    private func keys() throws -> FleetKeys {
        let key = try SealingKey(bytes: (0..<32).map { UInt8(200 - $0) })
        return try FleetKeys(SealingKeyRing([key]))
    }

    @Test func everyNameIsTheOneThatItWas() throws {
        let keys = try keys()
        var lines = ["prefix: \(keys.prefix)", "identity of the value 01020304: \(keys.identity(of: [1, 2, 3, 4]))"]
        for (kind, word) in Self.kinds {
            lines.append("name of \(word) under key 010203: \(keys.name(kind, [1, 2, 3]).text)")
        }
        let name = keys.name(.session, [1, 2, 3])
        for (part, word) in [
            (RedisTier.Part.value, "value"), (.lease, "lease"), (.generation, "generation"), (.session, "session"),
            (.spending, "spending"), (.attempts, "attempts"),
        ] { lines.append("key of \(word): \(keys.prefix)\(part.rawValue)\(name.text)") }
        let attempt = SharedAttempt(account: keys.name(.account, [1]), secret: keys.name(.secret, [2]), number: "1z")
        lines.append("field of an attempt: \(attempt.secret):\(attempt.number)")
        for (news, word) in try samples(keys) {
            lines.append("news, old format, \(word): \(news.oldMessage.isEmpty ? "none" : news.oldMessage)")
        }
        lines.append("version 7 in octets: \(hexadecimal(try version(7).octets))")
        lines += [
            "milliseconds that a lease holds: \(SharedLease.duration)",
            "milliseconds between its renewals: \(SharedLease.renewal)",
            "milliseconds that a step under way keeps others away: \(SharedLease.silence)",
            "milliseconds of settling: \(RedisTier.settling)",
            "milliseconds that a value lasts at most: \(RedisTier.longest.milliseconds)",
        ]
        let file = GoldenFile(
            "fleet-names.txt", "Names and words on the shared server, for the store key c8c7…a9.",
            cost:
                "gateways of two versions find neither each other's tokens nor leases nor attempts, so that two of them may send one "
                + "refresh token or one refused password.")
        if let difference = file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
    }

    private func version(_ number: Int64) throws -> SessionVersion {
        try #require(SessionVersion(ReceivedNumber(number)))
    }

    private func samples(_ keys: FleetKeys) throws -> [(FleetNews, String)] {
        let name = keys.name(.session, [1, 2, 3])
        let account = keys.name(.account, [1])
        let news: [FleetNews] = [
            .published(name, identity: "0123456789abcdef"), .withdrawn(name, identity: "0123456789abcdef"),
            .released(name), .spending(name, owner: "E0ZLWgKcqSsL6nMtfMHrfytl", isOver: false),
            .spending(name, owner: "E0ZLWgKcqSsL6nMtfMHrfytl", isOver: true), .session(name, version: try version(7)),
            .session(name, version: nil),
            .sessionEnded(name, version: try version(7)), .sessionMissed(name), .rejected(account: account),
            .reset(account: account), .forgotten,
        ]
        return news.map { ($0, Self.word(of: $0)) }
    }

    /// A new case ends the compilation here, so that a sample of it is brought into the list.
    private static func word(of news: FleetNews) -> String {
        switch news {
        case .published: "published"
        case .withdrawn: "withdrawn"
        case .released: "released"
        case .spending(_, _, let isOver): isOver ? "spending is over" : "spending"
        case .session(_, let version): version == nil ? "session without a version" : "session"
        case .sessionEnded: "session ended"
        case .sessionMissed: "session missed"
        case .rejected: "rejected"
        case .reset: "reset"
        case .forgotten: "forgotten"
        }
    }

    /// Each with what stands in it. A seal has random octets: a recorded one stays as long as it opens.
    @Test func everySealedValueOpensAsItDid() throws {
        let keys = try keys()
        let name = keys.name(.session, [1, 2, 3])
        let recorded = Dictionary(
            Self.file.lines.compactMap { line in
                line.firstRange(of: ": ").map { (line[..<$0.lowerBound], octets(line[$0.upperBound...])) }
            },
            uniquingKeysWith: { first, _ in first })
        var lines: [String] = []
        func add(_ what: String, _ fresh: [UInt8], opens: ([UInt8]) -> Bool) {
            let standing = recorded[what[...]].flatMap { opens($0) ? $0 : nil }
            #expect(opens(fresh), "\(what) is not read as it is written")
            lines.append("\(what): \(hexadecimal(standing ?? fresh))")
        }
        let value = Array("value".utf8)
        add("old format, 'value' under a session's name", try keys.seal(value, for: name)) {
            (try? keys.open($0, for: name)) == value
        }
        let envelopes: [(String, SealedEnvelope)] = [
            ("version 7, without an end, 'value'", SealedEnvelope(version: try version(7), end: nil, value: value)),
            ("version 7, over", SealedEnvelope(version: try version(7), end: nil, value: [])),
            (
                "ends at 1800000600000, identity 'id', 'value'",
                SealedEnvelope(end: WallTime(milliseconds: 1_800_000_600_000), identity: "id", value: value)
            ),
        ]
        for (what, envelope) in envelopes {
            lines.append("envelope, \(what): \(hexadecimal(envelope.octets))")
            add("new format, \(what)", try keys.seal(envelope, for: name)) { keys.envelope($0, for: name) == envelope }
        }
        for (news, word) in try samples(keys) {
            add("sealed news, \(word)", try keys.seal(news, at: Self.now)) { keys.news($0, at: Self.now)?.news == news }
        }
        if let difference = Self.file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
    }

    private static let file = GoldenFile(
        "fleet-values.txt",
        "Values and news on the shared server in hexadecimal, sealed with the store key c8c7…a9 at 1800000000000 under the session name of 010203.",
        cost:
            "gateways of two versions cannot read each other's tokens, sessions and news: each gets its own from the issuer, and a "
            + "session that one has renewed is dead for the others.")
}
