internal import GSSAPI

/// The tokens that follow the first one of a request: the server's, and what is said to them (RFC 4559 §5).
final class NegotiateExchange: Negotiation {
    private let initiator: GSSInitiator
    private let handshake: NegotiateHandshake
    let lifetime: UInt64?

    init(_ first: NegotiateCredential.FirstToken, of handshake: NegotiateHandshake) {
        initiator = first.initiator
        self.handshake = handshake
        lifetime = handshake.settings.isOfUnnamedCache ? 0 : UInt64(max(0, first.lifetime)) * 1_000_000
    }

    var scheme: String { "negotiate" }
    var wantsProof: Bool { handshake.settings.wantsProof }

    func answer(_ token: [UInt8], isLast: Bool) async throws(GrantFailure) -> Secret? {
        let step = try await handshake.advance(initiator, with: token)
        guard step.output.isEmpty else {
            guard !isLast else {
                throw .issuerAnswerInvalid(reason: "the server has answered in the middle of the negotiation")
            }
            return NegotiateHandshake.secret(step.output)
        }
        guard step.isComplete else {
            throw .issuerAnswerInvalid(reason: "the server's token leaves the negotiation open")
        }
        return nil
    }
}
