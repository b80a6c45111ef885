internal import Octets
internal import TLS

/// A registered client: the id that the server gave it, and the key that it signs with.
struct MobileFirstClient {
    let id: String
    let key: SigningKey
    /// The client in the environment's form.
    let material: LayerMaterial
}

extension MobileFirstClient {
    /// nil for anything that `material(id:key:)` does not make.
    init?(_ material: LayerMaterial) {
        guard let values = RecipeMaterial.decode(material.bytes)?["client"] else { return nil }
        self.init(values, material)
    }

    init?(_ values: [String: Secret], _ material: LayerMaterial) {
        guard let id = values["id"]?.text, Self.isID(id),
            var file = values["key"]?.withBytes({ Array($0) })
        else { return nil }
        defer { file.wipe() }
        guard let key = try? SigningKey(file: file) else { return nil }
        self.init(id: id, key: key, material: material)
    }

    static func values(id: String, key: Secret) -> [String: Secret] { ["id": Secret(id), "key": key] }

    /// The id becomes part of URLs of ours.
    static func isID(_ text: String) -> Bool {
        (1...256).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0.isLetterOrDigit || "-._~".utf8.contains($0) } && text != "." && text != ".."
    }
}

/// A session is what a login leaves: who is logged in, and which checks were passed. It spares no login, only the server knows how long they
/// last; it is what a logout is made with.
struct MobileFirstSession {
    let client: MobileFirstClient
    var checks: Set<String>
    let obtainedAt: UInt64
}

extension MobileFirstSession {
    init?(_ material: LayerMaterial) {
        guard let values = RecipeMaterial.decode(material.bytes), let inner = values["client"],
            let client = MobileFirstClient(inner, material)
        else { return nil }
        self.init(client: client, checks: Set((values["checks"] ?? [:]).keys), obtainedAt: material.obtainedAt)
    }

    /// With the checks of the session before, as far as it was the same client's: those that still hold are not named again.
    func joined(with standing: LayerMaterial?) -> LayerMaterial {
        var all = checks
        if let before = standing.flatMap({ MobileFirstSession($0) }), before.client.id == client.id {
            all.formUnion(before.checks)
        }
        var values = RecipeMaterial.decode(client.material.bytes) ?? [:]
        values["checks"] = Dictionary(uniqueKeysWithValues: all.map { ($0, Secret([])) })
        return LayerMaterial(bytes: RecipeMaterial.encode(values), obtainedAt: obtainedAt, lifetime: nil)
    }
}

// MARK: - Signed data

extension MobileFirstClient {
    /// A client assertion (docs/design/wire/mobilefirst.md#assertion).
    /// - Parameter code: that it goes with; nil for calls that have none.
    func assertion(_ run: MobileFirstRun, code: String?) throws(GrantFailure) -> String {
        let now = run.handshake.world.wallMilliseconds() + run.clockOffset
        var claims = JSONBody(capacity: 1024)
        claims.member("iss", run.device.issuer)
        claims.member("sub", id)
        if let code {
            claims.member("jti", code)
            claims.member("aud", run.device.audience)
        } else {
            claims.null("jti")
            claims.null("aud")
        }
        // Milliseconds, other than in RFC 7519.
        claims.member("iat", now)
        claims.member("exp", now + run.device.assertionLifetime)
        let parts = try Self.sign(claims.finish(), key, id: id, run.device)
        return [parts.header, parts.payload, parts.signature].joined(separator: ".")
    }

    /// The three parts of a JWS.
    static func sign(
        _ payload: [UInt8], _ key: SigningKey, id: String?, _ device: MobileFirstSettings.Device
    ) throws(GrantFailure) -> (header: String, payload: String, signature: String) {
        func encode(_ bytes: [UInt8]) -> String {
            device.usesStandardBase64 ? Base64.encode(bytes) : Base64.encodeURL(bytes)
        }
        guard let numbers = key.rsaNumbers else { throw .internal(reason: "a registration with another kind of key") }
        var head = JSONBody(capacity: 1024)
        head.member("alg", JWSAlgorithm.rs256.rawValue)
        head.open("jwk")
        head.member("kty", "RSA")
        head.member("n", encode(numbers.n))
        head.member("e", encode(numbers.e))
        if let id { head.member("kid", id) }
        head.close()
        let header = encode(head.finish())
        let body = encode(payload)
        do throws(TLSFault) {
            return (header, body, encode(try key.sign(Array("\(header).\(body)".utf8), .rs256)))
        } catch {
            throw .internal(reason: "signing: \(error.message)")
        }
    }
}

// MARK: - Registration (docs/design/wire/mobilefirst.md#registration)

extension MobileFirstRun {
    /// The client as it stands, or else a new one.
    /// - Parameter refused: one that the server does not know any more.
    func registered(unless refused: LayerMaterial?) async throws(GrantFailure) -> MobileFirstClient {
        var refused = refused
        for _ in 0..<2 {
            let material = try await environment.durable(.registration, unless: refused) { () throws(GrantFailure) in
                try await self.register()
            }
            if let client = MobileFirstClient(material) { return client }
            // A registration that cannot be read can only come from a store of before.
            refused = material
        }
        throw .internal(reason: "a registration that is none")
    }

    private func register() async throws(GrantFailure) -> LayerMaterial {
        let deviceID = try await deviceID()
        let made = try await environment.aside {
            var file = try SigningKey.makeRSA()
            return Secret(taking: &file)
        }
        let key: SigningKey
        do throws(TLSFault) {
            var file = made.withBytes { Array($0) }
            defer { file.wipe() }
            key = try SigningKey(file: file)
        } catch {
            throw .internal(reason: "RSA key: \(error.message)")
        }
        let parts = try MobileFirstClient.sign(registrationData(deviceID), key, id: nil, device)
        var body = JSONBody(capacity: 4096)
        body.open("signedRegistrationData")
        body.member("header", parts.header)
        body.member("payload", parts.payload)
        body.member("signature", parts.signature)
        body.close()
        let call = IssuerCall(
            step: "register", method: "POST", url: handshake.endpoints.register, headers: IssuerCall.jsonHeaders,
            body: body.finish(), carriesPassword: true)
        let answer = try await handshake.send(call, environment)
        let id = try clientID(answer)
        return LayerMaterial(
            bytes: RecipeMaterial.encode(["client": MobileFirstClient.values(id: id, key: made)]),
            obtainedAt: answer.sentAt, lifetime: nil)
    }

    private func deviceID() async throws(GrantFailure) -> String {
        if let id = device.id { return id }
        return try await environment.deviceID(handshake.world.random)
    }

    private func registrationData(_ deviceID: String) -> [UInt8] {
        var data = JSONBody(capacity: 1024)
        data.open("device")
        data.member("id", deviceID)
        data.member("platform", device.system)
        data.member("hardware", device.hardware)
        if let name = device.name { data.member("deviceDisplayName", name) }
        data.close()
        data.open("application")
        data.member("id", device.application)
        data.member("clientPlatform", device.platform)
        if let version = device.version { data.member("version", version) }
        data.close()
        if device.platform != "web" {
            data.open("attributes")
            data.member("sdk_protocol_version", 1)
            data.close()
        }
        return data.finish()
    }

    private func clientID(_ answer: IssuerAnswer) throws(GrantFailure) -> String {
        let reason = "register: status \(answer.status)"
        switch answer.status {
        case 201: break
        // A server that challenges a registration asks whether this is the genuine app, which a gateway is not and must not claim to be.
        case 401, 403:
            throw .configuration(
                reason:
                    "\(reason): the application is unknown, or its authenticity is checked; use mode: confidential, "
                    + "or an application without that check")
        case 408, 425, 429, 500..<600: throw answer.unavailable(reason)
        case 400..<500, 300..<400: throw .configuration(reason: reason)
        default: throw .issuerAnswerInvalid(reason: reason)
        }
        guard let location = answer.header("Location") else {
            throw .issuerAnswerInvalid(reason: "\(reason): no Location")
        }
        // The client stays on the configured origin, whatever the server says (docs/security/guarantees.md#invariant-3).
        let isPath = location.hasPrefix("/") && !location.hasPrefix("//")
        guard isPath || IssuerURL(location)?.origin == handshake.settings.base.origin else {
            throw .issuerAnswerInvalid(reason: "\(reason): Location is at another origin")
        }
        let id =
            location.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).last.map {
                String(decoding: $0, as: UTF8.self)
            } ?? ""
        guard MobileFirstClient.isID(id) else {
            throw .issuerAnswerInvalid(reason: "\(reason): Location ends with no client id")
        }
        return id
    }
}
