public import DataPath
public import Gateway
internal import Telemetry

/// The answers of the admin addresses: health, metrics, the page, its facts as JSON, and the changes.
///
/// This file holds what is read; `AdminSite+Changes.swift` what is changed, and by whom.
///
/// Answers are made on the keeper's loop. Nothing here waits; what is listed is bounded, so that a page never holds up a token.
public struct AdminSite: AdminResponder {
    let source: FactSource
    let token: AdminToken?
    /// Everybody who reaches the address may read everything.
    let isOpenToRead: Bool

    /// - Parameters:
    ///   - gateway: the running gateway.
    ///   - version: as `cardea version` prints it.
    ///   - place: of the configuration and the store, for the page and for commands.
    ///   - token: reads `admin.token` anew for each comparison, so that a changed file counts at once; returns nil when it cannot be
    ///     read. nil: none is configured.
    ///   - isOpenToRead: whether the page and what it shows need no token to be read.
    ///   - reload: has the configuration read again, later and elsewhere.
    ///   - logDropped: lines that the log had to drop.
    public init(
        gateway: Gateway, version: String, place: ServedPlace, token: (@Sendable () -> [UInt8]?)?,
        isOpenToRead: Bool, reload: @escaping @Sendable () -> Void, logDropped: @escaping @Sendable () -> UInt64
    ) {
        self.init(
            source: FactSource(
                gateway: gateway, version: version, place: place, reload: reload,
                logDropped: logDropped),
            token: token.map(AdminToken.init), isOpenToRead: isOpenToRead)
    }

    init(source: FactSource, token: AdminToken?, isOpenToRead: Bool = true) {
        self.source = source
        self.token = token
        self.isOpenToRead = isOpenToRead
    }

    /// Answers one request, on the keeper's loop.
    public func answer(_ request: AdminRequest) -> AdminAnswer {
        if request.entrance == .probes { return probe(request) }
        if request.entrance == .metrics { return scrape(request) }
        switch request.path {
        case "/livez": return reading(request) { AdminAnswer(200, Self.plain, "ok\n") }
        case "/readyz": return reading(request) { ready() }
        case "/metrics": return reading(request) { metrics() }
        case "/status": return shown(request) { status() }
        case "/place" where request.entrance == .socket: return reading(request) { place() }
        case "/run": return shown(request) { run(request) }
        case "/failures": return shown(request) { failures(request) }
        case "/": return shown(request) { page(request) }
        case "/sign-in": return reading(request) { signIn(request) }
        case "/reset": return reset(request)
        case "/tokens/purge": return purge(request)
        case "/reload": return reload(request)
        case "/store": return shown(request) { storeWork() }
        case "/store/rotate": return start(.rotate, request)
        case "/store/verify": return start(.verify, request)
        case "/store/compact": return start(.compact, request)
        case "/login", "/login/redirect", "/login/cancel", "/logout": return login(request)
        default:
            return AdminAnswer(
                404, Self.plain,
                "not found; there are / /livez /readyz /metrics /status /run /failures /store and POST /reset /reload "
                    + "/tokens/purge /store/rotate /store/verify /store/compact\n")
        }
    }

    static let plain = "text/plain; charset=utf-8"
    static let json = "application/json"

    // MARK: - Reading

    private func reading(_ request: AdminRequest, _ answer: () -> AdminAnswer) -> AdminAnswer {
        guard Self.isReading(request) else { return Self.wrongMethod(allowing: "GET, HEAD") }
        return answer()
    }

    /// An answer that tells of identities, routes and this machine. Where anybody might reach the address it is for whoever brings the token.
    private func shown(_ request: AdminRequest, _ answer: () -> AdminAnswer) -> AdminAnswer {
        guard request.entrance == .listen, !isOpenToRead, Self.isReading(request) else {
            return reading(request, answer)
        }
        return withToken(
            request,
            else:
                "this address is not loopback: the page and /status need admin.token, or admin.open_status: true, in the configuration\n",
            answer)
    }

    /// An answer for whoever brings the token.
    /// - Parameter reason: said where none is configured.
    func withToken(_ request: AdminRequest, else reason: String, _ answer: () -> AdminAnswer) -> AdminAnswer {
        guard let token else { return AdminAnswer(403, Self.plain, reason) }
        switch token.verdict(on: request.authorization) {
        case .admitted: return answer()
        case .unreadable: return AdminAnswer(503, Self.plain, "admin.token cannot be read\n")
        case .refused: return Self.asksForToken
        }
    }

    /// The probes address may be open to a whole network: it tells one bit and no name.
    private func probe(_ request: AdminRequest) -> AdminAnswer {
        guard request.path == "/livez" || request.path == "/readyz" else { return AdminAnswer(404, Self.plain, "") }
        guard Self.isReading(request) else {
            return AdminAnswer(405, Self.plain, "", fields: [("Allow", "GET, HEAD")])
        }
        let isGood = request.path == "/livez" || source.readiness().isReady
        return AdminAnswer(isGood ? 200 : 503, Self.plain, "")
    }

    /// The metrics address may be open to whoever scrapes: it has no page, no status and nothing that changes something.
    private func scrape(_ request: AdminRequest) -> AdminAnswer {
        guard request.path == "/metrics" else { return AdminAnswer(404, Self.plain, "not found; there is /metrics\n") }
        return reading(request) { metrics() }
    }

    private func ready() -> AdminAnswer {
        let document = ReadinessDocument(source.readiness(), source.status())
        return AdminAnswer(document.ready ? 200 : 503, Self.json, document.encoded())
    }

    private func metrics() -> AdminAnswer {
        AdminAnswer(200, PrometheusText.contentType, exposition(of: source.facts(), process: source.process()))
    }

    private func status() -> AdminAnswer {
        AdminAnswer(200, Self.json, StatusDocument(source.facts()).encoded())
    }

    /// Paths of this machine are for those alone who may read its files.
    private func place() -> AdminAnswer { AdminAnswer(200, Self.json, source.place().encoded()) }

    private func run(_ request: AdminRequest) -> AdminAnswer {
        guard let name = request.value("identity") else {
            return Self.said(400, "say which identity: GET /run?identity=NAME")
        }
        return AdminAnswer(200, Self.json, RunDocument(identity: name, run: source.run(name)).encoded())
    }

    private func failures(_ request: AdminRequest) -> AdminAnswer {
        let (report, name) = (source.failures(), request.value("route"))
        // A route that a reload took away may still be asked for.
        if let name, !report.names.contains(name), !report.routes.contains(where: { $0.route == name }) {
            return Self.said(404, "there is no route of that name")
        }
        return AdminAnswer(200, Self.json, FailuresDocument(report, of: name).encoded())
    }

    func page(_ request: AdminRequest) -> AdminAnswer {
        let page = Page(
            facts: source.facts(), view: PageView(query: request.query), operator: operatorState(of: request),
            done: queryValue("done", in: request.query))
        return AdminAnswer(200, "text/html; charset=utf-8", page.html, fields: page.fields)
    }

    static func said(_ status: Int, _ error: String?, identities: [String] = []) -> AdminAnswer {
        AdminAnswer(status, json, ResetDocument(error: error, identities: identities).encoded())
    }

    // MARK: - Methods

    private static func isReading(_ request: AdminRequest) -> Bool {
        request.method == "GET" || request.method == "HEAD"
    }

    static func wrongMethod(allowing methods: String) -> AdminAnswer {
        AdminAnswer(405, plain, "only \(methods) here\n", fields: [("Allow", methods)])
    }
}
