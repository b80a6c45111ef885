internal import HTTP2
internal import TLS

/// The keys, the authorities and the proxy's credential that a group's connections are made with, as their files say now.
struct UpstreamTLS {
    private var client: TLSClientConfiguration?
    private var clientOfHTTP1: TLSClientConfiguration?
    private var keyVersion: UInt64 = 0
    private var trustVersion: UInt64 = 0
    private var isHTTP1Alone = false
    /// Rises when keys or authorities change.
    private(set) var edition: UInt64 = 0
    var proxy = ProxyAuthentication()

    /// Looks whether the files of a plan have changed.
    /// - Returns: whether what was made before is not to be used again.
    @inline(__always)
    mutating func hasChanged(_ plan: UpstreamPlan) -> Bool {
        var isNew = false
        if let keys = plan.clientKeys, keys.version != keyVersion {
            keyVersion = keys.version
            isNew = true
        }
        if let trust = plan.trust, trust.version != trustVersion {
            trustVersion = trust.version
            isNew = true
        }
        if let credential = plan.proxy?.credential, credential.version != proxy.version {
            proxy.read(credential)
            // Connections that were authenticated with the one of before end with it.
            if credential.handshake != nil { isNew = true }
        }
        return isNew
    }

    mutating func renew() {
        edition &+= 1
        client = nil
        clientOfHTTP1 = nil
    }

    /// From here on HTTP/2 is not offered where the route leaves that open.
    mutating func offersHTTP1() {
        isHTTP1Alone = true
        client = nil
    }

    /// - Parameter isHTTP1: offer HTTP/1.1 alone.
    mutating func configuration(for plan: UpstreamPlan, isHTTP1: Bool) throws(TLSFault) -> TLSClientConfiguration {
        if let known = isHTTP1 ? clientOfHTTP1 : client { return known }
        let made = try TLSClientConfiguration(
            authorities: plan.trust?.current() ?? [], minimumVersion: plan.minimumVersion, legacy: plan.legacyTLS,
            alpn: isHTTP1 ? ["http/1.1"] : protocolNames(of: plan), identities: plan.clientKeys?.certificates ?? [],
            // Tokens are bound to the server's certificate, which a resumed session would show as it was.
            resumes: plan.boundTo == nil)
        if isHTTP1 { clientOfHTTP1 = made } else { client = made }
        return made
    }

    private func protocolNames(of plan: UpstreamPlan) -> [String] {
        switch plan.protocols {
        case .http1: ["http/1.1"]
        case .http2: ["h2"]
        case .either: isHTTP1Alone ? ["http/1.1"] : ["h2", "http/1.1"]
        case .other: []
        }
    }
}

extension UpstreamGroup {
    /// Whoever began a handshake before a change may end it after that.
    func isCurrent(_ connection: UpstreamConnection) -> Bool {
        !plan.hasEditions || connection.tlsEdition == tls.edition
    }

    /// Connections that were made with another certificate or other authorities are not used again, nor are their TLS sessions, which would
    /// be resumed without another look at the server's certificate.
    func renewTLS() {
        tls.renew()
        outage.tlsFailure = nil
        closeIdle()
        for shared in pool.shared.all { shared.http2.goAway() }
    }

    /// Why the certificates that the server may ask for cannot be had; nil when there is one, or none is configured.
    var missingKey: String? {
        if let credential = plan.proxy?.credential, !tls.proxy.isReadable {
            return "proxy credential: \(credential.current.fault ?? "not read")"
        }
        guard let keys = plan.clientKeys else { return nil }
        let entries = keys.contents
        return entries.contains { $0.certificate != nil } ? nil : entries.compactMap(\.fault).first ?? "not read"
    }

    /// - Parameter upgrades: offer HTTP/1.1 alone.
    func makeTLS(over wire: UpstreamConnection, upgrades: Bool) throws(TLSFault) -> TLSConnection {
        try TLSConnection(
            client: tls.configuration(for: plan, isHTTP1: upgrades), serverName: plan.serverName, wire: wire)
    }
}
