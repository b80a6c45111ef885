internal import Configuration
internal import Octets

/// The calls that both generations of Adobe's API can do, each in its own words.
protocol AdobePassAPI {
    /// Leads a person through a login, or finds that somebody has logged in.
    func login(_ dialogue: any LoginDialogue) async throws(GrantFailure) -> LoginGrant
    /// The login that there is; throws `.interactionRequired` where there is none.
    func currentLogin() async throws(GrantFailure) -> LoginGrant
    /// - Returns: whether the server has said that the login is over.
    func endLogin() async -> Bool
    /// A new token for one request.
    func mediaToken(for resource: String) async throws(GrantFailure) -> Secret
    /// Advice on several resources at once: it comes without tokens.
    func preauthorize() async throws(GrantFailure) -> [IdentityFact]
}

/// The calls of one flight, one login or one request: each in its turn, with the headers that it needs and no other
/// (docs/design/wire/adobe-pass.md#headers).
struct AdobePassRun {
    let settings: AdobePassSettings
    let world: GrantWorld
    let environment: any GrantEnvironment

    enum Body {
        case none
        case form([(String, String)])
        case json([UInt8])
    }

    private static let formType = "application/x-www-form-urlencoded"

    // MARK: - Calls of the API

    /// Sends a call as this client, with another access token where the one at hand is refused, and again where the server asks for it.
    ///
    /// - Returns: the answer, whatever its status, unless its error is one of the way there.
    func call(
        _ step: String, _ method: String, _ path: String, _ body: Body = .none, turns: Int = 1
    ) async throws(GrantFailure) -> AdobePassReply {
        var refused: LayerMaterial?
        var tries = 0
        var turns = turns
        while true {
            let token = try await accessToken(unless: refused)
            var headers = [("Authorization", "Bearer " + token.bytes.text)]
            // V1 names the device among the parameters.
            if settings.generation == .v2 {
                headers.append(
                    ("AP-Device-Identifier", "fingerprint " + Base64.encode(Array(try await deviceID().utf8))))
            }
            let reply = try await send(step, method, path, body, headers, turns: turns)
            turns = 1
            let error = reply.error
            if reply.status == 401 || error?.action == "application-registration" {
                // The new token is had with the same client: another one would end every login (docs/design/wire/adobe-pass.md#errors).
                guard refused == nil else {
                    throw .configuration(
                        reason: "\(step): status \(reply.status), a new access token is refused too\(said(error))")
                }
                refused = token
                continue
            }
            if error?.action == "retry" {
                tries += 1
                guard tries < AdobePassSettings.mostTries else { throw .timedOut(step: "\(step)\(said(error))") }
                await environment.pause(500_000_000 << UInt64(tries - 1))
                continue
            }
            return reply
        }
    }

    func said(_ error: AdobePassError?) -> String { error.map { ", \($0.code)" } ?? "" }

    /// The failure of an answer that is none of those its step expects.
    func failure(_ step: String, _ reply: AdobePassReply) -> GrantFailure {
        if reply.status >= 500, reply.error == nil {
            return .issuerUnavailable(retryAfterSeconds: nil, reason: "\(step): status \(reply.status)")
        }
        if reply.status >= 300 {
            return reply.error?.failure(step) ?? .configuration(reason: "\(step): status \(reply.status)")
        }
        return .issuerAnswerInvalid(reason: "\(step): not an answer to it")
    }

    // MARK: - One call

    /// - Parameters:
    ///   - isOnce: it must not arrive twice.
    ///   - turns: to wait for before it: 2 where another call follows that takes none.
    func send(
        _ step: String, _ method: String, _ path: String, _ body: Body, _ headers: [(String, String)],
        isOnce: Bool = false, turns: Int = 1
    ) async throws(GrantFailure) -> AdobePassReply {
        var headers = headers.map { (name: $0.0, value: $0.1) }
        headers.append(("X-Device-Info", settings.device.header))
        headers.append(("Accept", "application/json"))
        var bytes: [UInt8] = []
        switch body {
        case .none: break
        case .form(let members):
            var form = FormBody(capacity: members.reduce(16) { $0 + 3 * ($1.0.utf8.count + $1.1.utf8.count) + 2 })
            for (name, value) in members { form.member(name, value) }
            bytes = form.finish()
            headers.append(("Content-Type", Self.formType))
        case .json(let object):
            bytes = object
            headers.append(("Content-Type", "application/json"))
        }
        let call = IssuerCall(
            step: step, method: method, url: try settings.url(path), headers: headers, body: bytes,
            carriesPassword: isOnce)
        for attempt in 0... {
            var quota = settings.quota
            quota.calls = attempt == 0 ? turns : 1
            if quota.calls > 0 { try await environment.turn(quota) }
            let answer = try await environment.answer(to: call)
            guard answer.status == 429 else { return AdobePassReply(answer) }
            // The answer's body is a page, and it seldom says how long (docs/design/wire/adobe-pass.md#throttling).
            await environment.tell(.throttled(settings.quota))
            if attempt == 1 { break }
        }
        throw .issuerUnavailable(retryAfterSeconds: 1, reason: "\(step): throttled, status 429")
    }
}
