internal import Configuration
internal import Glibc
internal import Keeping
internal import TLS
internal import Telemetry
internal import TokenStore
internal import World

/// Opens the store at boot and says what became of it. Whatever is wrong with it, the gateway serves: from memory, and saying so.
extension Gateway {
    struct OpenedStore {
        var store: TokenStore?
        var state: StoreHealth.State
        /// Set where another process has the store, or may have it: asks for it once more.
        func heir(_ time: any TimeSource) -> (@Sendable () -> StoreOpening)? {
            guard state != .serving, let store else { return nil }
            return { store.open(now: time.wallMilliseconds()) }
        }
        var rows: [StoredRow] = []
        var marksUnreadable = false
        /// Where an operator's tasks are done.
        var workshop: StoreWorkshop?
    }

    static func openStore(
        _ configuration: Configuration, environment: @escaping @Sendable (String) -> String?, events: EventLog,
        platform: Platform
    ) -> OpenedStore {
        let time = platform.time
        guard let path = configuration.store.path else { return OpenedStore(store: nil, state: .none) }
        let keys = StoreKeys(configuration, path: path, environment: environment)
        let ring: SealingKeyRing
        do throws(StoreKeys.Problem) {
            ring = try keys.read(events: events)
        } catch {
            events.error("store not used", [LogField("path", .name(path)), LogField("reason", .name(error.text))])
            return OpenedStore(store: nil, state: .refused(error.text), marksUnreadable: true)
        }
        var options = StoreOptions()
        options.spilledKinds = RowKind.spilled
        options.lastingKinds = RowKind.lasting
        options.time = time
        options.disk = platform.disk
        options.hasThread = platform.storeHasThread
        let store = TokenStore(path: path, keys: ring, options: options)
        let workshop = StoreWorkshop(store, keys)
        let file = LogField("path", .name(path))
        switch store.open(now: time.wallMilliseconds()) {
        case .owner(let census):
            events.info(
                "store opened",
                [
                    file, LogField("rows", .count(Int64(census.restored))),
                    LogField("expired", .count(Int64(census.expired))),
                    LogField("damaged", .count(Int64(census.damagedCount))),
                ])
            return OpenedStore(store: store, state: .serving, rows: store.restore(), workshop: workshop)
        case .setAside(let aside):
            events.warn("store was damaged and set aside", [file, LogField("aside", .name(aside))])
            return OpenedStore(store: store, state: .serving, workshop: workshop)
        case .degraded(let reason):
            events.error(
                "store degraded",
                [
                    file, LogField("reason", .name(reason)),
                    LogField(
                        "advice",
                        .name(
                            "tokens live in memory until it can be written: see that its folder exists, is its user's and has room"
                        )),
                ])
            return OpenedStore(store: store, state: .degraded(reason), rows: store.restore(), workshop: workshop)
        case .lockedByAnother:
            // Kept, not yet ours: the owner may end while we serve.
            var opened = refused("another process owns \(path)", file, events)
            opened.state = .locked("another process owns \(path)")
            opened.store = store
            opened.workshop = workshop
            return opened
        case .unknownKey(let ids):
            let names = ids.map { SealingKey.name(of: $0) }.joined(separator: ", ")
            var opened = refused(
                "it is sealed with a key that store.key does not name: \(names)", file, events,
                advice: keys.adviceForUnknownKey)
            opened.marksUnreadable = true
            return opened
        case .notOurs(let reason):
            return refused("the file is not a token store: \(reason)", file, events)
        case .newer(let version):
            var opened = refused("a newer version wrote it (format \(version))", file, events)
            opened.marksUnreadable = true
            return opened
        }
    }

    private static func refused(
        _ reason: String, _ file: LogField, _ events: EventLog, advice: String? = nil
    ) -> OpenedStore {
        let told = advice.map { [LogField("advice", .name($0))] } ?? []
        events.error("store not used", [file, LogField("reason", .name(reason))] + told)
        return OpenedStore(store: nil, state: .refused(reason))
    }
}
