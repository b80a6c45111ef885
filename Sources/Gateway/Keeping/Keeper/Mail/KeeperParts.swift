internal import HotCache
internal import Reactor
internal import Telemetry
internal import TokenStore
internal import World

/// The parts that a keeper is made of. Built before any thread runs, handed over once.
struct KeeperParts: @unchecked Sendable {
    let executor: LoopExecutor
    let cache: HotCache
    let events: EventLog
    let resolver: any NameResolver
    let blocking: any BlockingWork
    let identities: [KeptIdentity]
    let routes: [KeptRoute]
    let store: (any RowStore)?
    let storeState: StoreHealth.State
    let markKey: MarkKey
    let random: any RandomSource
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
    let random: any RandomSource
    /// For connections to issuers.
    let resolver: any NameResolver
    let buffers: LoopBuffers

    init(_ parts: KeeperParts) {
        cache = parts.cache
        events = parts.events
        blocking = parts.blocking
        store = parts.store.map { ErasureMask($0, lastingKinds: RowKind.lasting) }
        postman = Postman(loop: parts.executor.loop)
        random = parts.random
        resolver = parts.resolver
        buffers = LoopBuffers(blocks: 256, largeLimit: 8 << 20, scratchSize: 64 * 1024)
    }
}
