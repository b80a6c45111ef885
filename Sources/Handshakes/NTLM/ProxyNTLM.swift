package import Configuration
internal import Octets

/// NTLM version 2 at a proxy on the way, which authenticates connections ([MS-NTHT] section 4).
package struct ProxyNTLM: ProxyHandshake {
    private let settings: NTLMSettings
    /// The proxy's name, as its answer's proof covers it.
    private let host: String
    private let world: GrantWorld

    /// - Parameter host: of the proxy.
    package init(_ user: NTLMUser, word: NTLMWord, host: String, _ world: GrantWorld) {
        settings = NTLMSettings(user, word: word)
        self.host = host
        self.world = world
    }

    package var word: String { settings.word.written }
    package var openingMessages: Int { 1 }
    package var mostMessages: Int { 2 }
    package var mayBeOfEachRequest: Bool { false }
    package var isCounted: Bool { true }
    package func noteRefusal() {}
    package func forgetRefusals() {}

    package func begin(with secret: [UInt8]) -> any ProxyConversation {
        ProxyNTLMConversation(settings: settings, host: host, world: world, password: Secret(secret))
    }
}

private struct ProxyNTLMConversation: ProxyConversation {
    let settings: NTLMSettings
    let host: String
    let world: GrantWorld
    let password: Secret

    func answer(
        _ received: [UInt8]?, within milliseconds: Int64,
        then completion: @escaping @Sendable (Result<[UInt8], GrantFailure>) -> Void
    ) {
        completion(Result { () throws(GrantFailure) in try message(answering: received) })
    }

    private func message(answering received: [UInt8]?) throws(GrantFailure) -> [UInt8] {
        guard password.isText else {
            throw .secretUnusable(name: "password", reason: "not UTF-8, or with a control character")
        }
        // The same for everybody.
        guard let received else { return NTLMMessage.first }
        guard received.count <= NTLMChallenge.longestText, let octets = Base64.decode(received) else {
            throw .issuerAnswerInvalid(reason: "the proxy's message is too long, or not base64")
        }
        let challenge: NTLMChallenge
        do throws(NTLMFault) { challenge = try NTLMChallenge(octets) } catch {
            throw .issuerAnswerInvalid(reason: "the proxy's message is none of NTLM's second: \(error.rawValue)")
        }
        // No channel: the connection is in clear text.
        let answer = NTLMAnswer(
            to: challenge, as: settings, clientNonce: world.random(8), wallSeconds: world.wallSeconds,
            service: "HTTP/\(host)", serverEndPoint: nil)
        guard let key = NTLMKey(of: password, settings), let message = answer.message(key) else {
            throw .configuration(reason: "the system's library has no HMAC-MD5, which NTLM is made of")
        }
        return message
    }
}
