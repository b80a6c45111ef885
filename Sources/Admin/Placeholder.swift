public import Gateway

public struct AdminSite: AdminResponder {
    let gateway: Gateway
    public init(
        gateway: Gateway, version: String, configurationPath: String, token: (@Sendable () -> [UInt8]?)?,
        logDropped: @escaping @Sendable () -> UInt64
    ) {
        self.gateway = gateway
    }
    public func answer(_ request: AdminRequest) -> AdminAnswer {
        switch request.path {
        case "/livez": AdminAnswer(200, "text/plain", "")
        case "/readyz": AdminAnswer(gateway.readiness().isReady ? 200 : 503, "application/json", "{}")
        case "/status": AdminAnswer(200, "text/plain", "\(gateway.status())")
        case "/reset":
            AdminAnswer(gateway.reset(identity: String(request.query.dropFirst(9))) ? 200 : 404, "text/plain", "")
        default: AdminAnswer(404, "text/plain", "")
        }
    }
}
