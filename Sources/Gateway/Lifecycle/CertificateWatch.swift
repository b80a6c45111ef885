internal import DataPath
internal import Glibc
internal import Reactor
internal import TLS
internal import Telemetry

/// Keeps the certificates of all listeners in order, on the keeper's loop: reads files that changed, says what is about to expire, turns
/// the ticket keys over.
final class CertificateWatch: Watched {
    private let listeners: [(name: String, tls: ListenerTLS)]
    private let blocking: any BlockingWork
    private let events: EventLog
    private var folders: FolderWatch?
    private var notices: [CertificateNotice]
    private var isLooking = false
    private var looksAgain = false
    /// The last complaint about each certificate's broken files, by listener and position, so that it is made once.
    private var complaints: [String: String] = [:]

    /// Nanoseconds between two looks at the clock.
    private static let pace: UInt64 = 60_000_000_000
    /// Certificate and key are two files: a look may come between them, so what is broken is looked at again before anything is said.
    private static let secondLook: UInt64 = 1_000_000_000
    private enum Timer { static let minute: UInt8 = 1, again: UInt8 = 2 }

    init(_ plans: [ListenerPlan], loop: Loop, blocking: any BlockingWork, events: EventLog) {
        listeners = plans.compactMap { plan in plan.tls.map { (plan.text, $0) } }
        self.blocking = blocking
        self.events = events
        notices = listeners.flatMap { listener in
            listener.tls.sources.map { CertificateNotice(listener: listener.name, file: $0.certificate) }
        }
        super.init(loop: loop)
    }

    /// Begins; on the loop, or before it runs.
    func start() {
        guard !listeners.isEmpty else { return }
        loop.adopt(self)
        var paths: Set<String> = []
        for listener in listeners { for source in listener.tls.sources { paths.formUnion(source.folders) } }
        folders = FolderWatch(loop: loop, folders: paths.sorted(), haveBeenRead: true)
        folders?.changed = { [unowned self] in look() }
        tick()
    }

    /// Another one takes over.
    func end() {
        if let folders { loop.close(folders) }
        folders = nil
        loop.close(self)
    }

    override func timerFired(_ kind: UInt8) {
        if kind == Timer.again { return look(isSecond: true) }
        tick()
    }

    private func tick() {
        let now = loop.kernel.now()
        for listener in listeners where listener.tls.tickets.advance(now: now) {
            events.debug("session ticket key changed")
        }
        remind()
        _ = loop.arm(self, at: now + Self.pace, kind: Timer.minute)
    }

    // MARK: - Time

    private func remind() {
        let now = loop.kernel.wallMilliseconds() / 1000
        var index = 0
        for listener in listeners {
            for identity in listener.tls.identities {
                if let notice = notices[index].look(identity, now: now) { say(notice, notices[index], identity, now) }
                index += 1
            }
        }
    }

    private func say(
        _ notice: CertificateNotice.Word, _ about: CertificateNotice, _ identity: ServerIdentity, _ now: Int64
    ) {
        let fields = [
            LogField("listener", .name(about.listener)), LogField("certificate", .name(about.file)),
            LogField("days", .count((identity.notAfter - now) / 86400)),
        ]
        switch notice {
        case .expired: events.error("certificate has expired; callers refuse it", fields)
        case .expiring: events.warn("certificate expires soon", fields)
        case .notYetValid: events.warn("certificate is not valid yet", fields)
        case .stapleRefused(let reason):
            events.warn("no OCSP answer", fields.dropLast() + [LogField("reason", .name(reason))])
        case .stapleExpired: events.warn("OCSP answer has expired and is not sent", Array(fields.dropLast()))
        }
    }

    // MARK: - Change

    private func look(isSecond: Bool = false) {
        guard !isLooking else {
            looksAgain = true
            return
        }
        isLooking = true
        let listeners = listeners.map(\.tls)
        let now = loop.kernel.wallMilliseconds() / 1000
        let home = LoopBound(self)
        let accepted = blocking.run { [loop] in
            let looks = listeners.map { $0.lookAgain(now: now) }
            _ = loop.post { home.value.found(looks, isSecond: isSecond) }
        }
        // Too much else waits there; the next change, or the timer, brings us back.
        if !accepted {
            isLooking = false
            _ = loop.arm(self, at: loop.now + Self.secondLook, kind: Timer.again)
        }
    }

    private func found(_ looks: [[ListenerTLS.Look]], isSecond: Bool) {
        isLooking = false
        var isBroken = false
        for (listener, looks) in zip(listeners, looks) {
            for (source, look) in zip(listener.tls.sources, looks) {
                let certificate = "\(source.listener)/\(source.index)"
                switch look {
                case .unchanged: complaints[certificate] = nil
                case .changed:
                    complaints[certificate] = nil
                    events.info(
                        "certificate taken up",
                        [
                            LogField("listener", .name(listener.name)),
                            LogField("certificate", .name(source.certificate)),
                        ])
                case .broken(let reason):
                    isBroken = true
                    guard isSecond, complaints[certificate] != reason else { continue }
                    complaints[certificate] = reason
                    events.error(
                        "changed certificate cannot be used; the one before it stays",
                        [LogField("listener", .name(listener.name)), LogField("reason", .name(reason))])
                }
            }
        }
        remind()
        if looksAgain {
            looksAgain = false
            return look()
        }
        if isBroken, !isSecond { _ = loop.arm(self, at: loop.now + Self.secondLook, kind: Timer.again) }
    }
}

/// The last warning about the dates of one certificate or its OCSP answer. The same warning comes again after a day, or at once for
/// another certificate in the same file.
struct CertificateNotice {
    let listener: String
    let file: String
    private var said: (word: Word, identity: ObjectIdentifier, at: Int64)?

    enum Word: Equatable { case expired, expiring, notYetValid, stapleRefused(String), stapleExpired }

    private static let day: Int64 = 86400

    init(listener: String, file: String) {
        self.listener = listener
        self.file = file
    }

    /// The warning that is due now; nil where there is none.
    mutating func look(_ identity: ServerIdentity, now: Int64) -> Word? {
        guard let word = Self.word(identity, now: now) else { return nil }
        let id = ObjectIdentifier(identity)
        if let said, said.word == word, said.identity == id, now - said.at < Self.day { return nil }
        said = (word, id, now)
        return word
    }

    /// A week in a month: 21 days before the end of a long life, a quarter of a short one.
    static func isExpiring(from: Int64, to end: Int64, now: Int64) -> Bool {
        end - now < min(21 * day, (end - from) / 4)
    }

    private static func word(_ identity: ServerIdentity, now: Int64) -> Word? {
        if now >= identity.notAfter { return .expired }
        if now < identity.notBefore { return .notYetValid }
        if isExpiring(from: identity.notBefore, to: identity.notAfter, now: now) { return .expiring }
        if let fault = identity.stapleFault { return .stapleRefused("\(fault)") }
        if let until = identity.stapledUntil, now >= until { return .stapleExpired }
        return nil
    }
}
