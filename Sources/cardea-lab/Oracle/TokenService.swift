/// The Mobile & Social token service: registration handle, user token, access token, each request checked member by
/// member.
struct TokenService: Sendable {
    static let root = "/oic_rest/rest/mobileoamauthentication/"
    static let subjectType = "X-Idaas-Rest-Subject-Type"
    static let newType = "X-Idaas-Rest-New-Token-Type-To-Create"

    let ledger: Ledger
    let faults: Faults

    /// A refusal in the service's words: status and `oicErrorCode`.
    private struct Refusal: Error {
        let status: Int
        let code: String
        let message: String
        init(_ status: Int, _ code: String, _ message: String) {
            self.status = status
            self.code = code
            self.message = message
        }
    }

    func answer(_ operation: String, _ request: Request, _ body: [UInt8]) -> Response {
        ledger.count(operation)
        do {
            let members = try checked(request, body)
            let (type, value) =
                switch operation {
                case "register": ("CLIENTREGHANDLE", try register(members))
                case "authenticate": ("USERTOKEN", try authenticate(request, members))
                default: ("ACCESSTOKEN", try access(request, members))
                }
            ledger.count("\(operation)_ok")
            return .json(
                200,
                [
                    "X-Idaas-Rest-Provider-Type": "OAM_11G", "X-Idaas-Rest-Token-Type": .string(type),
                    "X-Idaas-Rest-Token-Value": .string(value),
                    "X-Idaas-Rest-User-Principal": .string(ledger.settings.user),
                ])
        } catch {
            ledger.refuse("\(operation): \(error.status) \(error.message)")
            let reasons = [400: "Bad Request", 401: "Unauthorized", 405: "Method Not Allowed"]
            return .json(
                error.status, reasons[error.status] ?? "Refused",
                ["message": .string(error.message), "oicErrorCode": .string(error.code)])
        }
    }
}

// MARK: - Checks

extension TokenService {
    private func checked(_ request: Request, _ body: [UInt8]) throws(Refusal) -> JSON {
        guard request.method == "POST" else { throw Refusal(405, "IDAAS-00005", "POST is wanted") }
        guard !request.target.contains("?") else { throw Refusal(400, "IDAAS-00006", "no query is wanted") }
        let type = request.single("Content-Type")?.split(separator: ";").first?.lowercased()
        guard type == "application/json" else {
            throw Refusal(400, "IDAAS-00002", "Content-Type is not application/json")
        }
        guard request.single("X-IDAAS-SERVICEDOMAIN") == ledger.settings.serviceDomain else {
            throw Refusal(400, "IDAAS-00003", "X-IDAAS-SERVICEDOMAIN does not name the service domain")
        }
        guard let members = JSON.parse(body), members.isObject else {
            throw Refusal(400, "IDAAS-00004", "body is not a JSON object")
        }
        return members
    }

    private func require(_ members: JSON, _ name: String, _ wanted: String) throws(Refusal) {
        guard members[name]?.text == wanted else { throw Refusal(400, "IDAAS-61001", "\(name) is not \(wanted)") }
    }

    private func requireDevice(_ members: JSON) throws(Refusal) {
        guard let device = members["deviceProfile"], device.isObject else {
            throw Refusal(400, "IDAAS-61002", "deviceProfile is missing")
        }
        for claim in ["sdkversion", "ostype", "osversion"]
        where device["oracle:idm:claims:client:" + claim]?.text == nil {
            throw Refusal(400, "IDAAS-61003", "deviceProfile lacks the claim \(claim)")
        }
        guard let hardware = device["hardwareIds"], hardware.isObject else {
            throw Refusal(400, "IDAAS-61003", "deviceProfile lacks hardwareIds")
        }
        try require(members, "clientId", ledger.settings.clientID)
    }

    private func requirePassword(_ members: JSON, _ operation: String) throws(Refusal) {
        try require(members, TokenService.subjectType, "USERCREDENTIAL")
        guard let user = members["X-Idaas-Rest-Subject-Username"]?.text,
            let password = members["X-Idaas-Rest-Subject-Password"]?.text
        else { throw Refusal(400, "IDAAS-61004", "user name or password is missing") }
        let refused = faults.take("wrong_password", on: operation) != nil
        switch ledger.login(user: user, password: password, refused: refused) {
        case .accepted: return
        case .wrong: throw Refusal(401, "IDAAS-62001", "authentication failed")
        case .locked: throw Refusal(401, "IDAAS-62003", "the account is locked")
        }
    }

    /// `X-Idaas-Rest-Authorization: UIDPASSWORD cred="<base64 of clientId:handle>"`.
    private func requireHandle(_ request: Request, _ operation: String) throws(Refusal) {
        let prefix = "UIDPASSWORD cred=\""
        guard let value = request.single("X-Idaas-Rest-Authorization"), value.hasPrefix(prefix), value.hasSuffix("\""),
            value.count > prefix.count
        else { throw Refusal(401, "IDAAS-61005", "X-Idaas-Rest-Authorization is missing or misspelt") }
        guard let text = Base64.decodeText(String(value.dropFirst(prefix.count).dropLast())),
            let colon = text.firstIndex(of: ":"),
            text[..<colon] == ledger.settings.clientID
        else { throw Refusal(401, "IDAAS-61006", "client credential is not base64 of clientId:handle") }
        let handle = String(text[text.index(after: colon)...])
        if faults.take("handle_rejected", on: operation) != nil { ledger.withState { $0.handles.removeAll() } }
        guard ledger.withState({ $0.handles[handle] }) != nil else {
            throw Refusal(401, "IDAAS-61007", "registration handle is unknown")
        }
    }
}

// MARK: - Operations

extension TokenService {
    private func register(_ members: JSON) throws(Refusal) -> String {
        try require(members, TokenService.newType, "CLIENTREGHANDLE")
        try requireDevice(members)
        try requirePassword(members, "register")
        let handle = "eyJ" + ledger.mint(30)
        ledger.withState {
            $0.handles.insert(handle, ledger.settings.user)
            $0.secrets.insert(handle, true)
        }
        return handle
    }

    private func authenticate(_ request: Request, _ members: JSON) throws(Refusal) -> String {
        try require(members, TokenService.newType, "USERTOKEN")
        try requireHandle(request, "authenticate")
        try requireDevice(members)
        try requirePassword(members, "authenticate")
        let token = ledger.mint(48, percentEncoded: true)
        ledger.withState { $0.userTokens.insert(token, ledger.settings.user) }
        return token
    }

    private func access(_ request: Request, _ members: JSON) throws(Refusal) -> String {
        try require(members, TokenService.newType, "ACCESSTOKEN")
        try requireHandle(request, "access")
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
        let bare = context.url.split(separator: "?", maxSplits: 1).first.map(String.init) ?? context.url
        guard resource == context.url || resource == bare else {
            throw Refusal(400, "IDAAS-62013", "resource is not the one of the context")
        }
        let token = ledger.mint(45, percentEncoded: true)
        let life = UInt64(max(0, faults.take("token_lifetime_ms")?.number ?? 900_000))
        let record = Ledger.AccessToken(gate: context.gate, level: context.level, expires: Moment.now() + life)
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
