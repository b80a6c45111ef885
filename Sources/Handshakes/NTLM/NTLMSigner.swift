internal import Configuration
internal import HTTP1
internal import Octets

/// The server's message, to be answered once; its connection is authenticated by that.
final class NTLMNonce: ServerNonce, @unchecked Sendable {
    let challenge: NTLMChallenge

    init(_ challenge: NTLMChallenge) {
        self.challenge = challenge
        super.init(isStale: false)
    }
}

/// Begins the authentication of a connection, answers the server's message, and writes nothing on a connection that is authenticated.
struct NTLMSigner: RequestSigner {
    let settings: NTLMSettings

    var fieldNames: [String] { ["Authorization"] }
    var readsBody: Bool { false }
    var nonceRule: NonceRule { .ofConnection }

    func sign(
        _ request: RequestToSign, with material: UnsafeRawBufferPointer, wallSeconds: Int64, entropy: [UInt8]
    ) throws(SigningFault) -> RequestSignature {
        guard let nonce = request.serverNonce as? NTLMNonce else {
            // The same for everybody.
            return signature(NTLMMessage.first, secrets: [], answering: nil)
        }
        // Answered before: the connection is authenticated, or was refused, which a nonce does not outlive.
        guard nonce.uses == 0, let count = nonce.use() else { return RequestSignature([]) }
        guard let key = NTLMKey(hexadecimal: material) else { throw SigningFault("the token is no key") }
        let answer = NTLMAnswer(
            to: nonce.challenge, as: settings, clientNonce: Array(entropy.prefix(8)), wallSeconds: wallSeconds,
            service: request.host.map { "HTTP/\($0)" }, serverEndPoint: request.serverEndPoint)
        guard let message = answer.message(key) else {
            throw SigningFault("the system's library has no HMAC-MD5, which NTLM is made of")
        }
        return signature(
            message, secrets: request.namesSecrets ? [Secret(Base64.octets(of: message))] : [],
            answering: NonceAnswer(nonce: nonce, count: count, proof: nil))
    }

    private func signature(_ message: [UInt8], secrets: [Secret], answering answer: NonceAnswer?) -> RequestSignature {
        let value = Array("\(settings.word.written) ".utf8) + Base64.octets(of: message)
        return RequestSignature(
            [InjectedField(name: "Authorization", value: value)], secrets: secrets, answering: answer)
    }
}
