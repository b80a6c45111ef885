internal import Configuration
internal import DataPath
internal import Keeping
internal import Reactor

/// Translations of the configuration's types into those of the data path and the keeper.

extension AddressRange {
    /// Nil for what is no IP address.
    init?(_ network: Callers.Network) {
        guard let address = SocketAddress(host: "\(network.address)", port: 0) else { return nil }
        self.init(network: address.ipBytes, prefixLength: network.prefixLength)
    }
}

extension HostRule {
    mutating func add(_ host: Match.Host) {
        switch RouteMatch.Host(host) {
        case .any: isAny = true
        case .exact(let name): exact.append(name)
        case .oneLabel(let suffix): suffixes.append(suffix)
        }
    }

    mutating func add(_ hosts: ServedHosts) {
        if hosts.isAny { isAny = true }
        for name in hosts.names { add(name) }
    }
}

extension TrustAnchors.Source {
    init(_ authority: ClientTLS.Authority) {
        switch authority {
        case .system: self = .system
        case .file(let path): self = .file(path)
        }
    }
}

extension TokenStubGrants {
    init(_ word: TokenStub.Grant) {
        switch word {
        case .clientCredentials: self = .clientCredentials
        case .password: self = .password
        case .refreshToken: self = .refreshToken
        case .jwtBearer: self = .jwtBearer
        case .saml2Bearer: self = .saml2Bearer
        case .tokenExchange: self = .tokenExchange
        }
    }
}

extension SubjectBook.Limits {
    init(_ configuration: Configuration) {
        self.init(
            subjects: configuration.limits.subjects, perSecond: configuration.limits.newSubjectsPerSecond)
    }
}
