/// `adobe_pass`: what its keys mean together, and with the routes that use it.
extension TreeDecoder {
    mutating func adobePass(_ reader: BlockReader, network: Network, place: String) -> AdobePassHandshake {
        let device = reader.inside("device", Keys.adobePassDevice)
        let api: AdobePassHandshake.API = reader.word("api")
        let host = api == .v1 ? "api.auth.adobe.com" : "sp.auth.adobe.com"
        let standard = ServiceURL(origin: Origin(scheme: .https, host: host, port: 443), path: "/", query: nil)
        let handshake = AdobePassHandshake(
            api: api, base: reader.httpURL("base_url") ?? standard,
            serviceProvider: reader.text("service_provider") ?? "",
            mvpd: reader.text("mvpd") ?? "",
            softwareStatement: reader.secret("software_statement") ?? .environment(name: ""),
            domainName: reader.text("domain_name"), redirectURL: reader.text("redirect_url"),
            resource: resourceTemplate(reader.text("resource"), reader, place: place),
            preauthorize: reader.texts("preauthorize") ?? [],
            device: .init(
                id: device.text("id"), model: device.text("model") ?? "", version: device.text("version") ?? "",
                hardware: device.word("hardware"), system: device.word("os_name"),
                systemVersion: device.text("os_version") ?? "", connection: device.text("connection_type") ?? ""),
            callsPerSecond: reader.integer("calls_per_second") ?? 1, burst: reader.integer("burst") ?? 10)
        guard reader.node != nil else { return handshake }
        if api == .v1, handshake.domainName == nil {
            error(
                "'api: v1' of \(place) needs 'domain_name', which stands in the address of the login",
                reader.mark("api"))
        }
        if handshake.preauthorize.count > 5 {
            error(
                "'preauthorize' of \(place) has more than 5 resources, which Adobe refuses", reader.mark("preauthorize")
            )
        }
        if let url = reader.httpURL("base_url") {
            requireSafe(url, network, reader.mark("base_url"), "'base_url' of \(place)")
            if url.query != nil || url.path != "/" {
                error("'base_url' of \(place) must have no path and no query", reader.mark("base_url"))
            }
        }
        return handshake
    }

    private mutating func resourceTemplate(
        _ text: String?, _ reader: BlockReader, place: String
    ) -> ResourceTemplate? {
        guard let text else { return nil }
        do throws(ResourceTemplate.Fault) { return try ResourceTemplate(text) } catch {
            self.error("'resource' of \(place) \(error.reason)", reader.mark("resource"))
            return nil
        }
    }

    /// Where its media tokens go, and for what they are, has no default that could be right.
    mutating func checkOneTime(_ route: Route, _ identity: Identity, _ reader: BlockReader, place: String) {
        guard case .adobePass(let adobePass) = identity.handshake else { return }
        if case .header(nil, _, _) = route.inject {
            error(
                "\(place) needs 'inject': every media service wants its token somewhere else, such as {header: X-Adobe-Authorization} or {query: token}",
                reader.mark("use"))
        }
        if route.resource == nil, adobePass.resource == nil {
            error(
                "\(place) needs 'resource', or identity '\(identity.name)' does: what is to be authorized",
                reader.mark("use"))
        }
        _ = resourceTemplate(route.resource, reader, place: place)
        if route.onRejected.largeBody == .probeHead {
            error(
                "'large_body: probe_head' of \(place) would spend a token that is good for one request",
                reader.mark("on_rejected"))
        }
    }
}
