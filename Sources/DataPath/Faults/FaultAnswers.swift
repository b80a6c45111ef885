internal import HTTP1

/// The one place where a fault becomes an answer: status, problem type (RFC 9457), Proxy-Status error (RFC 9209), and whether the
/// caller's connection can carry another request.
struct FaultAnswer {
    let status: Int
    /// Last segment of the problem's `type`.
    let type: StaticString
    let title: StaticString
    /// RFC 9209 §2.3 error type; nil where the caller's own request is at fault and no next hop was involved.
    let proxyError: StaticString?
    /// True where the bytes that follow on the connection cannot be trusted to be a request.
    let closes: Bool
}

extension Fault.Kind {
    /// The problem's one name: in the answer's `type`, the access record, the log and the metrics.
    public var word: String { "\(Fault(self).answer.type)" }
}

extension Fault {
    var answer: FaultAnswer {
        switch kind {
        // MARK: the caller's request
        case .malformedRequest:
            .init(400, "malformed-request", "The request is malformed", closes: true)
        case .incompleteBody:
            .init(400, "incomplete-body", "The request body ended early", closes: true)
        case .unsafePath:
            .init(400, "unsafe-path", "The path is ambiguous", "http_request_error")
        case .unsignable:
            .init(400, "unsignable-request", "The request cannot be signed", "http_request_error")
        case .unknownTransferCoding:
            .init(501, "unknown-transfer-coding", "The transfer coding is not known", closes: true)
        case .unsupportedVersion:
            .init(505, "unsupported-version", "The HTTP version is not supported", closes: true)
        case .slowHead:
            .init(408, "slow-head", "The request head took too long", closes: true)
        case .slowBody:
            .init(408, "slow-body", "The request body took too long", closes: true)
        case .longTarget:
            .init(414, "long-target", "The request target is too long", closes: true)
        case .bigHead:
            .init(431, "big-head", "The request head is too large", closes: true)
        case .bigBody:
            .init(413, "big-body", "The request body is too large", closes: true)
        case .traceRefused:
            .init(405, "trace-refused", "TRACE is refused where a credential would go", "http_request_denied")
        case .connectRefused:
            .init(405, "connect-refused", "CONNECT is not taken here", closes: true)
        case .originFormRefused:
            .init(
                400, "origin-form-refused", "This is a proxy: the request must name its host in its target",
                closes: true)
        case .destinationRefused:
            .init(
                403, "destination-refused", "This address is not reached through the proxy", "destination_ip_prohibited"
            )
        case .placeholderMisplaced:
            .init(
                403, "placeholder-misplaced", "A placeholder stands where no credential replaces it",
                "http_request_denied")
        case .noRoute:
            .init(404, "no-route", "No route matches", "destination_not_found")
        case .callerRefused:
            .init(403, "caller-refused", "This caller is not admitted", "http_request_denied")
        case .callerTokenRefused:
            .init(401, "caller-token-refused", "The gateway's token is missing or wrong")
        case .proxyTokenRefused:
            .init(407, "proxy-token-refused", "The proxy's token is missing or wrong")
        case .subjectMissing:
            .init(
                403, "subject-missing", "The request does not say for whom it is, or says it twice",
                "http_request_denied")
        case .subjectRefused:
            .init(403, "subject-refused", "The issuer gives no token for this subject", "http_request_denied")
        case .resourceMissing:
            .init(
                403, "resource-missing", "The request does not say what it is to be authorized for",
                "http_request_denied")
        case .resourceDenied:
            .init(403, "resource-denied", "The provider does not authorize this", "http_request_denied")
        case .crossSite:
            .init(403, "cross-site", "Requests of web pages are not admitted", "http_request_denied")
        case .misdirected:
            .init(421, "misdirected", "This host is not served here", "http_request_denied")

        // MARK: the token
        case .issuerUnavailable:
            .init(503, "issuer-unavailable", "No token can be had now", "proxy_internal_response")
        case .issuerAnswerInvalid:
            .init(503, "issuer-answer-invalid", "The issuer's answer cannot be used", "proxy_internal_response")
        case .quarantined:
            .init(503, "credential-quarantined", "The credential is not sent again", "proxy_internal_response")
        case .secretUnreadable:
            .init(503, "secret-unreadable", "A secret cannot be read", "proxy_configuration_error")
        case .secretUnusable:
            .init(503, "secret-unusable", "A secret is not fit to be sent", "proxy_configuration_error")
        case .storeUnusable:
            .init(503, "store-unusable", "The gateway's store cannot be used", "proxy_configuration_error")
        case .interactionRequired:
            .init(503, "login-required", "A person must log in", "proxy_internal_response")
        case .policyDenied:
            .init(503, "issuer-denied", "The issuer's policy denies the token", "proxy_internal_response")
        case .identityMisconfigured:
            .init(503, "identity-misconfigured", "The issuer refuses this configuration", "proxy_configuration_error")
        case .tokenTimeout:
            .init(504, "token-timeout", "The token took too long", "connection_read_timeout")

        // MARK: the upstream
        case .upstreamUnresolvable:
            .init(502, "upstream-unresolvable", "The upstream's name cannot be resolved", "dns_error")
        case .upstreamRefused:
            .init(502, "upstream-refused", "The upstream refused the connection", "connection_refused")
        case .upstreamConnectTimeout:
            .init(504, "upstream-connect-timeout", "The upstream did not accept in time", "connection_timeout")
        case .upstreamTLS:
            .init(502, "upstream-tls", "TLS to the upstream failed", "tls_certificate_error")
        case .upstreamClosed:
            .init(502, "upstream-closed", "The upstream closed the connection", "connection_terminated")
        case .proxyRefused:
            .init(502, "proxy-refused", "The proxy on the way refused", "connection_refused")
        case .upstreamGarbage:
            .init(502, "upstream-garbage", "The upstream's answer is not valid HTTP", "http_protocol_error")
        case .upstreamUnproven:
            .init(502, "upstream-unproven", "The upstream did not prove who it is", "http_protocol_error")
        case .upstreamOffersNoUpgrade:
            .init(502, "upstream-offers-no-upgrade", "The upstream does not offer this upgrade", "http_upgrade_failed")
        case .upstreamEncoded:
            .init(
                502, "upstream-encoded", "The upstream's answer cannot be looked into", "http_response_content_coding")
        case .upstreamBigHead:
            .init(502, "upstream-big-head", "The upstream's head is too large", "http_response_header_section_size")
        case .upstreamTimeout:
            .init(504, "upstream-timeout", "The upstream did not answer in time", "http_response_timeout")
        case .upstreamRefusedCredential:
            .init(502, "upstream-refused-credential", "The upstream refuses the credential", "proxy_internal_response")
        case .upstreamRedirectedToLogin:
            .init(
                502, "upstream-redirected-to-login", "The upstream sends callers to a login page",
                "proxy_configuration_error")
        case .connectionShared:
            .init(
                502, "connection-shared", "NTLM and Negotiate need a connection of the caller's own",
                "proxy_configuration_error")
        case .loopDetected:
            .init(502, "loop-detected", "The request has come through here before", "proxy_loop_detected")

        // MARK: us
        case .tooManyWaiters:
            .init(503, "too-many-waiters", "Too many requests wait for a token", "connection_limit_reached")
        case .tooManySubjects:
            .init(503, "too-many-subjects", "Too many subjects that were not seen before", "connection_limit_reached")
        case .upstreamBusy:
            .init(503, "upstream-busy", "Too many requests wait for the upstream", "connection_limit_reached")
        case .tooManyConnections:
            .init(503, "too-many-connections", "Too many connections", "connection_limit_reached", closes: true)
        case .draining:
            .init(503, "draining", "The gateway is shutting down", "proxy_internal_response", closes: true)
        case .upgrading:
            .init(503, "upgrading", "Another process of the gateway takes over", "proxy_internal_response")
        case .outOfMemory:
            .init(503, "out-of-buffers", "The gateway has no buffer left", "connection_limit_reached", closes: true)
        case .auditUnavailable:
            .init(503, "audit-unavailable", "The audit log takes no records", "proxy_internal_response")
        case .internalFault:
            .init(500, "internal", "The gateway failed", "proxy_internal_error", closes: true)
        }
    }

    /// The complete answer, head and body. Allocates: a fault is never a cache hit.
    /// - Parameters:
    ///   - requestID: of letters, digits, `.`, `_` and `-`; nil where no request was read.
    ///   - tellsID: say it in `X-Request-Id`, too.
    ///   - headOnly: the request was HEAD; the length is announced and the body left out.
    func message(
        pseudonym: String, route: String?, requestID: String? = nil, tellsID: Bool = false, headOnly: Bool, close: Bool
    ) -> [UInt8] {
        let answer = self.answer
        var body =
            "{\"type\":\"urn:cardea:problems/\(answer.type)\",\"title\":\"\(answer.title)\",\"status\":\(answer.status)"
        if let detail { body += ",\"detail\":\"\(Self.escaped(detail))\"" }
        if let route { body += ",\"route\":\"\(Self.escaped(route))\"" }
        if let requestID { body += ",\"request_id\":\"\(requestID)\"" }
        body += "}\n"
        var head =
            "HTTP/1.1 \(answer.status) \(reasonPhrase(answer.status))\r\nContent-Type: application/problem+json\r\n"
        head += "Content-Length: \(body.utf8.count)\r\nCache-Control: no-store\r\n"
        if let error = answer.proxyError {
            head += "Proxy-Status: \(pseudonym); error=\(error)"
            if let receivedStatus { head += "; received-status=\(receivedStatus)" }
            head += "\r\n"
        }
        switch kind {
        case .callerTokenRefused: head += Self.challenge("WWW-Authenticate", pseudonym)
        case .proxyTokenRefused: head += Self.challenge("Proxy-Authenticate", pseudonym)
        default: break
        }
        if answer.status == 405 { head += "Allow: \(Self.allowedMethods)\r\n" }
        if let retryAfter { head += "Retry-After: \(retryAfter)\r\n" }
        if let requestID, tellsID { head += "X-Request-Id: \(requestID)\r\n" }
        if close || answer.closes { head += "Connection: close\r\n" }
        head += "\r\n"
        return Array(headOnly ? head.utf8 : (head + body).utf8)
    }

    /// The methods in `Allow`. Others are forwarded, too, but callers need not be told of them.
    static let allowedMethods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"

    /// Either form will do (RFC 9110 §11.6.1, §11.7.1).
    private static func challenge(_ field: String, _ realm: String) -> String {
        "\(field): Bearer realm=\"\(realm)\"\r\n\(field): Basic realm=\"\(realm)\"\r\n"
    }

    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": escaped += "\\\""
            case "\\": escaped += "\\\\"
            case let control where control.value < 0x20 || control.value == 0x7f: escaped += " "
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}

extension FaultAnswer {
    fileprivate init(
        _ status: Int, _ type: StaticString, _ title: StaticString,
        _ proxyError: StaticString? = nil,
        closes: Bool = false
    ) {
        self.init(status: status, type: type, title: title, proxyError: proxyError, closes: closes)
    }
}
