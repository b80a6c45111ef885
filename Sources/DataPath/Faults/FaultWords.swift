/// The words of a problem for people: what happened, and what there is to do. docs/reference/problems.md is made of them.
extension Fault.Kind {
    /// How the caller is answered: the status, the problem's title, the error of Proxy-Status, and whether its connection ends.
    package var outcome: (status: Int, title: String, proxyError: String?, closes: Bool) {
        let answer = Fault(self).answer
        return (answer.status, "\(answer.title)", answer.proxyError.map { "\($0)" }, answer.closes)
    }

    /// The cause as the gateway saw it, in one or two sentences.
    package var meaning: String {
        switch self {
        case .malformedRequest: "The request's head or framing can be read in two ways, so it is not read at all."
        case .incompleteBody: "The request's body ended before its announced length, or its chunks are not valid."
        case .unsafePath:
            "The path has dots, doubled or encoded slashes, or reads as another route's path to servers that are less exact than the gateway."
        case .unsignable:
            "The route signs requests, and this one is of a kind that is not signed: the detail in the answer says which."
        case .unknownTransferCoding: "The request has a transfer coding other than chunked."
        case .unsupportedVersion: "The request is of a version of HTTP that is not served."
        case .slowHead: "The request's head did not arrive within limits.head_timeout."
        case .slowBody: "The request's body came slower than limits.min_rate allows."
        case .longTarget: "The request's target is longer than limits.target_size."
        case .bigHead: "The request's head is larger than limits.header_size, or has more fields than limits.headers."
        case .bigBody:
            "The request's body is larger than limits.body_size, or than on_rejected.max_body where a signature covers the body."
        case .traceRefused:
            "TRACE would show the credential to whoever sent it, so it is refused on a route with an identity."
        case .connectRefused:
            "CONNECT came to a listener that is not in forward proxy mode, or over HTTP/2 or TLS for a host whose TLS is intercepted."
        case .originFormRefused: "A listener in forward proxy mode was spoken to as if it were the server itself."
        case .destinationRefused:
            "No route matches, and the address that was asked for is loopback, link-local, this machine's own or a cloud's metadata."
        case .placeholderMisplaced:
            "A confined program sent a placeholder to another place than the one where the route of its secret puts the credential."
        case .noRoute: "No route matches the request's listener, host, path, method and header fields."
        case .callerRefused: "The caller is not among those that the route's callers admit."
        case .callerTokenRefused:
            "The route wants a token of the gateway's own, and the request has none or a wrong one."
        case .proxyTokenRefused: "The proxy wants a token of its own, and Proxy-Authorization has none or a wrong one."
        case .subjectMissing:
            "The route has a token for each end user, and the request names no user, or names one twice."
        case .subjectRefused:
            "The issuer gives no token for this user, the identity acts for others alone, or the caller's own token has expired."
        case .resourceMissing: "The identity's tokens are for one thing each, and the request does not name it."
        case .resourceDenied: "The provider does not authorize this user for what the request names."
        case .crossSite: "A web page of another site made the request, and the route does not admit browsers."
        case .misdirected: "The request's Host is not one that is served here; the log names it."
        case .issuerUnavailable:
            "No token can be had now: the issuer does not answer, answers with an error of its own, or is left alone for a while after failures."
        case .issuerAnswerInvalid: "The issuer answered, and its answer is not one that a token can be taken from."
        case .quarantined:
            "The issuer refused the credential, or a login was cut off before its answer. The credential is not sent again, so that no account gets locked."
        case .secretUnreadable:
            "A secret of the identity cannot be read: its file, variable, credential or program gives nothing."
        case .secretUnusable:
            "A secret of the identity was read, and is not fit to be sent, as it is empty or has line breaks in it."
        case .storeUnusable:
            "A step that must be made only once needs the store, and the store cannot be read or is owned by another process."
        case .interactionRequired:
            "The identity's tokens need a login of a person, and there is none, it has ended, or the upstream asks for a stronger one: the detail says which."
        case .policyDenied: "The issuer knows the client, and its policy does not give it this token."
        case .identityMisconfigured:
            "The issuer refuses what the identity's block says: client, scope, grant or audience."
        case .tokenTimeout: "No token came within the identity's token.acquire_timeout."
        case .upstreamUnresolvable: "The name of the upstream in 'to' has no address."
        case .upstreamRefused: "No address of the upstream accepted a connection."
        case .upstreamConnectTimeout: "No connection to the upstream stood within timeouts.connect."
        case .upstreamTLS:
            "TLS to the upstream failed: its certificate is not trusted, or no version or cipher is shared."
        case .upstreamClosed: "The upstream closed the connection before its answer was there."
        case .proxyRefused: "The HTTP proxy on the way to the upstream refused the connection."
        case .upstreamOffersNoUpgrade: "A WebSocket was asked for, and the upstream offers none over HTTP/2."
        case .upstreamEncoded:
            "The route has 'answers: conceal', and the answer is in a coding or a part of something (206), although neither was asked for: nobody can look for the credential in it."
        case .upstreamGarbage: "The upstream's answer is not valid HTTP."
        case .upstreamUnproven:
            "The upstream, or the proxy on the way, did not prove with its answer that it knows what only it and the gateway can know."
        case .upstreamBigHead: "The head of the upstream's answer is larger than limits.header_size."
        case .upstreamTimeout:
            "The upstream did not answer within timeouts.response, or paused for longer than timeouts.idle."
        case .upstreamRefusedCredential:
            "The upstream refused the credential, a new one was obtained where there is one to be had, and it was refused too."
        case .upstreamRedirectedToLogin:
            "The upstream sends callers to a login page for browsers instead of a challenge."
        case .connectionShared:
            "The caller's own credential is of NTLM or Negotiate, which authenticates a connection, and the route's HTTP/2 connection is shared."
        case .loopDetected: "The request's Via says that it has come through this gateway before."
        case .tooManyWaiters: "As many requests wait for a token as limits.waiters allows."
        case .tooManySubjects:
            "More users or URLs that nobody has seen before came in a second than limits.new_subjects_per_second, or a full route met new realms."
        case .tooManyConnections:
            "There are as many connections of callers as limits.connections or the listener's connections allow, or as many as the process may open."
        case .upstreamBusy:
            "All of the route's limits.connections are in use, and as many requests as its limits.waiters wait for one."
        case .draining: "The gateway is ending and takes no new requests."
        case .upgrading: "Another process of the gateway takes over the store, and for a moment nobody obtains tokens."
        case .outOfMemory: "The gateway's memory for messages is in use."
        case .auditUnavailable:
            "The audit log has no place for the use of a credential, and 'audit.on_trouble' is 'block'."
        case .internalFault: "A mistake of the gateway's own."
        }
    }

    /// The advice to whoever runs the gateway, or to the caller.
    package var advice: String {
        switch self {
        case .malformedRequest, .incompleteBody: "Correct the caller: the detail in the answer says what is wrong."
        case .unsafePath: "Correct the caller, or set paths: raw on the route if the upstream needs such paths."
        case .unsignable:
            "Have the caller send the request plainly: without a signature, or a digest of its body, that does not fit it, and in printable ASCII."
        case .unknownTransferCoding: "Have the caller send chunked or Content-Length."
        case .unsupportedVersion: "Have the caller speak HTTP/1.0, 1.1 or 2."
        case .slowHead: "Look at the caller and the network between; else raise limits.head_timeout."
        case .slowBody: "Look at the caller and the network between; else lower limits.min_rate."
        case .longTarget: "Raise limits.target_size."
        case .bigHead: "Raise limits.header_size or limits.headers."
        case .bigBody: "Raise limits.body_size, or on_rejected.max_body for routes that sign."
        case .traceRefused: "Use another method."
        case .connectRefused:
            "Set mode: forward_proxy on the listener, or have the caller send plain requests; for an intercepted host, have it speak HTTP/1.1 to the proxy, without TLS."
        case .originFormRefused: "Set the gateway as the caller's proxy, or use mode: gateway on the listener."
        case .destinationRefused: "Write a route for the host, if it is meant to be reached."
        case .placeholderMisplaced:
            "Send the secret's variable to the API that its identity's route names, in the field, parameter or cookie of the route's inject; the detail names both."
        case .noRoute:
            "Ask 'cardea explain METHOD URL' which route a request would have, and correct routes or the caller."
        case .callerRefused: "Admit the caller with the route's callers, if it is meant to be."
        case .callerTokenRefused, .proxyTokenRefused: "Have the caller bring the token that callers.token refers to."
        case .subjectMissing: "Have the caller, or the proxy in front, name the user as the route's subject says."
        case .subjectRefused:
            "Look at the user's rights at the issuer and at the identity's for_users, or have the user sign in to the caller again."
        case .resourceMissing: "Have the caller name the resource where the identity's block says."
        case .resourceDenied: "Look at what the user has subscribed to at the provider."
        case .crossSite: "Set callers.browsers: true only if pages of other sites are meant to use the credential."
        case .misdirected:
            "Add the name to hosts of the listener or route, to match.host, or to the names in the listener's certificate."
        case .issuerUnavailable: "Look at the issuer's state, and at the network to it; the log says what it answered."
        case .issuerAnswerInvalid:
            "Look at the URL of the endpoint in the identity's block, and at what the log says of the answer."
        case .quarantined:
            "Change the secret where its reference leads to. If the secret is right, 'cardea reset IDENTITY' lifts the quarantine."
        case .secretUnreadable, .secretUnusable: "Correct the secret: the log names its place and the reason."
        case .storeUnusable:
            "Look at the disk, the rights and the owner of store.path: the log and 'cardea store verify' say more."
        case .interactionRequired: "Have the person run 'cardea login IDENTITY'."
        case .policyDenied: "Ask the issuer's administrator for the right; the log has the issuer's error code."
        case .identityMisconfigured: "Correct the identity's block: 'cardea check --live' shows what the issuer says."
        case .tokenTimeout:
            "Look at the issuer's times (cardea_grant_duration_seconds); raise token.acquire_timeout, or network.connections if calls wait their turn."
        case .upstreamUnresolvable: "Correct the name in 'to', or the resolver of the machine."
        case .upstreamRefused: "Look whether the upstream runs and listens there."
        case .upstreamConnectTimeout: "Look at the network and firewalls to the upstream; else raise timeouts.connect."
        case .upstreamTLS:
            "Set the route's tls (ca, certificate, server_name, min_version) as the upstream needs it; the log has the reason."
        case .upstreamClosed:
            "Look at the upstream's log. If it closes kept connections early, set timeouts.keep_alive below its own time."
        case .proxyRefused: "Look at the proxy's log, and at proxy.username and proxy.password, or proxy.negotiate."
        case .upstreamOffersNoUpgrade: "Set http: auto or 1.1 on the route."
        case .upstreamUnproven:
            "Find out what stands between the gateway and the upstream, or answers in its place; the detail names what was missing."
        case .upstreamEncoded:
            "Have the upstream heed 'Accept-Encoding: identity', or give what is stored in a coding a route of its own."
        case .upstreamGarbage: "Look whether 'to' has the right scheme and port, and at the upstream's log."
        case .upstreamBigHead: "Raise limits.header_size."
        case .upstreamTimeout: "Look at the upstream; else raise timeouts.response or timeouts.idle of the route."
        case .upstreamRefusedCredential:
            "Look at the rights of the client or user at the upstream; on_rejected.final: pass shows the caller the upstream's own answer."
        case .upstreamRedirectedToLogin: "Set user_agent_prefix of oam_webgate to the WebGate's OAMAuthUserAgentPrefix."
        case .connectionShared: "Set http: auto or 1.1 on the route."
        case .loopDetected: "Correct 'to': it leads back to this gateway, or to one of the same name."
        case .tooManyWaiters: "Look why tokens take long; else raise limits.waiters. Callers may try again."
        case .tooManySubjects:
            "Raise limits.new_subjects_per_second if so many new users are usual. Callers may try again after Retry-After."
        case .tooManyConnections:
            "Look who opens so many connections (limits.connections_per_address); else raise the limit, or that of open files (LimitNOFILE)."
        case .upstreamBusy: "Look at the upstream; else raise limits of the route. Callers may try again."
        case .draining: "Send the request to another gateway; take one that is not ready out of the load balancer."
        case .upgrading: "Send the request again after Retry-After."
        case .auditUnavailable:
            "Look at the disk of 'audit.path': the log says why it cannot be written. It is tried again each second."
        case .outOfMemory: "Lower limits.connections or raise the memory of the machine. Callers may try again."
        case .internalFault: "Report it, as SECURITY.md or CONTRIBUTING.md say, with the log around it."
        }
    }
}
