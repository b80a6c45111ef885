internal import HTTP2
internal import TLS

/// Which keys and authorities a group's connections are made with.
extension UpstreamGroup {
    /// Whoever began a handshake before a change may end it after that.
    func isCurrent(_ connection: UpstreamConnection) -> Bool {
        !plan.usesTLS || connection.tlsEdition == tlsEdition
    }

    /// Connections that were made with another certificate or other authorities are not used again, nor are their sessions, which would be
    /// resumed without another look at the server's certificate.
    func renewTLS() {
        tlsEdition &+= 1
        outage.tlsFailure = nil
        tls = nil
        upgradeTLS = nil
        closeIdle()
        for session in sessions { session.session.goAway() }
    }

    /// Why the certificates that the server may ask for cannot be had; nil when there is one, or none is configured.
    var missingKey: String? {
        if let credential = plan.proxy?.credential, proxyLine.isEmpty {
            return "proxy password: \(credential.current.fault ?? "not read")"
        }
        guard let keys = plan.clientKeys else { return nil }
        let entries = keys.contents
        return entries.contains { $0.certificate != nil } ? nil : entries.compactMap(\.fault).first ?? "not read"
    }

    /// - Parameter upgrades: offer HTTP/1.1 alone.
    func makeTLS(descriptor: Int32, upgrades: Bool) throws(TLSFault) -> TLSConnection {
        let configuration: TLSClientConfiguration
        if let known = upgrades ? upgradeTLS : tls {
            configuration = known
        } else {
            configuration = try TLSClientConfiguration(
                authorities: plan.trust?.current() ?? [], minimumVersion: plan.minimumVersion, legacy: plan.legacyTLS,
                alpn: upgrades ? ["http/1.1"] : protocolNames,
                identities: plan.clientKeys?.certificates ?? [])
            if upgrades { upgradeTLS = configuration } else { tls = configuration }
        }
        return try TLSConnection(client: configuration, serverName: plan.serverName, descriptor: descriptor)
    }

    private var protocolNames: [String] {
        switch plan.protocols {
        case .http1: ["http/1.1"]
        case .http2: ["h2"]
        case .either: insistsOnHTTP1 ? ["http/1.1"] : ["h2", "http/1.1"]
        }
    }
}
