// The device authorization grant (RFC 8628): a person enters a code on any device, and we ask until that is done.
extension OAuth2Handshake {
    func deviceLogin(
        _ trip: Trip, _ stepUp: StepUp?, _ dialogue: any LoginDialogue
    ) async throws(GrantFailure) -> OAuth2Answer {
        let offer = try await deviceOffer(trip, stepUp)
        await dialogue.show(
            LoginPrompt(
                url: offer.verificationURI, completeURL: offer.completeURI, code: offer.userCode,
                deadline: offer.deadline))
        var request = OAuth2Request(step: "login")
        request.add("grant_type", "urn:ietf:params:oauth:grant-type:device_code")
        request.add("device_code", offer.deviceCode)
        request.members += trip.target.members.filter { $0.name == "resource" || $0.name == "audience" }
        var pace = PollingPace(interval: offer.interval)
        while true {
            let now = await trip.environment.now()
            guard now + pace.interval < offer.deadline else {
                if now < offer.deadline { try await dialogue.pause(offer.deadline - now) }
                throw .loginExpired
            }
            try await dialogue.pause(pace.interval)
            let answer: OAuth2Answer
            do throws(OAuth2SendFailure) {
                answer = try await ask(request, trip)
            } catch {
                // A secret of ours that cannot be read is not mended by waiting; a connection is.
                guard case .fault = error else { throw error.grantFailure(step: "login") }
                pace.lost()
                await dialogue.progress("the issuer does not answer; asking again")
                continue
            }
            switch answer.error {
            case nil where !answer.isJudged:
                pace.lost()
                await dialogue.progress("the issuer is busy; asking again")
            case "authorization_pending": await dialogue.progress("waiting for the code to be entered")
            case "slow_down":
                pace.slowDown()
                await dialogue.progress("waiting for the code to be entered")
            case "expired_token": throw .loginExpired
            case "access_denied": throw .policyDenied(reason: "login: refused, access_denied")
            default: return answer
            }
        }
    }

    private func deviceOffer(_ trip: Trip, _ stepUp: StepUp?) async throws(GrantFailure) -> DeviceOffer {
        guard let endpoint = trip.endpoints.device else {
            throw .configuration(reason: "login: the issuer names no device_authorization_endpoint")
        }
        var request = trip.target
        for (name, value) in stepUp?.members ?? [] { request.add(name, value) }
        request.tokenEndpoint = trip.endpoints.token
        var failure = GrantFailure.internal(reason: "no proof of the client")
        for attempt in 0..<proofs(of: trip.client, besides: trip.endpoints.token) {
            let answer: IssuerAnswer
            do throws(OAuth2SendFailure) {
                answer = try await send(
                    request, to: endpoint, as: trip.client, attempt: attempt, environment: trip.environment)
            } catch {
                throw error.grantFailure(step: "login")
            }
            if answer.status == 200 { return try DeviceOffer(answer) }
            // Errors are those of the token endpoint (RFC 8628 §3.2); a success cannot be meant.
            let refusal = OAuth2Answer(answer, step: "login")
            guard case .failure(let said) = refusal.result else {
                throw .issuerAnswerInvalid(reason: "login: status \(answer.status)")
            }
            failure = said
            guard refusal.refusesClient else { break }
            if let advice = basicAdvice(for: trip.client, on: refusal) {
                var advised = refusal
                advised.advise(advice)
                if case .failure(let said) = advised.result { failure = said }
            }
        }
        throw failure
    }
}

/// How often the token endpoint is asked (RFC 8628 §3.5). Nanoseconds.
struct PollingPace: Equatable {
    private(set) var interval: UInt64

    static let most: UInt64 = 60 * 1_000_000_000

    init(interval: UInt64) { self.interval = min(max(interval, 1_000_000_000), Self.most) }

    /// For this and all that follow.
    mutating func slowDown() { interval = min(interval + 5_000_000_000, Self.most) }

    /// No answer, or none that says anything.
    mutating func lost() { interval = min(interval * 2, Self.most) }
}

/// RFC 8628 §3.2.
struct DeviceOffer {
    let deviceCode: Secret
    let userCode: String
    let verificationURI: String
    let completeURI: String?
    /// Nanoseconds of CLOCK_BOOTTIME.
    let deadline: UInt64
    /// Nanoseconds.
    let interval: UInt64

    /// The longest that a person is waited for, in seconds.
    static let patience: UInt64 = 1800

    init(_ answer: IssuerAnswer) throws(GrantFailure) {
        let object = try answer.object("login")
        guard let code = object.string("device_code").map({ Secret($0) }), TokenAlphabet.fieldValue.admits(code) else {
            throw .issuerAnswerInvalid(reason: "login: no device_code, or one that is not printable ASCII")
        }
        // The code goes to a terminal, where other characters could say anything.
        guard let userCode = object.string("user_code"), (1...64).contains(userCode.utf8.count),
            userCode.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        else { throw .issuerAnswerInvalid(reason: "login: no user_code, or one that cannot be shown") }
        guard let page = (object.string("verification_uri") ?? object.string("verification_url")).flatMap(Self.page)
        else {
            throw .issuerAnswerInvalid(reason: "login: no verification_uri that is a URL")
        }
        deviceCode = code
        self.userCode = userCode
        verificationURI = page
        completeURI = (object.string("verification_uri_complete") ?? object.string("verification_url_complete"))
            .flatMap(Self.page)
        guard let life = try OAuth2Answer.lifetime(object["expires_in"], step: "login") else {
            throw .issuerAnswerInvalid(reason: "login: no expires_in")
        }
        deadline = answer.sentAt + min(life, Self.patience * 1_000_000_000)
        interval = (try? OAuth2Answer.lifetime(object["interval"])) ?? 5_000_000_000
    }

    private static func page(_ text: String) -> String? {
        text.utf8.count <= 2048 && IssuerURL(text) != nil ? text : nil
    }
}
