internal import HTTP1
internal import Numbers

/// The stronger authentication that upstreams may ask of an identity's person (`step_up`, RFC 9470).
struct OAuth2StepUp: Sendable, Equatable {
    /// Values of `acr` that may be asked for.
    var acrValues: [String] = []
    /// The smallest `max_age` that may be asked for, in seconds; nil: none.
    var leastAge: UInt32?

    /// The part of a demand that may be asked for; nil: it may not. Of several classes one is enough to the resource, so those that are allowed
    /// are asked for; an age that is too small cannot be met by a larger one.
    func limited(_ asked: StepUp) -> StepUp? {
        var limited = asked
        limited.acrValues = asked.acrValues.filter { acrValues.contains($0) }
        if let age = asked.maxAge {
            guard let leastAge, age >= leastAge else { return nil }
        }
        guard limited.acrValues.isEmpty == asked.acrValues.isEmpty, !limited.isEmpty else { return nil }
        return limited
    }
}

// MARK: - The challenge

extension OAuth2Handshake {
    /// The meaning of `insufficient_user_authentication`, the error of this challenge, to the identity.
    func stepUpWish(_ challenge: AuthChallenge) -> StepUpWish {
        guard let asked = StepUp(challenge) else {
            return StepUpWish(nil, refused: "in words that cannot be used")
        }
        guard needsPerson else {
            return StepUpWish(asked, refused: "and the identity's tokens come from no person's login")
        }
        guard !asked.isEmpty else { return StepUpWish(asked, refused: "and does not say in which") }
        guard let login = settings.stepUp?.limited(asked) else {
            return StepUpWish(asked, refused: "which 'step_up' of the identity does not allow")
        }
        return StepUpWish(login)
    }

    /// The sentence of `explain`; nil where the setting has no part in it.
    var stepUpExplanation: String? {
        guard needsPerson else { return nil }
        guard let stepUp = settings.stepUp else {
            return "an upstream that wants its user authenticated in another way (RFC 9470) is refused: no step_up"
        }
        let values = stepUp.acrValues.isEmpty ? nil : "acr \(stepUp.acrValues.joined(separator: " or "))"
        let age = stepUp.leastAge.map { "a max_age of \($0) s or more" }
        return "an upstream may ask for a login with "
            + [values, age].compactMap(\.self).joined(separator: ", and with ")
    }
}

// MARK: - The login

extension OAuth2Handshake {
    /// Seconds by which the moments in an ID token may disagree with one another.
    private static let leeway: UInt32 = 60

    /// The demand as the request for authorization carries it. An age that the operator asks of every login counts where it is smaller.
    func stepUp(of wanted: Wanted) -> StepUp? {
        guard var stepUp = wanted.stepUp.flatMap({ settings.stepUp?.limited($0) }) else { return nil }
        for (name, value) in settings.loginParameters where name == "max_age" && stepUp.maxAge != nil {
            stepUp.join(StepUp(maxAge: StepUp.age(Array(value.utf8))))
        }
        return stepUp
    }

    /// Further parameters of the request for authorization. The operator's own stay unless the demand has them.
    func loginParameters(_ stepUp: StepUp?) -> [(name: String, value: String)] {
        let asked = stepUp?.members ?? []
        return settings.loginParameters.filter { own in !asked.contains { $0.name == own.name } } + asked
    }

    /// The authentication that the ID token tells of. The token came straight from the token endpoint. Both moments in it are of the issuer's
    /// clock, so that ours is not asked.
    /// - Throws: `.policyDenied` where it is not what was asked for (OpenID Connect Core §3.1.3.7 points 12 and 13).
    func authenticated(_ token: Secret?, for stepUp: StepUp) throws(GrantFailure) -> Authenticated {
        var told = Authenticated(acrValues: stepUp.acrValues, age: stepUp.maxAge.map { _ in 0 }, isTold: false)
        guard let token else { return told }
        guard let claims = JWTPayload.object(token) else {
            throw .issuerAnswerInvalid(reason: "login: id_token is no JWT")
        }
        let acr = claims.string("acr")
        told.isTold = acr != nil || stepUp.acrValues.isEmpty
        if let acr, !stepUp.acrValues.isEmpty {
            guard stepUp.acrValues.contains(acr) else {
                throw .policyDenied(
                    reason: "login: the issuer authenticated the person, but not as acr_values asked (id_token: acr)")
            }
            told.acrValues = [acr]
        }
        if let age = stepUp.maxAge {
            guard let issued = Self.moment(claims["iat"]), let authenticated = Self.moment(claims["auth_time"]) else {
                throw .issuerAnswerInvalid(
                    reason: "login: id_token has no auth_time or no iat, although max_age was asked for")
            }
            let passed = authenticated.left(at: issued) > .zero ? TimeSpan.zero : issued.left(at: authenticated)
            guard passed <= TimeSpan(age, .seconds) + TimeSpan(Self.leeway, .seconds) else {
                throw .policyDenied(
                    reason: "login: the person was authenticated longer ago than max_age allows (id_token: auth_time)")
            }
            told.age = ReceivedNumber(passed.seconds).clamped(to: 0...age)
        }
        return told
    }

    private static func moment(_ member: AnswerObject.Member?) -> WallTime? {
        switch member {
        case .integer(let seconds)?: WallTime(seconds: seconds)
        case .number(let seconds)?: ReceivedNumber(wholePartOf: seconds).map { WallTime(seconds: $0) }
        default: nil
        }
    }
}

extension StepUp {
    /// Members of a request for authorization (OpenID Connect Core §3.1.2.1).
    var members: [(name: String, value: String)] {
        (acrValues.isEmpty ? [] : [("acr_values", acrValues.joined(separator: " "))])
            + (maxAge.map { [("max_age", "\($0)")] } ?? [])
    }
}
