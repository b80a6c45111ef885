internal import Configuration

// Authorization of one resource, and the media token that comes with it
// (docs/design/wire/adobe-pass.md#authorize).
extension AdobePassRun: AdobePassAPI {
    func mediaToken(for resource: String) async throws(GrantFailure) -> Secret {
        guard let profile = await environment.session() else { throw Self.nobodyLoggedIn }
        let reply: AdobePassReply
        do throws(GrantFailure) {
            reply = try await call("authorize", "POST", settings.authorize, .json(decisionBody([resource])))
            guard reply.status == 200 else { throw failure("authorize", reply) }
            return try mediaToken(in: reply, for: resource)
        } catch {
            if case .interactionRequired = error { await forget(profile) }
            throw error
        }
    }

    static let nobodyLoggedIn = GrantFailure.interactionRequired(reason: "nobody has logged in at the provider")

    func decisionBody(_ resources: [String]) -> [UInt8] {
        var body: [UInt8] = Array("{\"resources\":[".utf8)
        for (index, resource) in resources.enumerated() {
            if index > 0 { body.append(UInt8(ascii: ",")) }
            var one = JSONBody(capacity: resource.utf8.count * 6 + 16)
            one.member("r", resource)
            body += one.finish().dropFirst(5).dropLast()
        }
        return body + Array("]}".utf8)
    }

    private func mediaToken(in reply: AdobePassReply, for resource: String) throws(GrantFailure) -> Secret {
        guard let decisions = reply.tree?.items(["decisions"]),
            let decision = decisions.first(where: { $0.text(["resource"]) == resource }),
            let isAuthorized = decision.flag(["authorized"])
        else { throw .issuerAnswerInvalid(reason: "authorize: no decision on the resource") }
        guard isAuthorized else {
            throw AdobePassError(decision, ["error"])?.failure("authorize")
                ?? .policyDenied(reason: "authorization_denied")
        }
        return try mediaToken("authorize", decision.text(["token", "serializedToken"]))
    }

    func mediaToken(_ step: String, _ token: String?) throws(GrantFailure) -> Secret {
        guard let token else { throw .issuerAnswerInvalid(reason: "\(step): a permit without a media token") }
        guard token.isHeaderSafe else {
            throw .issuerAnswerInvalid(reason: "\(step): a media token that cannot be sent")
        }
        return Secret(token)
    }

    /// Asks whether the configured resources would be authorized (docs/design/wire/adobe-pass.md#preauthorize).
    func preauthorize() async throws(GrantFailure) -> [IdentityFact] {
        let reply = try await call(
            "preauthorize", "POST", settings.preauthorize, .json(decisionBody(settings.preauthorized)))
        guard reply.status == 200, let decisions = reply.tree?.items(["decisions"]) else {
            throw failure("preauthorize", reply)
        }
        return advice(decisions, named: "resource")
    }

    /// - Parameter name: the member that says of which resource a decision is.
    func advice(_ decisions: [JSONTree], named name: String) -> [IdentityFact] {
        settings.preauthorized.map { resource in
            let decision = decisions.first { $0.text([name]) == resource }
            let isAuthorized = decision?.flag(["authorized"])
            let code = decision.flatMap { AdobePassError($0, ["error"])?.code }
            let word = isAuthorized == true ? "would be authorized" : "would be denied" + (code.map { ": \($0)" } ?? "")
            return IdentityFact(name: resource.printable(upTo: 80), value: isAuthorized == nil ? "not decided" : word)
        }
    }

    /// The server does not know the login any more.
    func forget(_ profile: LayerMaterial) async {
        _ = try? await environment.session(SessionClaim(refused: profile, canGrantFully: false)) {
            (_, _) throws(GrantFailure) in throw Self.nobodyLoggedIn
        }
    }
}
