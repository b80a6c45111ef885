/// What a client proves itself with, read for one flight.
enum OAuth2Client {
    /// `none`: only its name.
    case named
    case secret(Secret)
}

// MARK: - Client authentication (RFC 6749 §2.3.1)

extension OAuth2Handshake {
    /// Reads what the client proves itself with.
    nonisolated(nonsending) func client(_ ledger: any GrantLedger) async throws(GrantFailure) -> OAuth2Client {
        switch settings.clientAuth {
        case .none: return .named
        case .basic, .post: return .secret(try await textSecret("client_secret", ledger))
        }
    }

    /// Puts the proof into form and headers; never more than one (RFC 6749 §2.3).
    func prove(
        _ client: OAuth2Client, in request: inout OAuth2Request, _ headers: inout [(name: String, value: String)]
    ) {
        switch client {
        case .named: request.add("client_id", settings.clientID)
        case .secret(let secret) where settings.clientAuth == .post:
            request.add("client_id", settings.clientID)
            request.add("client_secret", secret)
        case .secret(let secret):
            headers.append((name: "Authorization", value: basicCredentials(secret)))
        }
    }

    /// A secret that is text, as everything is that goes into a form or a header.
    nonisolated(nonsending) func textSecret(
        _ name: String, _ ledger: any GrantLedger
    ) async throws(GrantFailure) -> Secret {
        let secret = try await ledger.secret(name)
        guard secret.isText, !secret.isEmpty else {
            throw .secretUnusable(name: name, reason: "empty, not UTF-8, or with a control character")
        }
        return secret
    }

    // Id and secret are encoded separately, so that a colon in either cannot shift the border.
    private func basicCredentials(_ secret: Secret) -> String {
        var user: [UInt8] = []
        var password: [UInt8] = []
        password.reserveCapacity(3 * secret.count)
        switch settings.basicEncoding {
        case .form:
            // A space as %20, which is a space to those that undo the form encoding and to those that undo only percents.
            for byte in settings.clientID.utf8 { user.appendFormEncoded(byte, space: "%20") }
            secret.withBytes { for byte in $0 { password.appendFormEncoded(byte, space: "%20") } }
        case .raw:
            user = Array(settings.clientID.utf8)
            secret.withBytes { password.append(contentsOf: $0) }
        }
        var credentials = BasicHandshake.credentials(user: user, password: Secret(taking: &password))
        defer { credentials.wipe() }
        return "Basic " + String(decoding: credentials, as: UTF8.self)
    }
}
