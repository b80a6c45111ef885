internal import DataPath
internal import Handshakes
internal import Telemetry
internal import Tokens

/// Challenges that only a person's login of another kind answers (RFC 9470). The token that was sent stays, since other routes take it, and no
/// other token of the same login would be taken here: none is asked for.
extension Keeper {
    /// - Returns: the word on the challenge; nil where it is an ordinary refusal.
    func stepUpAnswer(to report: ChallengeOfRequest) -> TokenAnswer? {
        guard let wish = report.challenge.stepUp, let sent = report.sent, let token = tokens[sent.slot],
            token.identity.interactive != nil
        else { return nil }
        // A token that has taken this one's place may be of a login that was made since.
        guard token.machine.servedGeneration(at: now) == sent.generation else { return nil }
        let digest = token.key.digest
        guard let asked = wish.login, catalogue.isConfigured(digest) else {
            log(.challengeRefused, token, because: wish.words)
            return .refused(wish.words)
        }
        if logins.stepUps.isMet(asked, by: digest, at: now) {
            let words = wish.words + ", although the last login was made for that"
            log(.challengeRefused, token, because: words)
            return .refused(words)
        }
        let name = token.identity.plan.name
        let command = "cardea login \(name)"
        logins.stepUps.keep { catalogue.isConfigured($0) }
        if logins.stepUps.ask(asked, of: digest, at: now) {
            events.warn(
                "login needed",
                [
                    token.identity.logged, LogField("reason", .name(wish.words)),
                    LogField("advice", .name("run: \(command)")),
                ])
            for identity in catalogue.same(as: token.identity) { identity.toldLogin = loginNeed(of: identity)?.word }
        }
        token.identity.negativeHits += 1
        return .fault(
            Fault(.interactionRequired, receivedStatus: 401, detail: "\(wish.words); a person has to run: \(command)"))
    }
}
