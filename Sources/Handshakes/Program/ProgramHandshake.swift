/// `program`: each token is what a run of the program writes. A program that fails is an issuer that is down.
struct ProgramHandshake: Handshake {
    /// For sentences.
    let path: String
    let format: ProgramAnswer.Format
    let world: GrantWorld

    var scheme: String { "program" }

    func acquire(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        let run = try await ProgramRun(environment, world)
        switch format {
        case .docker:
            let value = try run.answer.docker()
            guard value.count <= TokenAlphabet.longest else { throw ProgramAnswer.invalid("its answer is too long") }
            return AccessGrant(token: value, tokenType: "", lifetime: nil, sentAt: run.startedAt)
        case .token: return try bearer(try run.answer.token(), of: run)
        case .kubernetes: return try bearer(try run.answer.kubernetes(), of: run)
        }
    }

    private func bearer(
        _ found: (token: Secret, lifetime: UInt64?), of run: ProgramRun
    ) throws(GrantFailure) -> AccessGrant {
        guard TokenAlphabet.visible.admits(found.token) else {
            throw ProgramAnswer.invalid("its token is too long, or not fit for a header")
        }
        var grant = AccessGrant(
            token: found.token, tokenType: "Bearer", lifetime: found.lifetime, sentAt: run.startedAt)
        if found.lifetime == nil, let times = JWTTimes(found.token), let expires = times.expires {
            // Where it says when it was made, a clock that differs from ours is reckoned with.
            guard times.issued != nil || expires > run.begun else { throw ProgramAnswer.invalid("its token is over") }
            grant.statedTimes = (times.issued, expires)
        }
        return grant
    }

    func injection(for token: [UInt8]) -> InjectedField {
        InjectedField(name: "Authorization", value: format == .docker ? token : Array("Bearer ".utf8) + token)
    }

    var explanation: [String] {
        let goes = format == .docker ? "Basic credentials, or as a Bearer token" : "a Bearer token"
        return ["runs \(path) for a credential, which goes out as \(goes)"]
    }
}

/// A run of an identity's program that has ended well.
struct ProgramRun {
    let answer: ProgramAnswer
    /// Nanoseconds of CLOCK_BOOTTIME.
    let startedAt: UInt64
    /// Seconds since 1970.
    let begun: Int64

    init(_ environment: any GrantEnvironment, _ world: GrantWorld) async throws(GrantFailure) {
        begun = world.wallSeconds
        startedAt = await environment.now()
        answer = try ProgramAnswer(try await environment.programAnswer(), begun: begun)
    }
}
