internal import DataPath
internal import Handshakes
internal import Reactor
internal import TLS

/// Two identities share an issuer's connections only where everything about reaching it is equal.
struct IssuerKey: Hashable {
    let origin: String
    let trust: ObjectIdentifier?
    let minimumVersion: TLSVersion
    let legacyTLS: Bool
    let clientKeys: ObjectIdentifier?
    let proxy: ObjectIdentifier?
    let serverName: String?
    let resolve: [String: [SocketAddress]]
    let pinned: [UpstreamEndpoint]

    init(origin: String, network: IssuerNetwork) {
        self.origin = origin
        trust = network.trust.map { ObjectIdentifier($0) }
        minimumVersion = network.minimumVersion
        legacyTLS = network.legacyTLS
        clientKeys = network.clientKeys.map { ObjectIdentifier($0) }
        proxy = network.proxy.map { ObjectIdentifier($0) }
        serverName = network.serverName
        resolve = network.resolve
        pinned = network.pinned
    }

    func endpoints(of url: IssuerURL, _ network: IssuerNetwork) -> [UpstreamEndpoint] {
        if !network.pinned.isEmpty { return network.pinned }
        let addresses = network.resolve[url.host] ?? []
        return addresses.map { UpstreamEndpoint(host: $0.host, port: UInt16(clamping: url.port)) }
    }
}
