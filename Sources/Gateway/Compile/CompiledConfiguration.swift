internal import Configuration
internal import DataPath
internal import HotCache
internal import Keeping
internal import Telemetry

/// A configuration turned into what a keeper and loops work with. `run`, `check` and the commands that need no listener come to it by
/// this one path, so that what one of them refuses the others refuse, too.
struct CompiledConfiguration {
    let identityCompiler: IdentityCompiler
    let identities: [KeptIdentity]
    let compiler: GatewayCompiler
    let plan: GatewayPlan

    /// Reads certificates and keys of listeners and clients; blocks.
    /// - Parameters:
    ///   - persists: whether identities may keep what they get.
    ///   - loops: that will serve.
    init(
        _ configuration: Configuration, environment: @escaping @Sendable (String) -> String?, persists: Bool,
        cache: HotCache, loops: Int, routeNames: NameTable = NameTable(), faultNames: NameTable = NameTable(),
        platform: Platform = .machine
    ) throws(GatewayFault) {
        identityCompiler = IdentityCompiler(
            environment: environment, secretFiles: configuration.secretFiles, persists: persists,
            platform: platform)
        identities = try identityCompiler.compile(configuration.identities)
        var compiler = GatewayCompiler(
            configuration: configuration, identities: identities, identityCompiler: identityCompiler, cache: cache,
            loops: loops, routeNames: routeNames, faultNames: faultNames)
        plan = try compiler.compile()
        self.compiler = compiler
    }
}
