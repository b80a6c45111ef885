internal import Numbers
internal import Octets

/// A token endpoint's answer (RFC 6749 §5), told apart by what is to be done about it.
struct OAuth2Answer {
    private(set) var result: Result<AccessGrant, GrantFailure>
    /// Nanoseconds of CLOCK_BOOTTIME, before the request was sent.
    let sentAt: UInt64
    /// A new refresh token. It takes the place of the one that was sent, if any, also where the access token beside it is unusable.
    private(set) var refreshToken: Secret?
    /// The refresh token that was sent, where one was.
    var sentRefreshToken: Secret?
    /// A password was sent, which the issuer may have judged.
    var besidesPassword = false
    /// How long the refresh token is good for, as far as the issuer says.
    private(set) var refreshLife: RefreshLife?
    /// OpenID Connect Core §3.1.3.3.
    private(set) var idToken: Secret?
    /// The registered word or Oracle's code that the issuer gave.
    private(set) var error: String?
    /// Whether the issuer answers at all: neither overload nor a fault of its own.
    private(set) var isJudged = true
    /// The whole of it, where more than the standard's members is looked at.
    var whole: JSONTree?
    /// False where the status says that this URL is not, or no longer, that of the token endpoint.
    let isTokenEndpoint: Bool

    /// - Parameters:
    ///   - key: what the token must be bound to.
    ///   - isToken: whether the token is sent to upstreams, and must be of a kind that can be.
    ///   - step: what was asked, as failures name it.
    init(_ answer: IssuerAnswer, boundTo key: DPoPKey? = nil, isToken: Bool = true, step: String = "token") {
        sentAt = answer.sentAt
        isTokenEndpoint = !(300..<400).contains(answer.status) && ![404, 405, 410].contains(answer.status)
        switch answer.status {
        // 201 is what some vendors send.
        case 200, 201:
            let object: AnswerObject
            do throws(AnswerObject.Fault) {
                object = try AnswerObject(answer.body)
            } catch {
                result = .failure(.issuerAnswerInvalid(reason: "token: \(error.rawValue)"))
                return
            }
            error = Self.errorCode(object)
            do throws(GrantFailure) {
                refreshToken = try Self.refreshToken(object)
                refreshLife = Self.refreshLife(object, answer)
                idToken = object.string("id_token").map { Secret($0) }
                result = .success(try Self.success(object, answer, key, isToken: isToken))
            } catch {
                result = .failure(error)
            }
        case 300..<400:
            result = .failure(
                .configuration(
                    reason:
                        "\(step): redirect (\(answer.status)); the URL is not that of the \(step == "token" ? "token" : "device authorization") endpoint"
                ))
            isJudged = false
        case 408, 425, 429, 500..<600:
            result = .failure(answer.unavailable("\(step): status \(answer.status)"))
            isJudged = false
        case 400..<500:
            let object = try? AnswerObject(answer.body)
            error = object.flatMap(Self.errorCode)
            result = .failure(Self.refusal(answer, object, step: step))
        default:
            result = .failure(.issuerAnswerInvalid(reason: "\(step): status \(answer.status)"))
        }
    }
}

extension OAuth2Answer {
    /// - Parameter code: a refusal with this code is about a secret of ours, which is not to be sent again until it changes.
    func grant(rejecting code: String? = nil) throws(GrantFailure) -> AccessGrant {
        do throws(GrantFailure) {
            return try result.get()
        } catch {
            guard let code, code == self.error, case .configuration(let reason) = error else { throw error }
            throw .credentialRejected(reason: reason)
        }
    }
}

extension OAuth2Answer {
    /// Adds to a refusal of the client what may be its reason.
    mutating func advise(_ advice: String) {
        guard case .failure(.credentialRejected(let reason)) = result else { return }
        result = .failure(.credentialRejected(reason: "\(reason); \(advice)"))
    }

    /// Whether it was the client that was refused, and not what it asked for: the request may be sent again with another proof.
    var refusesClient: Bool {
        if error == "invalid_client" || error == "unauthorized_client" { return true }
        // A refusal that does not name the client may be about the user.
        if besidesPassword { return false }
        if case .failure(.credentialRejected) = result { return true }
        return false
    }
}

// MARK: - Success

extension OAuth2Answer {
    private static func success(
        _ object: AnswerObject, _ answer: IssuerAnswer, _ key: DPoPKey?, isToken: Bool
    ) throws(GrantFailure) -> AccessGrant {
        guard let member = object["access_token"] else {
            // Some servers put an error into a 200.
            if errorCode(object) != nil { throw refusal(answer, object) }
            throw .issuerAnswerInvalid(reason: "token: no access_token")
        }
        guard case .string(let text) = member else {
            throw .issuerAnswerInvalid(reason: "token: access_token is no string")
        }
        let token = Secret(text)
        guard TokenAlphabet.b64token.admits(token) else {
            throw .issuerAnswerInvalid(reason: "token: access_token is empty, too long, or not fit for a header")
        }
        if isToken {
            guard let type = object.string("token_type") else {
                throw .issuerAnswerInvalid(reason: "token: no token_type")
            }
            try check(type: type, of: token, boundTo: key)
        }
        var grant = AccessGrant(
            token: token, tokenType: key == nil ? "Bearer" : "DPoP", lifetime: try lifetime(object["expires_in"]),
            sentAt: answer.sentAt,
            grantedScopes: try scopes(object["scope"]))
        if grant.lifetime == nil, let times = JWTTimes(token), let expires = times.expires {
            grant.statedTimes = (times.issued, expires)
        }
        return grant
    }

    /// A server that knows nothing of DPoP answers as if it had not been asked for: the token would be anybody's (RFC 9449 §5).
    private static func check(type: String, of token: Secret, boundTo key: DPoPKey?) throws(GrantFailure) {
        guard let key else {
            guard Array(type.utf8).matches("Bearer") else {
                throw .issuerAnswerInvalid(reason: "token: a token_type other than Bearer")
            }
            return
        }
        if Array(type.utf8).matches("DPoP") { return }
        // Some bind the token and call it Bearer all the same: then it says itself what it is bound to.
        if Array(type.utf8).matches("Bearer"), case .object(let bound)? = JWTPayload.object(token)?["cnf"],
            bound["jkt"] == key.thumbprint
        {
            return
        }
        throw .issuerAnswerInvalid(reason: "token: a token_type other than DPoP; the issuer did not bind the token")
    }

    /// Nanoseconds, at most a year. Absent is unknown, never endless; zero or less contradicts the token beside it.
    static func lifetime(_ member: AnswerObject.Member?, step: String = "token") throws(GrantFailure) -> UInt64? {
        let span: TimeSpan
        switch member {
        case nil, .null?: return nil
        case .integer(let seconds)?: span = TimeSpan(seconds, .seconds)
        case .number(let seconds)?: span = TimeSpan(seconds: seconds)
        case .string(let text)?:
            guard let seconds = TimeSpan(decimalSeconds: text) else {
                throw .issuerAnswerInvalid(reason: "\(step): expires_in is no number")
            }
            span = seconds
        default: throw .issuerAnswerInvalid(reason: "\(step): expires_in is no number")
        }
        guard span > .zero else { throw .issuerAnswerInvalid(reason: "\(step): expires_in is not positive") }
        return min(span.nanoseconds, AccessGrant.longestLifetime)
    }

    private static func refreshToken(_ object: AnswerObject) throws(GrantFailure) -> Secret? {
        switch object["refresh_token"] {
        case nil, .null?, .string("")?: return nil
        case .string(let text)?:
            let token = Secret(text)
            guard TokenAlphabet.fieldValue.admits(token) else {
                throw .issuerAnswerInvalid(reason: "token: refresh_token is too long, or not printable ASCII")
            }
            return token
        default: throw .issuerAnswerInvalid(reason: "token: refresh_token is no string")
        }
    }

    /// Keycloak's name first, then that of most others; a moment beside them is in seconds since 1970, by the issuer's clock as it stands
    /// in the answer's `Date`. 0 says that it does not end.
    private static func refreshLife(_ object: AnswerObject, _ answer: IssuerAnswer) -> RefreshLife? {
        for name in ["refresh_expires_in", "refresh_token_expires_in"] {
            if let life = try? lifetime(object[name]) { return RefreshLife(left: life, whole: life) }
        }
        for name in ["refresh_token_expires_at", "refresh_expires_at"] {
            guard case .integer(let end)? = object[name], let now = answer.date else { continue }
            let life = WallTime(seconds: end).left(at: WallTime(seconds: ReceivedNumber(now)))
            // In milliseconds, or never: neither says how long.
            guard life > .zero, life < .longest else { continue }
            return RefreshLife(left: life.nanoseconds, whole: life.nanoseconds)
        }
        return nil
    }

    private static func scopes(_ member: AnswerObject.Member?) throws(GrantFailure) -> [String]? {
        switch member {
        case nil, .null?: return nil
        case .string(let text)?:
            guard let scopes = OAuth2Scope.set(text) else {
                throw .issuerAnswerInvalid(reason: "token: scope is no list of scopes")
            }
            // Empty says nothing about what was granted (RFC 6749 §5.1).
            return scopes.isEmpty ? nil : scopes
        default: throw .issuerAnswerInvalid(reason: "token: scope is no string")
        }
    }
}

// MARK: - Refusal (RFC 6749 §5.2, with the dialects met in the field)

extension OAuth2Answer {
    /// The code of `error`, of an `error` object's `code`, `error` or `message`, of `errorCode`, or of the `oicErrorCode` of Oracle's
    /// Mobile & Social; nil: none of them.
    static func errorCode(_ object: AnswerObject) -> String? {
        switch object["error"] {
        case .string(let text)?: return text.asErrorCode ?? "unreadable"
        case .object(let inner)?:
            let words = [inner["code"], inner["error"], inner["type"], inner["message"]]
            return words.lazy.compactMap { $0?.asErrorCode }.first ?? "unreadable"
        case .bool, .null, nil: break
        case .integer, .number, .other: return "unreadable"
        }
        return (object.string("errorCode") ?? object.string("oicErrorCode"))?.asErrorCode
    }

    private static func refusal(
        _ answer: IssuerAnswer, _ object: AnswerObject?, step: String = "token"
    ) -> GrantFailure {
        let code = object.flatMap(errorCode)
        let reason =
            "\(step): status \(answer.status)" + (code.map { ", \($0.isWorthShowing ? $0 : "unknown error")" } ?? "")
        switch code {
        // IDAAS-62001: authentication failed, in the dialect of OAM 11g.
        case "invalid_client", "IDAAS-62001": return .credentialRejected(reason: reason)
        case "invalid_scope", "unauthorized_client", "unsupported_grant_type", "invalid_request", "invalid_grant",
            "invalid_target", "unsupported_response_type":
            return .configuration(reason: reason)
        case "access_denied", unmetAuthentication: return .policyDenied(reason: reason)
        case "interaction_required", "login_required", "consent_required":
            return .interactionRequired(reason: reason)
        case "server_error", "temporarily_unavailable", "slow_down":
            return answer.unavailable(reason)
        default: break
        }
        // A page of something on the way, as of a proxy or a firewall, judges nobody.
        if code == nil, [400, 401, 403].contains(answer.status) {
            return .issuerAnswerInvalid(reason: reason + " without an OAuth error: not the issuer's own answer")
        }
        switch answer.status {
        case 401: return .credentialRejected(reason: reason)
        case 403: return .policyDenied(reason: reason)
        case 400..<500: return .configuration(reason: reason)
        default: return .issuerAnswerInvalid(reason: reason)
        }
    }
}

extension OAuth2Answer {
    /// The issuer cannot, or will not, authenticate the person as it was asked to.
    static let unmetAuthentication = "unmet_authentication_requirements"

    /// An error code as it may be told.
    static func shown(_ code: String) -> String {
        code.asErrorCode.map { $0.isWorthShowing ? $0 : "unknown error" } ?? "unreadable error"
    }
}

extension String {
    /// Registered words and Oracle's codes are shown; any other text an issuer sends might quote what we sent.
    fileprivate var isWorthShowing: Bool {
        if asOracleCode != nil { return true }
        return [
            "invalid_client", "invalid_scope", "unauthorized_client", "unsupported_grant_type", "invalid_request",
            "invalid_grant", "invalid_target", "unsupported_response_type", "access_denied", "interaction_required",
            "login_required", "consent_required", "server_error", "temporarily_unavailable", "slow_down",
            "authorization_pending", "expired_token", "use_dpop_nonce", "invalid_dpop_proof",
            // RFC 7591 §3.2.2, and RFC 6750 §3.1 of an initial access token.
            "invalid_redirect_uri", "invalid_client_metadata", "invalid_software_statement",
            "unapproved_software_statement", "invalid_token", "insufficient_scope",
            // OpenID Connect Core Error Code unmet_authentication_requirements, and RFC 9470 §5.
            OAuth2Answer.unmetAuthentication,
        ].contains(self)
    }
}
