internal import DataPath
internal import Gateway
internal import Keeping
internal import Numbers

/// Logins and logouts, for the command line alone: what is told here leads a person to the issuer.
///
/// `POST /login?identity=&port=` and `POST /logout?identity=` begin, `GET /login?flow=` says how far it is,
/// `POST /login/redirect?flow=&answer=` hands on what a browser came back with, `POST /login/cancel?flow=` gives up.
extension AdminSite {
    func login(_ request: AdminRequest) -> AdminAnswer {
        guard request.entrance == .socket else {
            return Self.said(403, "logins begin at the admin socket: cardea login")
        }
        switch (request.method, request.path) {
        case ("POST", "/login"), ("POST", "/logout"):
            guard let identity = request.value("identity") else { return Self.said(400, "say which identity") }
            let start =
                request.path == "/login"
                ? source.logins.login(
                    identity, request.value("port").flatMap { ReceivedNumber($0)?.within(0...UInt16.max) })
                : source.logins.logout(identity)
            switch start {
            case .started(let report): return told(202, report)
            case .unknown: return Self.said(404, "the running gateway has no identity of that name")
            case .refused(let reason): return Self.said(409, reason)
            }
        case ("GET", "/login"): return told(200, request.value("flow").flatMap(source.logins.report))
        case ("POST", "/login/cancel"): return told(200, request.value("flow").flatMap(source.logins.cancel))
        case ("POST", "/login/redirect"):
            guard let flow = request.value("flow"), let answer = request.value("answer"),
                let reply = source.logins.redirected(flow, answer)
            else { return Self.said(404, "there is no such login") }
            return AdminAnswer(200, Self.json, reply.encoded())
        default: return AdminAnswer(405, "text/plain; charset=utf-8", "not with this method\n")
        }
    }

    private func told(_ status: Int, _ report: LoginReport?) -> AdminAnswer {
        guard let report else { return Self.said(404, "there is no such login") }
        return AdminAnswer(status, Self.json, LoginDocument(report).encoded())
    }
}
