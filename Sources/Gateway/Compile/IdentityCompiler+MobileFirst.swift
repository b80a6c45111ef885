internal import Configuration
internal import Handshakes
internal import Tokens

/// The settings of `mobilefirst`, from the configuration's words to the handshake's.
extension IdentityCompiler {
    func settings(
        _ configured: ConfiguredMobileFirst, _ identity: ConfiguredIdentity
    ) throws(Handshakes.GrantFailure) -> MobileFirstSettings {
        guard let base = IssuerURL(configured.base) else { throw .configuration(reason: "base: not a URL") }
        var settings = MobileFirstSettings(
            base: base, azBase: configured.azBase.flatMap { IssuerURL($0) }, client: client(configured, identity))
        settings.allowedScopes = configured.allowedScopes
        settings.replaysAllConflicts = configured.conflictReplay == .all
        return settings
    }

    private func client(
        _ configured: ConfiguredMobileFirst, _ identity: ConfiguredIdentity
    ) -> MobileFirstSettings.Client {
        guard configured.mode == .registered else { return .confidential(id: configured.clientID ?? "") }
        var device = MobileFirstSettings.Device(
            application: configured.application ?? "", account: configured.deviceAccount(identity.name))
        device.version = configured.applicationVersion
        device.platform = configured.platform
        device.id = configured.device.id
        device.system = configured.device.platform
        device.hardware = configured.device.hardware
        device.name = configured.device.name
        device.answers = configured.answers.map { answer in
            .init(
                check: answer.check,
                fields: answer.fields.map { .init(name: $0.name, secret: answer.secretName($0.name)) })
        }
        // Where a check allows one attempt, one is always the last.
        device.leastAttempts = identity.token.allowLastAttempt ? 1 : configured.minRemainingAttempts
        device.cooldown = configured.cooldown.map { Int(clamping: $0.wholeNanoseconds / 1_000_000_000) }
        device.redirectURI = configured.redirectURI
        device.audience = configured.audience
        device.assertionLifetime = Int64(clamping: configured.assertionLifetime.wholeNanoseconds / 1_000_000)
        device.usesStandardBase64 = configured.jwsEncoding == .base64
        return .registered(device)
    }
}

// What the keeper has to know beyond the handshake.
extension ConfiguredMobileFirst {
    /// With the identity's name: two devices of one application must not lift each other's marks.
    func deviceAccount(_ identity: String) -> String { "\(application ?? "")/\(identity)" }

    func account(identity: String) -> Account {
        let user = mode == .registered ? deviceAccount(identity) : clientID ?? ""
        let origin = mode == .registered ? base.origin : (azBase ?? base).origin
        return Account(issuer: Tokens.Origin(origin), user: ByteString(user))
    }

    /// Each check counts for itself: that one was passed says nothing of the secret of another.
    func attemptAccounts(identity: String) -> [String: Account] {
        let device = MobileFirstSettings.Device(application: "", account: deviceAccount(identity))
        var accounts: [String: Account] = [:]
        for answer in answers {
            accounts[MobileFirstSettings.Answer.attemptKey(answer.check)] = Account(
                issuer: Tokens.Origin(base.origin), user: ByteString(device.account(of: answer.check)))
        }
        return accounts
    }

    /// The secrets of one answer, read as one value: it changes when any of them does.
    func addAttemptSecrets(to sources: inout [String: SecretSource]) {
        for answer in answers {
            let parts = answer.fields.compactMap { sources[answer.secretName($0.name)] }
            sources[MobileFirstSettings.Answer.attemptKey(answer.check)] = joined(parts)
        }
    }
}

/// Several secrets as one, so that no two lists of them are the same bytes.
func joined(_ parts: [SecretSource]) -> SecretSource {
    {
        var bytes: [UInt8] = []
        for part in parts {
            try part().withBytes { secret in
                bytes += Array(String(secret.count).utf8) + [UInt8(ascii: ":")]
                bytes += Array(secret)
            }
        }
        return Secret(taking: &bytes)
    }
}
