internal import DataPath
internal import Gateway
internal import Keeping

/// Changes, and who may make them: whoever is on the socket, who brings the admin token as Bearer, or who has signed in to the page
/// with it (Basic, any user name).
extension AdminSite {
    func reset(_ request: AdminRequest) -> AdminAnswer {
        change(request) {
            guard let name = request.value("identity") else {
                return Self.said(400, "say which identity: POST /reset?identity=NAME")
            }
            guard source.reset(name) else {
                // Bounded, as a file may define thousands.
                let names = source.status().identities.map(\.name).prefix(100)
                return Self.said(404, "there is no identity of that name", identities: Array(names))
            }
            return Self.said(200, nil, identities: [name])
        }
    }

    func purge(_ request: AdminRequest) -> AdminAnswer {
        change(request) {
            let scope: PurgeScope
            switch (request.value("identity"), request.value("route"), request.value("all")) {
            case (let name?, nil, nil): scope = .identity(name)
            case (nil, let name?, nil): scope = .route(name)
            case (nil, nil, "yes"): scope = .everything
            default:
                return Self.said(400, "say what: POST /tokens/purge?identity=NAME, ?route=NAME or ?all=yes")
            }
            guard let report = source.purge(scope) else {
                return Self.said(404, "there is no identity or route of that name")
            }
            var answer = AdminAnswer(200, Self.json, report.encoded())
            answer.unlessStored = { reason in
                Self.said(
                    500,
                    "purged from memory, but not all from the store (\(reason)): the tokens may come back from there; "
                        + "purge again when the store works")
            }
            return answer
        }
    }

    func reload(_ request: AdminRequest) -> AdminAnswer {
        change(request) {
            source.reload()
            return AdminAnswer(202, Self.json, "{}\n")
        }
    }

    func start(_ task: StoreTask, _ request: AdminRequest) -> AdminAnswer {
        change(request) {
            switch source.startTask(task) {
            case .started(let work): return AdminAnswer(202, Self.json, StoreDocument(work).encoded())
            case .busy: return Self.said(409, "another task is under way: GET /store")
            case .refused(let reason): return Self.said(409, reason)
            }
        }
    }

    func storeWork() -> AdminAnswer {
        guard let work = source.storeWork() else { return Self.said(404, "no task has been started") }
        return AdminAnswer(200, Self.json, StoreDocument(work).encoded())
    }

    /// Has a browser ask for the token.
    func signIn(_ request: AdminRequest) -> AdminAnswer {
        // The page is shown here, not by a redirect to it: browsers follow that one without what they have just been told.
        withToken(request, else: "changes need admin.token in the configuration\n") { page(request) }
    }

    /// Has a browser ask its user.
    static let asksForToken = AdminAnswer(
        401, Self.plain, "the password is the admin token; any user name will do\n",
        fields: [("WWW-Authenticate", "Basic realm=\"cardea admin\", charset=\"UTF-8\"")])

    /// The operator's rights that the page may offer to the sender of a request.
    func operatorState(of request: AdminRequest) -> Page.Operator {
        guard let token else { return .cannotSignIn }
        guard AdminToken.isBasic(request.authorization) else { return .mayProve }
        if case .admitted = token.verdict(on: request.authorization) { return .isSignedIn }
        return .mayProve
    }

    // MARK: - Who

    private func change(_ request: AdminRequest, _ work: () -> AdminAnswer) -> AdminAnswer {
        guard request.method == "POST" else { return Self.wrongMethod(allowing: "POST") }
        if let refusal = refusal(of: request) { return refusal }
        let answer = work()
        // A button of the page: back to it, so that loading it again changes nothing again.
        guard request.entrance == .listen, AdminToken.isBasic(request.authorization) else { return answer }
        let word = request.path.split(separator: "/").last.map(String.init) ?? ""
        let view = PageView(query: request.query)
        var sight = Self.sees(view.address(done: answer.status < 300 ? word : "nothing"))
        if answer.unlessStored != nil { sight.unlessStored = { _ in Self.sees(view.address(done: "unstored")) } }
        return sight
    }

    private static func sees(_ location: String) -> AdminAnswer {
        AdminAnswer(303, plain, "", fields: [("Location", location)])
    }

    /// The kernel has already vouched for whoever is on the socket.
    private func refusal(of request: AdminRequest) -> AdminAnswer? {
        if request.entrance == .socket { return nil }
        guard let token else { return Self.said(403, "changes need admin.token") }
        switch token.verdict(on: request.authorization) {
        case .admitted:
            // A browser adds what it was told at the sign-in to every request, whoever made it.
            guard request.isOwnPage || !AdminToken.isBasic(request.authorization) else {
                return Self.said(403, "a browser that is signed in makes changes from the page alone")
            }
            return nil
        case .unreadable: return Self.said(503, "admin.token cannot be read")
        case .refused:
            var answer = Self.said(401, "changes need the admin token: Authorization: Bearer …")
            answer.fields.append(("WWW-Authenticate", "Bearer realm=\"cardea admin\""))
            return answer
        }
    }
}
