internal import Numbers
internal import Octets
internal import TLS

/// The news that gateways tell each other.
public enum FleetNews: Sendable, Equatable {
    case published(SharedName, identity: String)
    case withdrawn(SharedName, identity: String)
    case released(SharedName)
    /// A step that may spend a refresh token has begun under that lock, or is over. The marks on the server say so too, but whoever writes to it
    /// can take them away.
    case spending(SharedName, owner: String, isOver: Bool)
    /// A session has come to this version; without one, as gateways of the old format tell it, that it has changed.
    case session(SharedName, version: SessionVersion?)
    /// The session of this version, and none after it. Without a version, as gateways of the old format tell it, nothing is known but that
    /// it is worth a look.
    case sessionEnded(SharedName, version: SessionVersion?)
    case rejected(account: SharedName)
    case reset(account: SharedName)
    /// The server has lost a session: whoever has it is to bring it back.
    case sessionMissed(SharedName)
    /// The server was wiped while it ran: what each gateway knows is to be brought back.
    case forgotten

    /// Reads news of the old format. That format has no versions, so that a message with one may have been written by anybody, and is none.
    init?(_ message: [UInt8]) {
        let text = String(decoding: message.prefix(256), as: UTF8.self)
        self.init(words: text.split(separator: " "))
        guard oldMessage == text else { return nil }
    }

    fileprivate init?(words: [Substring]) {
        if words == ["forgotten"] {
            self = .forgotten
            return
        }
        guard words.count >= 2, let name = SharedName(words[1]) else { return nil }
        let version = words.count > 2 ? ReceivedNumber(words[2]).flatMap { SessionVersion($0) } : nil
        switch (words[0], words.count) {
        case ("published", 3): self = .published(name, identity: String(words[2]))
        case ("withdrawn", 3): self = .withdrawn(name, identity: String(words[2]))
        case ("released", 2): self = .released(name)
        case ("spending", 3), ("spent", 3):
            guard words[2].utf8.count <= 32 else { return nil }
            self = .spending(name, owner: String(words[2]), isOver: words[0] == "spent")
        case ("session", 2),
            ("session", 3) where version != nil:
            self = .session(name, version: version)
        case ("ended", 2),
            ("ended", 3) where version != nil:
            self = .sessionEnded(name, version: version)
        case ("missed", 2): self = .sessionMissed(name)
        case ("rejected", 2): self = .rejected(account: name)
        case ("reset", 2): self = .reset(account: name)
        default: return nil
        }
    }

    private var words: [String] {
        switch self {
        case .published(let name, let identity): ["published", name.text, identity]
        case .withdrawn(let name, let identity): ["withdrawn", name.text, identity]
        case .released(let name): ["released", name.text]
        case .spending(let name, let owner, let isOver): [isOver ? "spent" : "spending", name.text, owner]
        case .session(let name, let version): ["session", name.text] + (version.map { ["\($0)"] } ?? [])
        case .sessionMissed(let name): ["missed", name.text]
        case .sessionEnded(let name, let version): ["ended", name.text] + (version.map { ["\($0)"] } ?? [])
        case .rejected(let account): ["rejected", account.text]
        case .reset(let account): ["reset", account.text]
        case .forgotten: ["forgotten"]
        }
    }

    /// In the old format there is no version, and gateways of that time take no news that has one.
    var oldMessage: String {
        switch self {
        case .session(let name, _): "session \(name.text)"
        case .sessionEnded(let name, _): "ended \(name.text)"
        // There is none.
        case .spending: ""
        default: words.joined(separator: " ")
        }
    }
}

/// Tells news that come in the old format right behind the new one, as gateways with both send them, from others.
final class RepeatedNews {
    private var heard: [(message: String, moment: WallTime)] = []
    /// The two are published in one step.
    private static let patience = TimeSpan(1, .seconds)
    private static let most = 64

    func isRepeated(_ news: FleetNews, isSealed: Bool, at now: WallTime) -> Bool {
        heard.removeAll { now.left(at: $0.moment) > Self.patience }
        if isSealed {
            guard !news.oldMessage.isEmpty else { return false }
            if heard.count == Self.most { heard.removeFirst() }
            heard.append((news.oldMessage, now))
            return false
        }
        guard let index = heard.firstIndex(where: { $0.message == news.oldMessage }) else { return false }
        heard.remove(at: index)
        return true
    }
}

// MARK: - Sealed

extension FleetKeys {
    private static let newsBinding = Array("2 news".utf8)
    private static let newsMark = Array("2 ".utf8)

    /// With the moment in it: news that are told again later tell nothing, and within that time count once (`HeardNews`).
    func seal(_ news: FleetNews, at now: WallTime) throws(SealingFault) -> [UInt8] {
        let text = "\(now.milliseconds) \(news.sealedText)"
        return Self.newsMark + Array(Base64.encodeURL(try ring.seal(Array(text.utf8), boundTo: Self.newsBinding)).utf8)
    }

    /// With the moment that they were sealed at. Nil for what no gateway of the fleet has sealed within the time that clocks may differ.
    func news(_ message: [UInt8], at now: WallTime) -> (news: FleetNews, moment: WallTime)? {
        guard message.count <= 1024, message.starts(with: Self.newsMark),
            let sealed = Base64.decodeURL(message.dropFirst(Self.newsMark.count)),
            let opened = try? ring.open(sealed, boundTo: Self.newsBinding)
        else { return nil }
        let parts = String(decoding: opened, as: UTF8.self).split(separator: " ", maxSplits: 1)
        guard parts.count == 2, let moment = ReceivedNumber(parts[0]).map({ WallTime(milliseconds: $0) }),
            moment.left(at: now) <= SealedEnvelope.tolerance, now.left(at: moment) <= SealedEnvelope.tolerance
        else { return nil }
        return FleetNews(words: parts[1].split(separator: " ")).map { ($0, moment) }
    }

    static func isSealedNews(_ message: [UInt8]) -> Bool { message.starts(with: newsMark) }
}

extension FleetNews {
    fileprivate var sealedText: String { words.joined(separator: " ") }
}
