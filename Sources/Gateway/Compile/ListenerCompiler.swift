internal import Configuration
internal import DataPath
internal import Glibc
internal import Numbers
internal import Reactor
internal import TLS
internal import World

/// Turns the configuration's listeners into plans, with their certificates read.
struct ListenerCompiler {
    let configuration: Configuration
    /// The configuration's listeners, by name.
    let listeners: [String: Listener]
    let environment: @Sendable (String) -> String?
    let edition: Edition
    /// Listeners of the running plan.
    let earlier: [ListenerPlan]
    /// By which certificates are judged.
    let time: any TimeSource

    /// Listeners that a route names, in the order in which routes name them.
    func compile(_ routes: [RoutePlan]) throws(GatewayFault) -> [ListenerPlan] {
        var order: [SocketAddress] = []
        var members: [SocketAddress: [RoutePlan]] = [:]
        var configured: [SocketAddress: Listener] = [:]
        for (index, route) in configuration.routes.enumerated() {
            for listen in route.listen {
                let listener = listeners[listen]
                guard let address = SocketAddress(parsing: listener.map { "\($0.address)" } ?? listen) else {
                    throw GatewayFault("route \(route.name): cannot listen on \(listen)")
                }
                if members[address] == nil { order.append(address) }
                members[address, default: []].append(routes[index])
                configured[address] = listener
            }
        }
        let quotasBefore = Dictionary(earlier.map { ($0.address, $0.quota) }) { first, _ in first }
        let tickets: TicketKeys
        do { tickets = try TicketKeys() } catch { throw GatewayFault("\(error)") }
        var plans: [ListenerPlan] = []
        let machine = GatewayCompiler.machineName().map { Array($0.lowercased().utf8) }
        for (index, address) in order.enumerated() {
            let listener = configured[address]
            var hosts = HostRule()
            if let listener { hosts.add(listener.hosts) }
            if !address.isLoopback, let machine { hosts.exact.append(machine) }
            plans.append(
                ListenerPlan(
                    index: index, address: address, text: "\(address)", isUnix: address.family == .unix,
                    isLoopback: address.family != .unix && address.isLoopback, routes: members[address] ?? [],
                    file: address.family == .unix ? try listener.map(rights) : nil,
                    tls: try listener.flatMap { listener throws(GatewayFault) in try tls(of: listener, tickets: tickets)
                    },
                    proxyProtocol: listener.flatMap { proxyProtocol(of: $0) },
                    forwardedFrom: (listener?.forwardedFrom ?? []).compactMap { AddressRange($0) },
                    quota: quota(of: listener, before: quotasBefore[address] ?? nil),
                    hosts: hosts, protocols: protocols(of: listener),
                    forward: try listener.map { listener throws(GatewayFault) in
                        try forward(of: listener, tickets: tickets)
                    }
                        ?? ForwardPlan(), edition: edition))
        }
        return plans
    }

    private func proxyProtocol(of listener: Listener) -> ProxyProtocolPlan? {
        listener.proxyProtocol.map {
            ProxyProtocolPlan(versions: Set($0.versions), from: $0.from.compactMap { AddressRange($0) })
        }
    }

    private func rights(of listener: Listener) throws(GatewayFault) -> SocketRights {
        guard let name = listener.socket.group else {
            return SocketRights(mode: UInt32(listener.socket.mode), group: nil)
        }
        guard let group = ReceivedNumber(name)?.within(0...UInt32.max) ?? Self.groupID(of: name) else {
            throw GatewayFault("listener \(listener.name): socket.group: no group \(name) on this machine")
        }
        return SocketRights(mode: UInt32(listener.socket.mode), group: group)
    }

    private static func groupID(of name: String) -> UInt32? {
        var entry = group()
        var result: UnsafeMutablePointer<group>?
        var buffer = [CChar](repeating: 0, count: 65536)
        guard getgrnam_r(name, &entry, &buffer, buffer.count, &result) == 0, result != nil else { return nil }
        return entry.gr_gid
    }

    func forward(of listener: Listener, tickets: TicketKeys) throws(GatewayFault) -> ForwardPlan {
        var plan = ForwardPlan()
        plan.mode =
            switch listener.mode {
            case .gateway: .gateway
            case .forwardProxy: .forward
            case .transparent: .transparent
            }
        plan.tunnelsUnmatched = listener.unmatched == .tunnel
        guard let interception = listener.intercept else { return plan }
        do {
            // The file holds a private key, and is read as every secret is.
            let pem = try readSecret(
                .file(path: interception.ca), environment: environment, policy: configuration.secretFiles)
            let mint = try CertificateMint(pem: pem.withBytes { Array($0) })
            plan.interception = InterceptionPlan(
                file: interception.ca, mint: mint, hosts: interception.hosts.map(RouteMatch.Host.init),
                protocols: alpn(of: listener), tickets: tickets)
        } catch {
            throw GatewayFault(
                "listener \(listener.name): intercept: \(interception.ca): \(error)",
                isOfThisUser: (error as? SecretFault)?.isOfThisUser ?? false)
        }
        return plan
    }

    /// Callers of the running plan's listener stay in its quota. Where the number has changed they are given back to the former one.
    private func quota(of listener: Listener?, before running: ConnectionQuota?) -> ConnectionQuota? {
        guard let count = listener?.connections else { return nil }
        return running?.count == count ? running : ConnectionQuota(count)
    }

    private func protocols(of listener: Listener?) -> [ApplicationProtocol] {
        let versions: [Listener.HTTPVersion] = listener?.http ?? [.http1, .http2]
        return versions.map { $0 == .http2 ? .http2 : .http1 }
    }

    // MARK: - Certificates

    private func tls(of listener: Listener, tickets: TicketKeys) throws(GatewayFault) -> ListenerTLS? {
        guard !listener.tls.isEmpty else { return nil }
        return try ListenerTLS(sources(of: listener), tickets: tickets, now: time.wallSeconds())
    }

    func sources(of listener: Listener) -> [CertificateSource] {
        listener.tls.enumerated().map { index, files in
            CertificateSource(
                listener: listener.name, index: index, files: files, protocols: alpn(of: listener),
                environment: environment, secretFiles: configuration.secretFiles)
        }
    }

    /// Names for ALPN, HTTP/2 first; HTTP/1.0 clients exist that say so (RFC 7301 section 6).
    private func alpn(of listener: Listener) -> [String] {
        let versions = protocols(of: listener)
        return (versions.contains(.http2) ? ["h2"] : []) + (versions.contains(.http1) ? ["http/1.1", "http/1.0"] : [])
    }
}
