internal import HotCache
internal import Reactor
internal import Telemetry
internal import TokenStore

/// The parts that a keeper is made of. Built before any thread runs, handed over once.
struct KeeperParts: @unchecked Sendable {
    let executor: LoopExecutor
    let cache: HotCache
    let events: EventLog
    let resolver: Resolver
    let blocking: any BlockingWork
    let identities: [KeptIdentity]
    let routes: [KeptRoute]
    let store: (any RowStore)?
    let storeState: StoreHealth.State
    let markKey: MarkKey
    let seed: UInt64
    let subjects: SubjectBook.Limits
}

/// The constants of a keeper.
struct KeeperResources: @unchecked Sendable {
    let cache: HotCache
    let events: EventLog
    let blocking: any BlockingWork
    /// Nil where nothing is kept on disk.
    let store: ErasureMask?
    let postman: Postman
    /// For connections to issuers.
    let resolver: Resolver
    let buffers: LoopBuffers

    init(_ parts: KeeperParts) {
        cache = parts.cache
        events = parts.events
        blocking = parts.blocking
        store = parts.store.map { ErasureMask($0, lastingKinds: RowKind.lasting) }
        postman = Postman(loop: parts.executor.loop)
        resolver = parts.resolver
        buffers = LoopBuffers(blocks: 256, largeLimit: 8 << 20, scratchSize: 64 * 1024)
    }
}
