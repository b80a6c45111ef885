/// The Mobile & Social token service: registration handle, user token, access token, each request checked member by
/// member.
struct TokenService: SimulatedSystem {
    static let root = "/oic_rest/rest/mobileoamauthentication/"
    static let subjectType = "X-Idaas-Rest-Subject-Type"
    static let newType = "X-Idaas-Rest-New-Token-Type-To-Create"
    /// The kind of token that each operation creates.
    private static let created = ["register": "CLIENTREGHANDLE", "authenticate": "USERTOKEN", "access": "ACCESSTOKEN"]

    let ledger: Ledger

    func operation(_ path: String) -> String? {
        let name = String(path.dropFirst(Self.root.count))
        return path.hasPrefix(Self.root) && Self.created[name] != nil ? name : nil
    }

    func serve(_ operation: String, _ request: Request) throws(Refusal) -> Response {
        let members = try checked(request)
        let type = Self.created[operation] ?? ""
        try require(members, Self.newType, type)
        let value =
            switch operation {
            case "register": try register(members)
            case "authenticate": try authenticate(request, members)
            default: try access(request, members)
            }
        return .json([
            "X-Idaas-Rest-Provider-Type": "OAM_11G", "X-Idaas-Rest-Token-Type": "\(type)",
            "X-Idaas-Rest-Token-Value": "\(value)", "X-Idaas-Rest-User-Principal": "\(ledger.settings.user)",
        ])
    }

    func answer(to refusal: Refusal, _ operation: String) -> Response {
        .json(["message": "\(refusal.why)", "oicErrorCode": "\(refusal.code)"], refusal.status)
    }
}

// MARK: - Checks

extension TokenService {
    private func checked(_ request: Request) throws(Refusal) -> JSON {
        guard request.method == "POST" else { throw Refusal(405, "IDAAS-00005", "POST is wanted") }
        guard !request.target.contains("?") else { throw Refusal(400, "IDAAS-00006", "no query is wanted") }
        guard request.single("Content-Type") == "application/json" else {
            throw Refusal(400, "IDAAS-00002", "Content-Type is not application/json")
        }
        guard request.single("X-IDAAS-SERVICEDOMAIN") == ledger.settings.serviceDomain else {
            throw Refusal(400, "IDAAS-00003", "X-IDAAS-SERVICEDOMAIN does not name the service domain")
        }
        guard let members = request.members() else { throw Refusal(400, "IDAAS-00004", "body is not a JSON object") }
        return members
    }

    private func require(_ members: JSON, _ name: String, _ wanted: String) throws(Refusal) {
        guard members[name]?.text == wanted else { throw Refusal(400, "IDAAS-61001", "\(name) is not \(wanted)") }
    }

    private func requireDevice(_ members: JSON) throws(Refusal) {
        guard let device = members["deviceProfile"] else {
            throw Refusal(400, "IDAAS-61002", "deviceProfile is missing")
        }
        if let missing = device.missingClaim {
            throw Refusal(400, "IDAAS-61003", "deviceProfile lacks \(missing)")
        }
        try require(members, "clientId", ledger.settings.clientID)
    }

    private func requirePassword(_ members: JSON, _ operation: String) throws(Refusal) {
        try require(members, TokenService.subjectType, "USERCREDENTIAL")
        guard let user = members["X-Idaas-Rest-Subject-Username"]?.text,
            let password = members["X-Idaas-Rest-Subject-Password"]?.text
        else { throw Refusal(400, "IDAAS-61004", "user name or password is missing") }
        switch ledger.login(user, password, at: operation) {
        case .accepted: return
        case .wrong: throw Refusal(401, "IDAAS-62001", "authentication failed")
        case .locked: throw Refusal(401, "IDAAS-62003", "the account is locked")
        }
    }

    /// `X-Idaas-Rest-Authorization: UIDPASSWORD cred="<base64 of clientId:handle>"`.
    private func requireHandle(_ request: Request) throws(Refusal) {
        let prefix = "UIDPASSWORD cred=\""
        guard let value = request.single("X-Idaas-Rest-Authorization"), value.hasPrefix(prefix), value.hasSuffix("\""),
            value.count > prefix.count
        else { throw Refusal(401, "IDAAS-61005", "X-Idaas-Rest-Authorization is missing or misspelt") }
        let start = ledger.settings.clientID + ":"
        guard let text = Base64.decodeText(value.dropFirst(prefix.count).dropLast()), text.hasPrefix(start) else {
            throw Refusal(401, "IDAAS-61006", "client credential is not base64 of clientId:handle")
        }
        guard ledger.withState({ $0.handles[String(text.dropFirst(start.count))] }) != nil else {
            throw Refusal(401, "IDAAS-61007", "registration handle is unknown")
        }
    }
}

extension JSON {
    /// The first thing that a device profile of Oracle lacks; nil if it is whole.
    var missingClaim: String? {
        if self["hardwareIds"]?.members == nil { return "hardwareIds" }
        return ["sdkversion", "ostype", "osversion"].first { self["oracle:idm:claims:client:" + $0]?.text == nil }
    }
}

// MARK: - Operations

extension TokenService {
    private func register(_ members: JSON) throws(Refusal) -> String {
        try requireDevice(members)
        try requirePassword(members, "register")
        let handle = "eyJ" + ledger.mint(30)
        ledger.withState { $0.handles.insert(handle, ledger.settings.user) }
        ledger.keepSecret(handle)
        return handle
    }

    private func authenticate(_ request: Request, _ members: JSON) throws(Refusal) -> String {
        try requireHandle(request)
        try requireDevice(members)
        try requirePassword(members, "authenticate")
        let token = ledger.mint(48, percentEncoded: true)
        ledger.withState { $0.userTokens.insert(token, ledger.settings.user) }
        return token
    }

    private func access(_ request: Request, _ members: JSON) throws(Refusal) -> String {
        try requireHandle(request)
        try require(members, TokenService.subjectType, "TOKEN")
        guard let user = members["X-Idaas-Rest-Subject-Value"]?.text else {
            throw Refusal(400, "IDAAS-61004", "user token is missing")
        }
        if faults.take("user_token_expired", on: "access") != nil { ledger.withState { $0.userTokens.removeAll() } }
        guard ledger.withState({ $0.userTokens[user] }) != nil else {
            throw Refusal(401, "IDAAS-62010", "user token is not valid")
        }
        guard let text = members["X-Idaas-Rest-Application-Context"]?.text,
            let resource = members["X-Idaas-Rest-Application-Resource"]?.text
        else { throw Refusal(400, "IDAAS-62011", "context or resource is missing") }
        let context = try spend(text)
        // The guide speaks of scheme, host and path; a query may stand behind them if it is the one that was asked for.
        guard resource == context.url || resource == context.url.prefix(while: { $0 != "?" }) else {
            throw Refusal(400, "IDAAS-62013", "resource is not the one of the context")
        }
        let token = ledger.mint(45, percentEncoded: true)
        let expires = Moment.now() + ledger.life(900_000)
        let record = Ledger.AccessToken(gate: context.gate, level: context.level, expires: expires)
        ledger.withState { $0.accessTokens.insert(token, record) }
        return token
    }

    /// A context works once, soon, and as it was sent.
    private func spend(_ text: String) throws(Refusal) -> Ledger.RequestContext {
        let stale = faults.take("issuer_stale_context", on: "access") != nil
        let found = ledger.withState { state in
            let found = state.contexts[text]
            state.contexts.update(text) { $0.used = true }
            return found
        }
        guard let found else { throw Refusal(400, "IDAAS-62012", "request context is unknown") }
        guard !found.used, !stale else {
            ledger.count("context_reused")
            throw Refusal(400, "IDAAS-62014", "request context was used before")
        }
        guard found.expires > Moment.now() else { throw Refusal(400, "IDAAS-62015", "request context is too old") }
        return found
    }
}
