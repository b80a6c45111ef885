internal import Audit
internal import Configuration
internal import DataPath
internal import Handshakes
internal import HotCache
internal import Keeping
internal import Telemetry
internal import Tokens

/// A configuration turned into what a keeper and loops work with. `run`, `check` and the commands that need no listener come to it by
/// this one path, so that what one of them refuses the others refuse, too.
struct CompiledConfiguration {
    let identityCompiler: IdentityCompiler
    let identities: [KeptIdentity]
    let compiler: GatewayCompiler
    let plan: GatewayPlan
    /// Nil where spans are not exported.
    let spans: SpanDestination?

    /// Reads certificates and keys of listeners and clients; blocks.
    /// - Parameters:
    ///   - persists: whether identities may keep what they get.
    ///   - loops: that will serve.
    ///   - usePlaces: numbers for the audit log; nil without `audit`.
    ///   - earlier: the compiler of the configuration that runs, whose files need not be read again.
    ///   - placeholders: texts that a confined program has in place of secrets, by variable of its environment.
    ///   - predecessor: what the configuration that runs leaves to this one.
    init(
        _ configuration: Configuration, environment: @escaping @Sendable (String) -> String?, persists: Bool,
        cache: HotCache, loops: Int, routeNames: NameTable = NameTable(), faultNames: NameTable = NameTable(),
        identityNames: NameTable = NameTable(), usePlaces: UsePlaces? = nil,
        platform: Platform = .machine, earlier: IdentityCompiler? = nil, predecessor: Predecessor? = nil,
        placeholders: [String: String] = [:]
    ) throws(GatewayFault) {
        identityCompiler = IdentityCompiler(
            environment: environment, secretFiles: configuration.secretFiles, persists: persists,
            platform: platform, keyCatalog: PlanCatalog(after: earlier?.keyCatalog),
            trustCatalog: PlanCatalog(after: earlier?.trustCatalog),
            proxyCatalog: PlanCatalog(after: earlier?.proxyCatalog))
        identities = try identityCompiler.compile(configuration.identities)
        if let export = configuration.tracing?.export {
            spans = try identityCompiler.destination(of: export)
        } else {
            spans = nil
        }
        var compiler = GatewayCompiler(
            configuration: configuration, identities: identities, identityCompiler: identityCompiler, cache: cache,
            loops: loops, routeNames: routeNames, faultNames: faultNames, identityNames: identityNames,
            usePlaces: usePlaces,
            predecessor: predecessor, placeholders: placeholders)
        plan = try compiler.compile()
        self.compiler = compiler
    }

    /// The parts of the configuration that a running keeper takes up at a reload.
    var change: KeeperChange {
        KeeperChange(
            identities: identities, routes: compiler.keptRoutes, keys: fixedKeys,
            subjects: SubjectBook.Limits(compiler.configuration))
    }

    /// The tokens that routes name without a challenge, with the slots that they have.
    var fixedKeys: [(key: AccessKey, slot: Slot, identity: KeptIdentity, wanted: Wanted)] {
        compiler.fixedKeys.map { ($0.key, $0.value.slot, $0.value.identity, $0.value.wanted) }
    }
}
