internal import Configuration
internal import Handshakes

/// The settings of `oam_oauth`: those of `oauth2`, and what is Oracle's own.
extension IdentityCompiler {
    func settings(
        _ configured: ConfiguredOAMOAuth, statuses: [Int]?
    ) throws(Handshakes.GrantFailure) -> OAuth2Settings {
        var settings = try settings(configured.general, statuses: statuses)
        var oracle = OAMOAuthDialect()
        oracle.hasUpperCaseGrants = configured.dialect == .oam12c && configured.grantCase == .upper
        oracle.clientClaims = configured.clientClaims.map { NamedText(name: $0.name, value: $0.value) }
        oracle.listsAudience = configured.dialect == .sim
        oracle.tokenPrefix = configured.resourceTokenPrefix
        oracle.deletesByAction = configured.deletesTokens
        oracle.inquiry =
            switch configured.dialect {
            case .oam11g: .tokenAction
            case .oam12c: .tokenInfo
            case .sim, .idcs: .standard
            }
        if let mobile = configured.mobile {
            oracle.issued = .mobile(try client(mobile))
            switch configured.grant {
            // What somebody else has signed is sent as it is.
            case .jwtBearer where configured.general.assertion == nil: settings.grant = .oamUser
            case .oamCredentials: settings.grant = .oamCredentials
            default: break
            }
        } else if configured.clientAuth == .issuedJWT {
            oracle.issued = .forSecret
        }
        settings.oracle = oracle
        return settings
    }

    private func client(_ configured: ConfiguredOAMOAuth.Mobile) throws(Handshakes.GrantFailure) -> OAMMobileClient {
        guard let service = IssuerURL(configured.service) else {
            throw .configuration(reason: "service_endpoint: not a URL")
        }
        var client = OAMMobileClient(service: service, username: configured.username)
        client.fetchesProfile = configured.fetchesProfile
        for claim in configured.deviceProfile { client.deviceClaims[claim.name] = claim.value }
        client.usesDeviceStore =
            switch configured.deviceStore {
            case .auto: nil
            case .on: true
            case .off: false
            }
        client.deviceStoreParam = configured.deviceStoreParam
        client.preAssertion = configured.preAssertion
        client.clientAssertion = configured.clientAssertion
        client.userAssertion = configured.userAssertion
        return client
    }
}
