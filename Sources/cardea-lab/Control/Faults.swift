import Synchronization

/// The faults that a test asked for. A fault is set through the control interface under its name:
/// `true` lasts until the next reset, a number is its value, and an object states everything:
/// `{"value": …, "times": 1, "path": "/prefix", "on": "access"}`.
final class Faults: Sendable {
    struct Fault: Sendable {
        let number: Int?
        let text: String?
        var times: Int?
        let path: String?
        /// The operation it is limited to: `challenge`, `answer`, `register`, `authenticate`, `access`, `token`.
        let operation: String?

        init(_ stated: JSON) {
            let value = stated.members == nil ? stated : stated["value"]
            number = value?.integer
            text = value?.text
            times = stated["times"]?.integer
            path = stated["path"]?.text
            operation = stated["on"]?.text
        }
    }

    /// Every name that may be set, with what it does. An unknown name is refused, so that a test cannot misspell its
    /// fault.
    static let known: [String: String] = [
        // In front of the API.
        "step_up": "paths under `path` need level `value` (default 3)",
        "reject_tokens": "every credential is answered with a challenge again",
        "redirect": "302 to obrareq.cgi instead of the challenge",
        "only_basic": "the challenge is only Basic",
        "two_header_lines": "a Basic line before the OAM-Auth line",
        "two_challenges_one_line": "Basic and OAM-Auth in one line, the Basic realm with a comma",
        "bare_401": "401 without any challenge",
        "no_context": "an OAM-Auth challenge without request-ctx",
        "early_challenge": "the challenge is sent before the body is read",
        "early_answer": "the answer is sent before the body is read; value 1 also closes",
        "mfp_conflict":
            "409 with MFP-Conflict, of an adapter or (limited with on) of the server; value 1 after judging",
        "mfp_plain_conflict": "409 of an adapter without MFP-Conflict",
        // A MobileFirst server.
        "mfp_authenticity": "registration is challenged for appAuthenticity",
        "mfp_foreign_location": "registration names a client id at another place",
        "mfp_invalid_client_id": "preauthorize, authorization or token (with on) does not know the client any more",
        "mfp_remaining": "what a PIN challenge says is left: a number, or a text",
        "mfp_error_msg": "the first PIN challenge already has an errorMsg",
        "mfp_failures": "every check has failed; value 222 uses that status",
        "mfp_endless": "after each right answer another check is asked for",
        "mfp_clock_ms": "how far the server's clock is ahead",
        "mfp_redirect_error": "authorization redirects with an error",
        "mfp_redirect_elsewhere": "authorization redirects to another place than was asked for",
        "mfp_code_json": "authorization answers 200 with the code in JSON",
        // Adobe Pass.
        "adobe_throttle": "one call a second after ten at once, then 429 with a page",
        "adobe_wrapped_error": "errors stand under `error` instead of being the body",
        "adobe_invalid_client": "the token endpoint does not know the client any more",
        "adobe_other_provider_token": "an access token is refused as another service provider's",
        "adobe_retry": "403 with the action retry (limit with on)",
        "adobe_resume": "a session misses a parameter at first",
        "adobe_url": "the address of the login page",
        "adobe_absolute_url": "addresses are absolute",
        "adobe_code_life_ms": "life of a login code",
        "adobe_profile_life_ms": "life of the next login",
        "adobe_other_mvpd": "the profile is of this provider",
        "adobe_error": "decisions are answered with this error",
        "adobe_inner_retry": "a decision with the action retry inside of 200",
        "adobe_no_outer_times": "decisions without times of their own",
        "adobe_logout_redirect": "logout answers 302",
        "adobe_v1_enhanced": "V1 says its refusals as enhanced errors",
        "adobe_v1_unsure": "V1 says 403 where nobody is logged in",
        "adobe_media_refuses": "the media service refuses the token",
        // Oracle's dialects of OAuth.
        "oam12c_error_code": "12c refuses with errorCode and errorDesc, always 400",
        "oam12c_upper_only": "12c takes grant types in capitals alone",
        "oam_server_session": "11g keeps the user assertion itself",
        "oam_client_life_s": "how long a client assertion of 11g is good for, as it says",
        "oam_login_denied": "the user says no on the login page",
        "oam_token_dead": "a token that is asked about is unknown",
        "oam_profile_elsewhere": "the application profile names a token endpoint at another server",
        // Oracle Mobile Hub.
        "hub_answer": "what an exchange gives: jwt, saml, or (default) opaque text",
        "hub_milliseconds": "the times in such a JWT are milliseconds",
        "hub_expires_string": "expires_in is a string",
        "hub_no_type": "an exchange does not state a token_type",
        "hub_waives_secret": "auth/token wants no client secret in the form",
        // How an answer travels (limit with on: challenge or answer; default answer).
        "close_without_answer": "closes after the request was read",
        "close_on_reuse": "closes without an answer when a second request arrives on a connection",
        "close_idle": "closes the connection `value` ms after an answer that promised to keep it",
        "garbage_answer": "octets that are no HTTP",
        "two_answers": "a second complete answer behind the first",
        "reset_mid_body": "RST after half of the body",
        "truncate_body": "FIN after half of the body",
        "reset_before_answer": "RST after the request was read",
        "hang": "no answer until reset",
        "huge_head": "a head of `value` octets (default 1 MiB)",
        "folded_answer": "an obs-fold in the answer's head",
        "bare_lf_answer": "a head with bare LF",
        "length_and_chunked": "an answer with Content-Length and Transfer-Encoding",
        "two_lengths": "an answer with two different Content-Length fields",
        "bad_chunk": "a chunk size that is no number",
        "interim": "103 Early Hints before the answer",
        // The issuer (limit with on: register, authenticate, access, token).
        "issuer_slow_ms": "waits `value` ms before the answer",
        "issuer_hang": "no answer until reset",
        "issuer_status": "answers this status",
        "issuer_retry_after": "the Retry-After that goes with issuer_status",
        "issuer_html": "200 with an HTML page",
        "issuer_crlf_token": "a token value with CR LF and a header line in it",
        "issuer_empty": "200 with no octet",
        "issuer_empty_object": "200 with {}",
        "issuer_huge_json": "200 with `value` octets of JSON (default 32 MiB)",
        "issuer_close": "closes without an answer",
        "issuer_reset": "RST without an answer",
        "issuer_garbage": "octets that are no HTTP",
        "issuer_redirect": "302 to another address",
        "issuer_stale_context": "access refuses the context as used",
        "user_token_expired": "access forgets the user token and answers 401",
        "wrong_password": "every password counts as wrong",
        "invalid_client": "the token endpoint refuses the client",
        "token_lifetime_ms": "life of the access tokens handed out from now on",
        "expires_in": "what the token endpoint claims, whatever the true life",
        "no_expires_in": "the token endpoint does not state a life",
    ]

    private let table = Mutex<[String: Fault]>([:])

    /// The fault of this name if it is set and applies; uses up one of its times.
    func take(_ name: String, path: String = "", on operation: String? = nil) -> Fault? {
        table.withLock { table in
            guard var fault = table[name] else { return nil }
            if let prefix = fault.path, !path.hasPrefix(prefix) { return nil }
            if let wanted = fault.operation, wanted != "any", wanted != operation { return nil }
            if let times = fault.times {
                guard times > 0 else { return nil }
                fault.times = times - 1
                table[name] = fault
            }
            return fault
        }
    }

    /// The same as `take`, for faults of an answer's delivery, which leave challenges alone unless told otherwise.
    func takeDelivery(_ name: String, path: String, isChallenge: Bool) -> Fault? {
        let limited = table.withLock { $0[name]?.operation != nil }
        if !limited && isChallenge { return nil }
        return take(name, path: path, on: isChallenge ? "challenge" : "answer")
    }

    func isSet(_ name: String) -> Bool { table.withLock { $0[name] != nil } }

    func clear() { table.withLock { $0.removeAll() } }

    func set(_ changes: JSON) throws(Refusal) {
        guard let members = changes.members else {
            throw Refusal(400, "", "an object of names and values is wanted")
        }
        if let unknown = members.keys.first(where: { Faults.known[$0] == nil }) {
            throw Refusal(400, "", "unknown fault '\(unknown)'")
        }
        table.withLock { table in
            for (name, value) in members { table[name] = value.isSet ? Fault(value) : nil }
        }
    }
}
