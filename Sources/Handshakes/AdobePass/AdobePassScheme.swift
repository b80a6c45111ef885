internal import Configuration

/// `adobe_pass`: Adobe Pass Authentication (docs/design/wire/adobe-pass.md).
struct AdobePassScheme: Scheme {
    static let key = KeySpec("adobe_pass", .block(block), "Adobe Pass Authentication.")

    // How a person is led to the provider, what is asked for, and how often counts for no digest: it stays the same device with the same
    // login.
    private static let block = Block(
        name: "adobe_pass", description: "Adobe Pass Authentication: one media token for each request.",
        keys: [
            KeySpec(
                "base_url", .text(.httpURL), "Adobe's server, without a path; with api: v1 https://api.auth.adobe.com.",
                default: "https://sp.auth.adobe.com"),
            KeySpec(
                "api", .words(AdobePassSettings.Generation.self),
                "The generation of Adobe's REST API that is spoken. A login made with one is none for the other."),
            KeySpec("service_provider", .text(.name), "The channel or brand, as Adobe knows it.", required: true),
            KeySpec("mvpd", .text(.name), "The pay-TV provider whose subscription is used.", required: true),
            KeySpec(
                "software_statement", .secret,
                "The operator's own software statement, made for the API that is spoken. Sent once, when the client registers.",
                required: true),
            KeySpec(
                "domain_name", .text(.hostName),
                "A domain that is registered for the service provider; required with api: v1.", digest: .nothing),
            KeySpec(
                "redirect_url", .text(.httpURL),
                "Where the person's browser ends after the login; without it https:// and the domain.", digest: .nothing
            ),
            KeySpec(
                "resource", .text(.line),
                "What is to be authorized, for routes that do not say it: an id or MRSS, with {path.1} and {query.name} out of the request.",
                digest: .nothing),
            KeySpec(
                "preauthorize", .list(.text(.line)),
                "Resources of which the admin page says whether they would be authorized; at most 5, asked at most every 5m.",
                digest: .nothing),
            KeySpec("device", .block(device), "What Adobe is told of the device that this gateway is."),
            KeySpec(
                "calls_per_second", .integer(1...1000), "How many calls Adobe allows this address each second.",
                default: "1", digest: .nothing),
            KeySpec("burst", .integer(1...1000), "How many it allows at once.", default: "10", digest: .nothing),
        ])

    private static let device = Block(
        name: "adobe_pass_device", description: "What Adobe is told of the device.",
        keys: [
            KeySpec(
                "id", .text(.line),
                "Tells this device from others; without it a random one is made and kept. Another id ends every login."),
            KeySpec("model", .text(.line), "Its model.", default: "cardea"),
            KeySpec("version", .text(.line), "The version of the model.", default: "1.0"),
            KeySpec(
                "hardware", .words(["Unknown", "Desktop", "SetTopBox", "MediaPlayer", "TV"]),
                "Its primaryHardwareType, in Adobe's words."),
            KeySpec(
                "os_name",
                .words([
                    "Linux", "Android", "Chrome OS", "Mac OS", "OS X", "OpenBSD", "Roku OS", "Windows", "iOS", "tvOS",
                    "webOS",
                ]), "Its operating system, in Adobe's words."),
            KeySpec("os_version", .text(.line), "The version of the operating system.", default: "6.1"),
            KeySpec("connection_type", .text(.line), "How it is connected.", default: "Ethernet"),
        ])

    private let settings: AdobePassSettings

    init(_ keys: BlockReader, of identity: SchemeOwner) {
        let base = keys.url("base_url")
        let quota = CallQuota(
            origin: base.origin, perSecond: keys.integer("calls_per_second") ?? 1, burst: keys.integer("burst") ?? 10,
            patience: 0)
        var settings = AdobePassSettings(
            base: base, serviceProvider: keys.line("service_provider"), mvpd: keys.line("mvpd"),
            resource: Self.resource(keys), quota: quota)
        settings.generation = keys.word("api")
        settings.domainName = keys.text("domain_name")
        settings.redirectURL = keys.text("redirect_url")
        settings.preauthorized = keys.texts("preauthorize") ?? []
        let device = keys.inside("device")
        settings.device.id = device.text("id")
        settings.device.model = device.line("model")
        settings.device.version = device.line("version")
        settings.device.hardware = device.line("hardware")
        settings.device.system = device.line("os_name")
        settings.device.systemVersion = device.line("os_version")
        settings.device.connection = device.line("connection_type")
        self.settings = settings
        if settings.generation == .v1, settings.domainName == nil {
            keys.error(
                "'api: v1' of \(keys.place) needs 'domain_name', which stands in the address of the login", at: "api")
        }
        if settings.preauthorized.count > 5 {
            keys.refuse("preauthorize", "has more than 5 resources, which Adobe refuses")
        }
        keys.checkURL("base_url", of: identity.network)
        if let url = keys.httpURL("base_url"), url.query != nil || url.path != "/" {
            keys.refuse("base_url", "must have no path and no query")
        }
    }

    /// The resource that a block or a route names.
    private static func resource(_ keys: BlockReader) -> ResourceTemplate? {
        guard let text = keys.text("resource") else { return nil }
        do throws(ResourceTemplate.Fault) { return try ResourceTemplate(text) } catch {
            keys.refuse("resource", error.reason)
            return nil
        }
    }

    /// Where its media tokens go, and for what they are, has no default that could be right.
    func check(_ route: Route, _ keys: BlockReader, of identity: Identity) {
        if case .header(nil, _, _) = route.inject {
            keys.error(
                "\(keys.place) needs 'inject': every media service wants its token somewhere else, such as {header: X-Adobe-Authorization} or {query: token}",
                at: "use")
        }
        if route.resource == nil, settings.resource == nil {
            keys.error(
                "\(keys.place) needs 'resource', or identity '\(identity.name)' does: what is to be authorized",
                at: "use")
        }
        _ = Self.resource(keys)
        if route.onRejected.largeBody == .probeHead {
            keys.error(
                "'large_body: probe_head' of \(keys.place) would spend a token that is good for one request",
                at: "on_rejected")
        }
    }

    func check(_ configuration: Configuration, of identity: Identity, _ findings: Findings) {
        guard !configuration.keeps(identity) else { return }
        findings.warning(
            "identity '\(identity.name)' keeps no device without a 'store': a person has to log in after each start",
            identity.mark)
    }

    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> any Handshake {
        try settings.base.requireReadable("base_url")
        var settings = settings
        settings.quota.patience = UInt64(clamping: identity.token.acquireTimeout.wholeNanoseconds)
        settings.refusals = statuses ?? []
        return AdobePassHandshake(settings, world)
    }

    func traits(of identity: Identity) -> SchemeTraits {
        // An account is one subscription at one brand; the provider counts what is done with it.
        SchemeTraits(.proactive, user: "\(settings.serviceProvider)/\(settings.mvpd)", at: settings.base)
    }
}
