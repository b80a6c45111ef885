import Configuration
import DataPath

/// The listener that the program takes for its proxy.
struct ProxyPlace: Equatable {
    let host: String
    let port: UInt16

    /// - Throws: why the configuration has none that would do.
    init(_ configuration: Configuration) throws(GatewayFault) {
        let proxies = configuration.listeners.filter { $0.mode == .forwardProxy }
        guard let proxy = proxies.first else {
            throw GatewayFault(
                "--confine: no listener has 'mode: forward_proxy', and the program would reach nothing; write listeners: {proxy: {address: 127.0.0.1:3128, mode: forward_proxy}}, and routes with 'listen: proxy'"
            )
        }
        guard proxies.count == 1 else {
            let names = proxies.map { "'\($0.name)'" }.joined(separator: ", ")
            throw GatewayFault(
                "--confine: \(names) have 'mode: forward_proxy', and a program is told of one proxy; leave one of them")
        }
        guard proxy.tls.isEmpty, case .tcp(let address, let port) = proxy.address, port != 0,
            address.isLoopback || address.isUnspecified
        else {
            throw GatewayFault(
                "--confine: listener '\(proxy.name)': a program finds its proxy on loopback, at a port that is written, without 'tls'; write address: 127.0.0.1:3128"
            )
        }
        self.port = port
        switch (address.family, address.isUnspecified) {
        case (.v4, true): host = "127.0.0.1"
        case (.v6, true): host = "::1"
        default: host = "\(address)"
        }
    }
}
