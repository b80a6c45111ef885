internal import Octets

/// Challenges and their answers (docs/design/wire/mobilefirst.md#challenges), by the rules that keep accounts from being locked
/// (docs/design/wire/mobilefirst.md#attempts).
extension MobileFirstRun {
    /// An answer on its way, with the attempts that the server said were left before it.
    private struct Sent {
        let answer: MobileFirstSettings.Answer
        let attempts: MobileFirstAnswer.Challenge.Attempts
    }

    /// The answers and the notice that go with the next call.
    private struct Reply {
        var checks: [Sent] = []
        /// The id of a notice, acknowledged.
        var notice: [UInt8]?
        /// By the name of the field's secret.
        var secrets: [String: Secret] = [:]

        var isEmpty: Bool { checks.isEmpty && notice == nil }
    }

    static let mostRounds = 5
    private static let notices = "wl_remoteDisableRealm"

    /// - Returns: the configured checks that were passed.
    func preauthorize(_ client: MobileFirstClient) async throws(GrantFailure) -> Outcome<Set<String>> {
        var reply = Reply()
        var answered: Set<String> = []
        var passed: Set<String> = []
        let configured = Set(device.answers.map(\.check))
        for _ in 0..<Self.mostRounds {
            let (answer, isAfterConflict) = try await ask(client, reply)
            learnClock(answer)
            let refused = await settle(reply.checks, answer, isAfterConflict: isAfterConflict)
            passed.formUnion(configured.intersection(answer.successes))
            switch answer.meaning {
            case .granted:
                passed.formUnion(reply.checks.map(\.answer.check))
                return .done(passed)
            case .unknownClient: return .unknownClient
            case .conflict: throw .issuerUnavailable(retryAfterSeconds: nil, reason: "preauthorize: conflicts")
            case .other(let failure, _): throw failure
            case .failed: throw failure(of: answer)
            case .challenged: break
            }
            guard refused.isEmpty else {
                throw .credentialRejected(
                    reason: "preauthorize: the answer to \(MobileFirstAnswer.shown(refused)) was refused")
            }
            // An answer that was not judged, for a conflict, may go once more; every other goes once.
            for sent in reply.checks where !isAfterConflict || !answer.asks(sent.answer.check) {
                answered.insert(sent.answer.check)
            }
            reply = try await prepare(answer, answered: answered)
        }
        await giveBack(reply)
        throw .interactionRequired(reason: "preauthorize: challenges after \(Self.mostRounds) rounds")
    }

    /// A check that failed is not tried again by itself (docs/design/wire/mobilefirst.md#answer-rule-6).
    private func failure(of answer: MobileFirstAnswer) -> GrantFailure {
        let reason = "preauthorize: \(MobileFirstAnswer.shown(answer.failures)) failed"
        if answer.failures.contains(Self.notices) {
            return .interactionRequired(reason: "\(reason): the server has disabled the application")
        }
        guard let cooldown = device.cooldown else { return .credentialRejected(reason: reason) }
        return .issuerUnavailable(retryAfterSeconds: cooldown, reason: reason)
    }

    /// Used for times of our own assertions to this very server: who can change it on the way can change those, too.
    private func learnClock(_ answer: MobileFirstAnswer) {
        guard let time = answer.serverTime else { return }
        let offset = time - handshake.world.wallMilliseconds()
        if abs(offset) <= 86_400_000 { clockOffset = offset }
    }
}

// MARK: - Preparing an answer

extension MobileFirstRun {
    /// The answers to all that is asked, their attempts booked; or, where one cannot be given, none
    /// (docs/design/wire/mobilefirst.md#answer-rule-2, docs/design/wire/mobilefirst.md#answer-rule-4).
    private func prepare(_ asked: MobileFirstAnswer, answered: Set<String>) async throws(GrantFailure) -> Reply {
        var reply = Reply()
        var missing: [String] = []
        for (check, challenge) in asked.challenges {
            if check == Self.notices {
                guard let notice = challenge.notice else {
                    throw .interactionRequired(reason: "preauthorize: the server has disabled the application")
                }
                reply.notice = notice
                continue
            }
            guard let answer = device.answers.first(where: { $0.check == check }) else {
                missing.append(check)
                continue
            }
            guard !answered.contains(check) else {
                throw .credentialRejected(
                    reason: "preauthorize: \(MobileFirstAnswer.shown(check)) asks again for what it was given")
            }
            reply.checks.append(Sent(answer: answer, attempts: challenge.attempts))
        }
        guard missing.isEmpty else {
            throw .interactionRequired(
                reason: "preauthorize: no answer is configured for \(MobileFirstAnswer.shown(missing))")
        }
        for sent in reply.checks { try checkAttempts(sent) }
        let failed = asked.challenges.filter { $0.1.tellsError }.map(\.check)
        if !failed.isEmpty {
            await environment.tell(.concern("somebody has failed before at \(MobileFirstAnswer.shown(failed))"))
        }
        if reply.notice != nil {
            await environment.tell(.concern("the server has a notice for users of the application"))
        }
        try await book(&reply)
        return reply
    }

    private func checkAttempts(_ sent: Sent) throws(GrantFailure) {
        let check = MobileFirstAnswer.shown(sent.answer.check)
        switch sent.attempts {
        case .untold: break
        case .left(let count) where count >= device.leastAttempts: break
        case .left(let count):
            throw .credentialRejected(
                reason:
                    "preauthorize: not answered: \(check) has \(count) attempts left, min_remaining_attempts is \(device.leastAttempts)"
            )
        case .unreadable:
            throw .credentialRejected(
                reason: "preauthorize: not answered: how many attempts \(check) has left is unreadable")
        }
    }

    /// Secrets first: reading them may take long and fail, and a mark left behind by a crash in between costs a reset.
    private func book(_ reply: inout Reply) async throws(GrantFailure) {
        for sent in reply.checks {
            for field in sent.answer.fields {
                reply.secrets[field.secret] = try await environment.text(field.secret)
            }
        }
        var booked: [Sent] = []
        for sent in reply.checks {
            do throws(GrantFailure) {
                try await environment.spendAttempt(
                    user: device.account(of: sent.answer.check), secret: sent.answer.attemptKey)
                booked.append(sent)
            } catch {
                for other in booked { await environment.settleAttempt(.notSent, secret: other.answer.attemptKey) }
                throw error
            }
        }
    }

    private func giveBack(_ reply: Reply) async {
        for sent in reply.checks { await environment.settleAttempt(.notSent, secret: sent.answer.attemptKey) }
    }
}

// MARK: - Sending it

extension MobileFirstRun {
    /// After a conflict answers are not sent again blindly: a bare call tells what is left, and so whether they were judged.
    private func ask(
        _ client: MobileFirstClient, _ reply: Reply
    ) async throws(GrantFailure) -> (MobileFirstAnswer, isAfterConflict: Bool) {
        var call = call(client, reply)
        defer { call.body.wipe() }
        guard !reply.isEmpty else {
            return (MobileFirstAnswer(try await handshake.send(call, environment)), false)
        }
        do throws(IssuerFault) {
            let answer = MobileFirstAnswer(try await environment.send(call))
            guard case .conflict = answer.meaning else { return (answer, false) }
        } catch {
            // An answer without a reply counts as spent (docs/design/wire/mobilefirst.md#answer-rule-9).
            for sent in reply.checks {
                await environment.settleAttempt(
                    error.provablyUnsent ? .notSent : .unknown, secret: sent.answer.attemptKey)
            }
            throw GrantFailure(error, step: "preauthorize")
        }
        await environment.pause(ConflictPause.nanoseconds(after: 0))
        do throws(GrantFailure) {
            return (MobileFirstAnswer(try await handshake.send(self.call(client, Reply()), environment)), true)
        } catch {
            for sent in reply.checks { await environment.settleAttempt(.unknown, secret: sent.answer.attemptKey) }
            throw error
        }
    }

    private func call(_ client: MobileFirstClient, _ reply: Reply) -> IssuerCall {
        let size = reply.secrets.values.reduce(0) { $0 + 6 * $1.count + 256 }
        var body = JSONBody(capacity: 2048 + size + 2 * scope.utf8.count)
        body.member("client_id", client.id)
        body.member("scope", scope)
        if !reply.isEmpty {
            body.open("challengeResponse")
            for sent in reply.checks {
                body.open(sent.answer.check)
                for field in sent.answer.fields {
                    if let secret = reply.secrets[field.secret] { body.member(field.name, secret) }
                }
                body.close()
            }
            if let notice = reply.notice {
                body.open(Self.notices)
                body.member("messageId", String(decoding: notice, as: UTF8.self))
                body.close()
            }
            body.close()
        }
        return IssuerCall(
            step: "preauthorize", method: "POST", url: handshake.endpoints.preauthorize,
            headers: IssuerCall.jsonHeaders,
            body: body.finish(), carriesPassword: !reply.isEmpty)
    }
}

// MARK: - What became of it

extension MobileFirstAnswer {
    func asks(_ check: String) -> Bool { challenges.contains { $0.check == check } }
}

extension MobileFirstRun {
    /// Says of each answer what became of it.
    /// - Returns: the checks that refused theirs.
    private func settle(_ all: [Sent], _ answer: MobileFirstAnswer, isAfterConflict: Bool) async -> [String] {
        var refused: [String] = []
        for sent in all {
            let outcome = outcome(of: sent, answer, isAfterConflict: isAfterConflict)
            await environment.settleAttempt(outcome, secret: sent.answer.attemptKey)
            if outcome == .rejected || (outcome == .unknown && isAfterConflict) { refused.append(sent.answer.check) }
        }
        return refused
    }

    private func outcome(of sent: Sent, _ answer: MobileFirstAnswer, isAfterConflict: Bool) -> AttemptOutcome {
        let check = sent.answer.check
        switch answer.meaning {
        case .granted: return .accepted
        case .challenged:
            guard let asked = answer.challenges.first(where: { $0.check == check })?.1 else { return .accepted }
            guard isAfterConflict else { return .rejected }
            // If as many attempts are left as before, nobody has looked at the answer; if fewer are, somebody has; without a count it may have been.
            guard case .left(let before) = sent.attempts, case .left(let after) = asked.attempts else {
                return .unknown
            }
            return after < before ? .rejected : .notSent
        case .failed:
            if answer.failures.contains(check) { return .rejected }
            return answer.successes.contains(check) ? .accepted : .unknown
        case .unknownClient: return isAfterConflict ? .unknown : .notSent
        case .conflict: return .unknown
        case .other(_, let judged): return judged || isAfterConflict ? .unknown : .notSent
        }
    }
}
