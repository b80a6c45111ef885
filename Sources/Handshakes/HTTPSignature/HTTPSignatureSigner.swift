internal import Octets
internal import TLS

/// Signs each request as RFC 9421 says, in the octets in which it is sent.
struct HTTPSignatureSigner: RequestSigner {
    let settings: HTTPSignatureSettings

    /// The fields that it writes; the first carries the credential.
    static let names = ["Signature", "Signature-Input", HTTPContentDigest.fieldName]

    var fieldNames: [String] { Self.names }
    /// Further signatures of the caller's go on, and what it says of its body is held against the body.
    var readFields: [String] { Self.names }
    var callersOwn: String { "other signatures of the caller pass, the rest of its own is dropped" }
    var readsBody: Bool { true }
    var nonceRule: NonceRule { .ofRequest }

    func bodyHash(answering nonce: ServerNonce?) -> HashFunction? { settings.digest.function }

    func sign(
        _ request: RequestToSign, with material: UnsafeRawBufferPointer, wallSeconds: Int64, entropy: [UInt8]
    ) throws(SigningFault) -> RequestSignature {
        guard let key = HTTPSignatureKey(Secret(material)) else { throw SigningFault("the key cannot be read") }
        let asked = request.serverNonce as? HTTPSignatureRequest
        let callers = try HTTPSignatureCallers(of: request)
        var components = settings.covered
        for component in asked?.wish.components ?? [] where !components.contains(component) {
            components.append(component)
        }
        let digest = try contentDigest(of: request, isWanted: components.contains(.contentDigest))
        if digest != nil, !components.contains(.contentDigest) { components.append(.contentDigest) }
        let base = try HTTPSignatureBase(
            components, of: HTTPSignatureMessage(request, contentDigest: digest),
            HTTPSignatureParameters(
                created: wallSeconds, expires: settings.expires.map { wallSeconds &+ $0 },
                keyID: settings.keyID ?? key.id, algorithm: settings.saysAlgorithm ? key.algorithm.rawValue : nil,
                nonce: asked?.wish.nonce ?? (settings.sendsNonce ? Base64.encodeURL(entropy) : nil), tag: settings.tag))
        let signature = try key.sign(base.octets, request.keys)
        // Under a label that the caller has used, its own signature stays.
        let label = asked.flatMap { callers.have($0.wish.label) ? nil : $0.wish.label } ?? settings.label
        var fields = callers.fields(with: label, base.input, signature)
        if let digest { fields.append(InjectedField(name: HTTPContentDigest.fieldName, value: digest)) }
        guard fields.reduce(0, { $0 + $1.value.count }) <= TokenAlphabet.longest else {
            throw SigningFault("its own signatures leave no room for one more", isCallers: true)
        }
        let answer = asked.flatMap { asked in
            asked.use().map { NonceAnswer(nonce: asked, count: $0, proof: nil) }
        }
        return RequestSignature(
            fields, secrets: request.namesSecrets ? [Secret(Base64.encode(signature)), Secret(signature)] : [],
            answering: answer)
    }

    /// - Parameter isWanted: also of a request without a body.
    /// - Returns: nil where nothing is to be said of the body.
    private func contentDigest(of request: RequestToSign, isWanted: Bool) throws(SigningFault) -> [UInt8]? {
        guard let digest = request.bodyDigest else {
            throw SigningFault("the system's library has no \(settings.digest.rawValue)")
        }
        let told = request.receivedLines(of: HTTPContentDigest.fieldName)
        if !request.isProbe { try settings.digest.check(told, against: digest) }
        return isWanted || !told.isEmpty || settings.digest.isOfBody(digest) ? settings.digest.value(digest) : nil
    }
}
