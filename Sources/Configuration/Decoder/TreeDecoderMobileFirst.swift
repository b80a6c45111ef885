/// `mobilefirst`: what its keys mean together.
extension TreeDecoder {
    mutating func mobileFirst(_ reader: BlockReader, network: Network, place: String) -> MobileFirstHandshake {
        let missing = ServiceURL(origin: Origin(scheme: .https, host: "", port: 443), path: "/", query: nil)
        let device = reader.inside("device", Keys.mobileFirstDevice)
        let handshake = MobileFirstHandshake(
            base: reader.httpURL("base") ?? missing, azBase: reader.httpURL("az_base"), mode: reader.word("mode"),
            clientID: reader.text("client_id"), clientSecret: reader.secret("client_secret"),
            application: reader.text("application"), applicationVersion: reader.text("application_version"),
            platform: reader.text("platform") ?? "web",
            device: .init(
                id: device.text("id"), platform: device.text("platform") ?? "", hardware: device.text("hardware") ?? "",
                name: device.text("name")),
            answers: answers(reader, place: place),
            minRemainingAttempts: reader.integer("min_remaining_attempts") ?? 2,
            cooldown: reader.has("cooldown") ? reader.duration("cooldown") : nil,
            allowedScopes: reader.texts("allowed_scopes") ?? [], conflictReplay: reader.word("conflict_replay"),
            redirectURI: reader.text("redirect_uri"), audience: reader.text("audience") ?? "",
            assertionLifetime: reader.duration("assertion_lifetime"), jwsEncoding: reader.word("jws_encoding"))
        guard reader.node != nil else { return handshake }
        for key in ["base", "az_base"] {
            guard let url = reader.httpURL(key) else { continue }
            requireSafe(url, network, reader.mark(key), "'\(key)' of \(place)")
            if url.query != nil { error("'\(key)' of \(place) must not have a query", reader.mark(key)) }
        }
        switch handshake.mode {
        case .confidential: checkConfidential(handshake, reader, place: place)
        case .registered: checkRegistered(handshake, reader, place: place)
        }
        return handshake
    }

    private func answers(_ reader: BlockReader, place: String) -> [MobileFirstHandshake.CheckAnswer] {
        (reader.entry("answers")?.value.map ?? []).map { check in
            let fields = (check.value.map ?? []).compactMap { field in
                field.value.scalar.flatMap { try? SecretReference(text: $0.text) }.map {
                    (name: field.key, value: $0)
                }
            }
            return .init(check: check.key, fields: fields)
        }
    }

    private mutating func checkConfidential(
        _ handshake: MobileFirstHandshake, _ reader: BlockReader, place: String
    ) {
        for key in ["client_id", "client_secret"] where reader.lacks(key) {
            error("\(place) needs '\(key)' in 'mode: confidential'", reader.mark)
        }
        let others = [
            "application", "application_version", "platform", "device", "answers", "min_remaining_attempts", "cooldown",
            "redirect_uri", "audience", "assertion_lifetime", "jws_encoding",
        ]
        for key in reader.written(others) {
            error("'\(key)' of \(place) goes only with 'mode: registered'", reader.mark(key))
        }
        guard let id = handshake.clientID else { return }
        if id.contains(":") || !id.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) {
            error("'client_id' of \(place) must be ASCII without a colon", reader.mark("client_id"))
        }
        // What development servers ship with: anybody can use it.
        if ["test", "admin", "push"].contains(id), !handshake.base.origin.isLoopback {
            error(
                "'client_id: \(id)' of \(place) is a client that the server ships with; make one of its own in the console",
                reader.mark("client_id"))
        }
    }

    private mutating func checkRegistered(_ handshake: MobileFirstHandshake, _ reader: BlockReader, place: String) {
        for key in reader.written(["client_id", "client_secret"]) {
            error(
                "'\(key)' of \(place) goes only with 'mode: confidential'; a registered client is given its id",
                reader.mark(key))
        }
        if reader.lacks("application") { error("\(place) needs 'application' in 'mode: registered'", reader.mark) }
        if handshake.platform != "web", reader.lacks("application_version") {
            error(
                "\(place) needs 'application_version': an application for \(handshake.platform) registers with one",
                reader.mark("platform"))
        }
        if let cooldown = handshake.cooldown, cooldown > .seconds(300) {
            error("'cooldown' of \(place) must be at most 5m", reader.mark("cooldown"))
        }
        if handshake.assertionLifetime > .seconds(3600) {
            error("'assertion_lifetime' of \(place) must be at most 1h", reader.mark("assertion_lifetime"))
        }
        for answer in handshake.answers {
            if let entry = reader.entry("answers")?.value[answer.check], entry.value.map?.isEmpty == true {
                error(
                    "the answer to '\(Quoted.short(answer.check))' in \(place) has no field: an empty one would cost an attempt",
                    entry.mark)
            }
            if ["appAuthenticity", "directUpdate", "clockSynchronization", "wl_remoteDisableRealm"]
                .contains(answer.check), let entry = reader.entry("answers")?.value[answer.check]
            {
                error("'\(answer.check)' in \(place) is a check that no configured answer can pass", entry.mark)
            }
        }
    }

    /// The server tells devices apart by their registration, and that by everything but secrets: two users must not share one.
    mutating func checkDevices() {
        var known: [[UInt8]: String] = [:]
        for identity in identities.all {
            guard case .mobileFirst(let handshake) = identity.handshake, handshake.mode == .registered else { continue }
            if let other = known.updateValue(identity.name, forKey: identity.canonicalForm) {
                error(
                    "identity '\(identity.name)' differs from '\(other)' at most in its secrets, so both would be one device; give each its own 'device: {id: …}'",
                    identity.mark)
            }
        }
    }
}
