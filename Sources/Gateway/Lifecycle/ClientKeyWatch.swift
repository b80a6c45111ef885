internal import Configuration
internal import DataPath
internal import Keeping
internal import Reactor
internal import TLS
internal import Telemetry

/// Reads client keys, and the authorities by which servers are judged, again when their folders change, and says in time that a certificate ends. Lives on the keeper's loop; the reading
/// is the blocking thread's.
final class ClientKeyWatch: @unchecked Sendable {
    private let sets: [ClientKeys]
    private let trusts: [TrustAnchors]
    private let proxies: [ProxyCredential]
    private let tokens: [CallerToken]
    private let keeper: Keeper
    private let events: EventLog
    private let alarm: Alarm
    private var isReading = false
    private var again = false
    /// The last known state of each certificate, by thumbprint, so that every state is told once.
    private var said: [[UInt8]: ExpiryState] = [:]

    private static let day: UInt64 = 86_400_000_000_000

    /// - Parameters:
    ///   - compiler: has read them.
    ///   - keeper: is told on its loop when a set has another certificate.
    init(_ compiler: IdentityCompiler, keeper: Keeper, events: EventLog) {
        sets = compiler.keyCatalog.all
        trusts = compiler.trustCatalog.all
        proxies = compiler.proxyCatalog.all.compactMap(\.credential)
        tokens = compiler.callerTokens.all
        self.keeper = keeper
        self.events = events
        alarm = Alarm(loop: keeper.loop)
        alarm.action = { [unowned self] in self.lookAtDates() }
    }

    /// Says what is wrong from the start.
    func begin() {
        for proxy in proxies { if let reason = proxy.current.fault { complain(ofProxy: reason) } }
        for anchors in trusts { complain(of: anchors) }
        guard !sets.isEmpty else { return }
        for keys in sets { complain(of: keys, keys.files.indices.map { $0 }) }
        lookAtDates()
    }

    /// After a reload what proxies, or the KDC that is asked for them, have refused is tried again.
    func forgetRefusals() { for proxy in proxies { proxy.forgetRefusals() } }

    /// Another one takes over.
    func end() { keeper.loop.close(alarm) }

    /// A folder with files of ours has changed.
    func look() {
        guard !sets.isEmpty || !trusts.isEmpty || !proxies.isEmpty || !tokens.isEmpty else { return }
        guard !isReading else {
            again = true
            return
        }
        isReading = true
        let taken = keeper.blocking.run { [self] in
            let outcomes = sets.map { $0.reload() }
            let judged = trusts.map { $0.reload() }
            let faults = proxies.compactMap { $0.reload() }
            let refused = tokens.compactMap { $0.reload() }
            // A full mailbox: loops see the new version all the same, only the word in the log is lost until the next look.
            _ = keeper.loop.post { self.read(outcomes, judged, faults, refused) }
        }
        if !taken { isReading = false }
    }

    private func read(
        _ outcomes: [(changed: [Int], failed: [Int])], _ judged: [(isChanged: Bool, isFailed: Bool)],
        _ faults: [String], _ refused: [String]
    ) {
        isReading = false
        for reason in refused {
            events.error("callers.token cannot be read; the one before counts", [LogField("reason", .name(reason))])
        }
        for reason in faults { complain(ofProxy: reason) }
        for (anchors, outcome) in zip(trusts, judged) {
            if outcome.isFailed { complain(of: anchors) }
            if outcome.isChanged {
                events.info("certificate authorities read", [LogField("files", .name(anchors.name))])
            }
        }
        for (keys, outcome) in zip(sets, outcomes) {
            complain(of: keys, outcome.failed)
            for index in outcome.changed {
                events.info("client certificate read", [LogField("file", .name(keys.files[index].certificate))])
            }
            if !outcome.changed.isEmpty { keeper.assumeIsolated { $0.clientKeysChanged(keys) } }
        }
        lookAtDates()
        if again {
            again = false
            look()
        }
    }

    private func complain(of keys: ClientKeys, _ positions: [Int]) {
        let contents = keys.contents
        for index in positions {
            guard let reason = contents[index].fault else { continue }
            events.error(
                "client certificate cannot be used",
                [
                    LogField("file", .name(keys.files[index].certificate)), LogField("reason", .name(reason)),
                    LogField("kept", .name(contents[index].certificate == nil ? "none" : "the one before")),
                ])
        }
    }

    private func complain(of anchors: TrustAnchors) {
        guard let fault = anchors.fault else { return }
        events.error(
            "certificate authorities cannot be used",
            [
                LogField("reason", .name(fault.reason)),
                LogField("kept", .name(fault.keepsFormer ? "those before" : "none")),
            ])
    }

    private func complain(ofProxy reason: String) {
        events.error("password of a proxy cannot be read", [LogField("reason", .name(reason))])
    }

    // MARK: - Dates

    /// How long the certificates that we show, and the authorities that we trust, are good.
    var validities: [CertificateValidityStatus] {
        let shown = sets.flatMap { keys in
            zip(keys.files, keys.contents).flatMap { files, entry in
                (entry.certificate?.validities ?? []).map {
                    CertificateValidityStatus(.client, file: files.certificate, $0)
                }
            }
        }
        return shown + trusts.flatMap(CertificateValidityStatus.all(of:))
    }

    private func lookAtDates() {
        let now = keeper.loop.kernel.wallMilliseconds() / 1000
        var current: [[UInt8]: ExpiryState] = [:]
        for keys in sets {
            for (files, entry) in zip(keys.files, keys.contents) {
                guard let certificate = entry.certificate else { continue }
                let state = ExpiryState(of: certificate.validity, at: now)
                current[certificate.thumbprint] = state
                if said[certificate.thumbprint] != state { say(state, files.certificate, certificate, now) }
            }
        }
        said = current
        // Once a day is often enough, and a clock that jumps is met.
        if !current.isEmpty { alarm.set(at: keeper.loop.kernel.now() + Self.day) }
    }

    private func say(_ state: ExpiryState, _ file: String, _ certificate: ClientCertificate, _ now: Int64) {
        let fields = [
            LogField("file", .name(file)),
            LogField("hours", .count(max(0, (certificate.validity.last - now) / 3600))),
        ]
        switch state {
        case .good: break
        case .notYet: events.error("client certificate is not valid yet", fields)
        case .ending: events.warn("client certificate ends soon; renew it", fields)
        case .over: events.error("client certificate has ended; renew it", fields)
        }
    }
}

/// Where in its life a certificate stands.
enum ExpiryState: Sendable, Equatable {
    case notYet, good
    /// The last fifth of its life, at most 30 days: certificates of an hour and of ten years are both renewed in time.
    case ending
    case over

    /// - Parameters: seconds since 1970.
    init(of validity: (first: Int64, last: Int64), at now: Int64) {
        let life = validity.last - validity.first
        if now > validity.last {
            self = .over
        } else if now < validity.first {
            self = .notYet
        } else if validity.last - now < min(life / 5, 30 * 86_400) {
            self = .ending
        } else {
            self = .good
        }
    }
}
