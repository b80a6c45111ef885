package import Audit
package import DataPath
package import HotCache
package import Reactor
package import Telemetry
package import TokenStore
package import World

/// The parts that a keeper is made of. Built before any thread runs, handed over once.
package struct KeeperParts: @unchecked Sendable {
    let executor: LoopExecutor
    let cache: HotCache
    let events: EventLog
    let resolver: any NameResolver
    let blocking: any BlockingWork
    let programs: any BlockingWork
    let identities: [KeptIdentity]
    let routes: [KeptRoute]
    let store: (any RowStore)?
    let storeState: StoreHealth.State
    let markKey: MarkKey
    let random: any RandomSource
    let subjects: SubjectBook.Limits
    /// Nil without `audit`.
    let audit: AuditTrail?
    /// Where spans of grants go.
    let spans: SpanProcessor?

    /// - Parameter programs: runs programs that bring credentials; nil: `blocking` does.
    package init(
        executor: LoopExecutor, cache: HotCache, events: EventLog, resolver: any NameResolver,
        blocking: any BlockingWork, identities: [KeptIdentity], routes: [KeptRoute], store: (any RowStore)?,
        storeState: StoreHealth.State, markKey: MarkKey, random: any RandomSource, subjects: SubjectBook.Limits,
        audit: AuditTrail? = nil, spans: SpanProcessor? = nil, programs: (any BlockingWork)? = nil
    ) {
        self.executor = executor
        self.cache = cache
        self.events = events
        self.resolver = resolver
        self.blocking = blocking
        self.programs = programs ?? blocking
        self.identities = identities
        self.routes = routes
        self.store = store
        self.storeState = storeState
        self.markKey = markKey
        self.random = random
        self.subjects = subjects
        self.audit = audit
        self.spans = spans
    }
}

/// The constants of a keeper.
package struct KeeperResources: @unchecked Sendable {
    let cache: HotCache
    let events: EventLog
    let blocking: any BlockingWork
    /// Runs programs that bring credentials.
    let programs: any BlockingWork
    /// Nil where nothing is kept on disk.
    let store: ErasureMask?
    let postman: Postman
    let random: any RandomSource
    let audit: AuditTrail?
    let traces: GrantTraces?
    /// For connections to issuers.
    package let resolver: any NameResolver
    package let buffers: LoopBuffers

    init(_ parts: KeeperParts) {
        cache = parts.cache
        events = parts.events
        blocking = parts.blocking
        programs = parts.programs
        store = parts.store.map { ErasureMask($0, lastingKinds: RowKind.lasting) }
        postman = Postman(loop: parts.executor.loop)
        random = parts.random
        audit = parts.audit
        traces = parts.spans.map { GrantTraces($0, random: parts.random) }
        resolver = parts.resolver
        buffers = LoopBuffers(blocks: 256, largeLimit: 8 << 20, scratchSize: 64 * 1024)
    }
}
