internal import Numbers

/// The assertion that the server has given this client to prove itself with.
struct OAMIssuedClient {
    let assertion: Secret
    /// The `client_assertion_type` that goes with it.
    let type: String
    /// Mobile clients: what renews the assertion, and the user assertion that came with it.
    let refreshToken: Secret?
    let userAssertion: Secret?
    /// Mobile clients: where the application profile says that tokens are.
    let tokenURL: IssuerURL?
    /// The server keeps the user assertion.
    let usesDeviceStore: Bool
    /// Nanoseconds from `material.obtainedAt`, as the server has said. Not the material's own life: the environment forgets what has ended,
    /// and with it what could renew it.
    let life: UInt64?
    /// The client in the environment's form.
    let material: LayerMaterial
}

// MARK: - As the environment keeps it

extension OAMIssuedClient {
    static let jwtBearer = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

    /// nil for anything that `material(_:)` does not make.
    init?(_ material: LayerMaterial) {
        guard let values = RecipeMaterial.decode(material.bytes)?["client"], let assertion = values["assertion"],
            let type = values["type"]
        else { return nil }
        self.init(
            assertion: assertion, type: type.text, refreshToken: values["refresh"], userAssertion: values["user"],
            tokenURL: values["token_url"].flatMap { IssuerURL($0.text) },
            usesDeviceStore: values["device_store"] != nil,
            life: values["life"].flatMap { ReceivedNumber($0.text)?.clamped(to: 0...UInt64.max) },
            material: material)
    }

    static func material(
        _ grant: AccessGrant, type: String, others: [String: Secret] = [:]
    ) -> LayerMaterial {
        var values = others.merging(["assertion": grant.token, "type": Secret(type)]) { $1 }
        values["life"] = grant.lifetime.map { Secret(String($0)) }
        return LayerMaterial(
            bytes: RecipeMaterial.encode(["client": values]), obtainedAt: grant.sentAt, lifetime: nil)
    }

    func isLive(at now: UInt64) -> Bool {
        life.map { now < material.obtainedAt || now - material.obtainedAt < $0 } ?? true
    }
}

// MARK: - For a flight

extension OAuth2Handshake {
    /// Runs a part of a flight with the client's proof; where the server refuses one that was kept, once more with a new one.
    func proven(
        _ trip: Trip, _ body: (Trip) async throws(GrantFailure) -> OAuth2Answer
    ) async throws(GrantFailure) -> OAuth2Answer {
        guard let issuance = settings.oracle?.issued else { return try await body(trip) }
        let first = try await issued(issuance, trip, unless: nil)
        let answer = try await body(trip.proven(by: first.client))
        guard answer.refusesClient, !first.isFresh else { return answer }
        let second = try await issued(issuance, trip, unless: first.client.material)
        return try await body(trip.proven(by: second.client))
    }

    /// The client as it stands, or a new one, and whether it was had in this flight.
    private func issued(
        _ issuance: OAMOAuthDialect.Issuance, _ trip: Trip, unless refused: LayerMaterial?
    ) async throws(GrantFailure) -> (client: OAMIssuedClient, isFresh: Bool) {
        var old = refused
        if old == nil, let standing = await trip.environment.durable(.registration) {
            let now = await trip.environment.now()
            if let client = OAMIssuedClient(standing), client.isLive(at: now) {
                return (client, false)
            }
            old = standing
        }
        let before = old
        let material = try await trip.environment.durable(.registration, unless: before) { () throws(GrantFailure) in
            switch issuance {
            case .forSecret: try await self.assertionForSecret(trip)
            case .mobile(let mobile):
                try await OAMMobileRegistration(handshake: self, mobile: mobile, trip: trip).material(
                    before: before.flatMap { OAMIssuedClient($0) })
            }
        }
        guard let client = OAMIssuedClient(material) else { throw .internal(reason: "a client assertion that is none") }
        return (client, true)
    }

    /// Client credentials without a scope bring a token for the client itself (docs/design/wire/oam-oauth.md#sim).
    private func assertionForSecret(_ trip: Trip) async throws(GrantFailure) -> LayerMaterial {
        var request = OAuth2Request(step: "client assertion")
        request.add("grant_type", "client_credentials")
        let answer = try await self.answer(request, trip)
        let grant = try answer.grant()
        guard answer.oracleText("oracle_tk_context").map({ $0 == "client_assertion" }) ?? true else {
            throw .configuration(
                reason: "client assertion: the server gave another kind of token; is a scope its default?")
        }
        return OAMIssuedClient.material(grant, type: answer.assertionType)
    }

    /// Adds the assertion that an issued client sends instead of a secret.
    func prove(_ client: OAMIssuedClient, in request: inout OAuth2Request) {
        request.add("client_id", settings.clientID)
        request.add("client_assertion_type", client.type)
        request.add("client_assertion", client.assertion)
    }
}

extension OAuth2Handshake.Trip {
    func proven(by client: OAMIssuedClient) -> Self {
        var trip = self
        trip.client = .issued(client)
        if let url = client.tokenURL { trip.endpoints.token = url }
        return trip
    }
}

// MARK: - Oracle's members of a token answer

extension OAuth2Answer {
    /// Read from the whole answer, which only steps of this kind keep.
    func oracleText(_ pointer: String...) -> String? { whole?.text(pointer) }

    /// The type that goes with a client assertion; what is no URI of visible characters is not believed.
    var assertionType: String {
        guard let text = oracleText("oracle_client_assertion_type"), (1...256).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return OAMIssuedClient.jwtBearer }
        return text
    }
}
