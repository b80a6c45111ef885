/// Mobile & Social's answer to a step, told apart by what is to be done about it.
enum OAMWebGateAnswer {
    case token(Secret)
    /// 401 without more: at `register` and `authenticate` the password, at `access` the user token. The service says it in JSON; what a
    /// proxy or a WebGate on the way says otherwise refuses no password.
    case refused(reason: String)
    /// The client, not the user: its registration handle is not known any more.
    case clientRefused(reason: String)
    /// `judged`: whether a password sent with the step may have been looked at.
    case failed(GrantFailure, judged: Bool)
}

extension OAMWebGateAnswer {
    /// - Parameters:
    ///   - tokenType: the type asked for; a qualified one (`USERTOKEN::OAMUT`) may be answered by its first half.
    ///   - sendsPassword: `register` and `authenticate`.
    ///   - phrases: parts of messages that blame the client, beside the known ones; in lower case.
    init(
        _ answer: IssuerAnswer, step: String, tokenType: String, sendsPassword: Bool = true,
        handleRejectedCodes: Set<String>, phrases: [String] = []
    ) {
        let object = Result { () throws(AnswerObject.Fault) in try AnswerObject(answer.body) }
        let code = (try? object.get()).flatMap(Self.code)
        let reason = "\(step): status \(answer.status)" + (code.map { ", \($0)" } ?? "")
        switch answer.status {
        case 200, 201:
            switch object {
            case .success(let object): self = Self.success(object, step: step, reason: reason, tokenType: tokenType)
            case .failure(let fault):
                self = .failed(.issuerAnswerInvalid(reason: "\(step): \(fault.rawValue)"), judged: true)
            }
        case 401:
            guard let object = try? object.get() else {
                // A user token is asked for anew, which ends nobody's login.
                self = sendsPassword ? Self.foreign(reason) : .refused(reason: reason)
                return
            }
            let client = Self.blamesClient(object, code: code, handleRejectedCodes, phrases)
            self = client ? .clientRefused(reason: reason) : .refused(reason: reason)
        case 300..<400:
            // A login page may have looked at the password before it sent us elsewhere.
            self = .failed(.configuration(reason: reason + ": redirected instead of answered"), judged: true)
        case 403:
            guard (try? object.get()) != nil else {
                self = Self.foreign(reason)
                return
            }
            // Also what a locked or expired account gets: better one reset too many than one attempt.
            self = .failed(.policyDenied(reason: reason), judged: true)
        case 408, 425, 429, 500..<600:
            self = .failed(answer.unavailable(reason), judged: false)
        case 400..<500:
            self = .failed(.configuration(reason: reason), judged: false)
        default:
            self = .failed(.issuerAnswerInvalid(reason: reason), judged: true)
        }
    }

    /// The verdict on an answer that is not the service's own: the service behind it may have looked at the password all the same.
    private static func foreign(_ reason: String) -> OAMWebGateAnswer {
        .failed(.issuerAnswerInvalid(reason: reason + " without JSON: not the service's own answer"), judged: true)
    }

    private static func success(
        _ object: AnswerObject, step: String, reason: String, tokenType: String
    ) -> OAMWebGateAnswer {
        func invalid(_ what: String) -> OAMWebGateAnswer {
            .failed(.issuerAnswerInvalid(reason: "\(reason): \(what)"), judged: true)
        }
        guard let member = object["X-Idaas-Rest-Token-Value"] else {
            // The form of the knowledge-based questions is not documented; that something is asked is all that can be told.
            let asks = object.names.contains { name in
                let name = name.lowercased()
                return name.contains("challenge") || name.contains("question") || name.contains("kba")
            }
            if asks {
                return .failed(.interactionRequired(reason: "\(reason): the service asks a question"), judged: true)
            }
            return invalid("no token")
        }
        guard case .string(let text) = member else { return invalid("token is no string") }
        if let said = object["X-Idaas-Rest-Token-Type"] {
            let base = String(tokenType.prefix { $0 != ":" })
            guard case .string(let type) = said, type == tokenType || type == base else {
                return invalid("token of another type than \(tokenType)")
            }
        }
        let token = Secret(text)
        guard TokenAlphabet.visible.admits(token) else {
            return invalid("token is empty, too long, or not fit for a header")
        }
        return .token(token)
    }
}

// MARK: - Refusals

extension OAMWebGateAnswer {
    /// The code and nothing else: messages name users and hosts.
    private static func code(_ object: AnswerObject) -> String? {
        for name in ["oicErrorCode", "errorCode", "error"] {
            if let code = object.string(name)?.asOracleCode { return code }
        }
        return nil
    }

    private static func blamesClient(
        _ object: AnswerObject, code: String?, _ codes: Set<String>, _ phrases: [String]
    ) -> Bool {
        if let code, codes.contains(code) { return true }
        if object.string("error") == "invalid_client" { return true }
        // No code for it is documented, so the text decides; texts that also speak of the user's credentials do not count.
        guard let message = object.string("message")?.lowercased(), message.utf8.count <= 4096 else { return false }
        let client = ["registration handle", "client handle", "clientreghandle", "client registration", "client token"]
        let user = ["password", "username", "user credential", "user name"]
        func speaks(of words: [String]) -> Bool { words.contains { message.contains($0) } }
        return speaks(of: phrases) || speaks(of: client) && !speaks(of: user)
    }
}
