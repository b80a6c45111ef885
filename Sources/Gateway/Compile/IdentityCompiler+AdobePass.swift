internal import Configuration
internal import Handshakes
internal import Tokens

/// The settings of `adobe_pass`, from the configuration's words to the handshake's.
extension IdentityCompiler {
    /// - Parameter statuses: of a route that names its own rejected statuses.
    func settings(
        _ configured: ConfiguredAdobePass, _ identity: ConfiguredIdentity, statuses: [Int]?
    ) throws(Handshakes.GrantFailure) -> AdobePassSettings {
        guard let base = IssuerURL(configured.base) else { throw .configuration(reason: "base_url: not a URL") }
        let quota = CallQuota(
            origin: base.origin, perSecond: configured.callsPerSecond, burst: configured.burst,
            patience: UInt64(clamping: identity.token.acquireTimeout.wholeNanoseconds))
        var settings = AdobePassSettings(
            base: base, serviceProvider: configured.serviceProvider, mvpd: configured.mvpd,
            resource: configured.resource, quota: quota)
        settings.generation = configured.api == .v1 ? .v1 : .v2
        settings.domainName = configured.domainName
        settings.redirectURL = configured.redirectURL
        settings.preauthorized = configured.preauthorize
        settings.refusals = statuses ?? []
        settings.device.id = configured.device.id
        settings.device.model = configured.device.model
        settings.device.version = configured.device.version
        settings.device.hardware = configured.device.hardware.rawValue
        settings.device.system = configured.device.system.rawValue
        settings.device.systemVersion = configured.device.systemVersion
        settings.device.connection = configured.device.connection
        return settings
    }
}

extension ConfiguredAdobePass {
    /// One subscription at one brand; the provider counts what is done with it.
    var account: Account {
        Account(issuer: Tokens.Origin(base.origin), user: ByteString("\(serviceProvider)/\(mvpd)"))
    }
}
