internal import Configuration

/// `aws_sigv4`: requests signed by AWS Signature Version 4, in the form that puts the signature into a header field.
struct AWSSigV4Scheme: Scheme {
    static let key = KeySpec(AWSSigV4Settings.block)

    let settings: AWSSigV4Settings
    /// The fields beside `Authorization`.
    var writtenFields: [String] { AWSSigV4Signer.names.dropFirst().map { $0.lowercased() } }

    init(_ keys: BlockReader, of identity: SchemeOwner) { settings = AWSSigV4Settings(keys) }

    func check(_ route: Route, _ keys: BlockReader, of identity: Identity) {
        if keys.has("inject") {
            keys.error(
                "'inject' of \(keys.place): 'aws_sigv4' writes Authorization, whose place its protocol names",
                at: "inject")
        }
        guard let to = route.to else { return }
        if settings.payload == .unsigned, to.origin.isCleartext, !to.origin.isLoopback {
            keys.warn(
                "\(keys.place): bodies are neither signed nor encrypted; use https:, or 'payload: signed' of identity '\(identity.name)'",
                at: "to")
        }
        let host: String? =
            switch route.host {
            case .upstream: to.origin.host
            case .name(let name): name
            // A caller must not choose the service that a request is signed for, but where a list says among which.
            case .caller: nil
            }
        let scope = settings.scope(at: host ?? "")
        for (key, value, list) in [
            ("service", scope.service, settings.services), ("region", scope.region, settings.regions),
        ] where value == nil && list.isEmpty {
            let place = host.map { "its host '\($0)' does not say it" } ?? "'host: caller' leaves it to the caller"
            keys.error("\(keys.place) needs '\(key)' of identity '\(identity.name)': \(place)", at: "to")
        }
        let services = settings.services.isEmpty ? [scope.service ?? ""] : settings.services
        if services.contains(where: { AWSSigV4Path($0) == .asItStands }), route.paths != .raw {
            keys.error(
                "\(keys.place) needs 'paths: raw': keys of S3 may have any path, and 'strict' refuses some of them",
                at: keys.has("paths") ? "paths" : "to")
        }
    }

    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> any Handshake {
        AWSSigV4Handshake(settings: settings, world: world)
    }

    var program: ProgramCall? { settings.program }

    func traits(of identity: Identity) -> SchemeTraits {
        guard settings.program != nil else { return SchemeTraits(.fixed) }
        var traits = SchemeTraits(.proactive)
        // A key is no token that an issuer made for this gateway: it stays in memory, as one out of files does.
        traits.keepsTokens = false
        return traits
    }
}
