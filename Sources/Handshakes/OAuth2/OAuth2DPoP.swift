internal import Synchronization
internal import TLS

/// The memory that an `oauth2` handshake with `dpop` has of its servers: the last nonce of each origin (RFC 9449 §8.2), and the clock. It is
/// no secret, and what is lost of it costs one more round trip.
final class OAuth2ProofMemory: Sendable {
    let clock = DPoPClock()
    private let nonces = Mutex<[String: String]>([:])

    /// Origins of one issuer's endpoints: two at most, unless its metadata keeps changing.
    private static let most = 8

    func nonce(of url: IssuerURL) -> String? { nonces.withLock { $0[url.origin] } }

    /// The parts of a proof that are not ours to choose.
    struct Standing: Equatable {
        var nonce: String?
        var ahead: Int64
    }

    func standing(of url: IssuerURL) -> Standing { Standing(nonce: nonce(of: url), ahead: clock.ahead) }

    func learn(_ answer: IssuerAnswer, from url: IssuerURL, wall: Int64) {
        if let time = answer.issuerTime { clock.learn(issuerTime: time, wall: wall) }
        guard let nonce = answer.header("DPoP-Nonce"), DPoPNonce.isNonce(nonce.utf8) else { return }
        nonces.withLock { nonces in
            if nonces.count >= Self.most, nonces[url.origin] == nil { nonces.removeAll() }
            nonces[url.origin] = nonce
        }
    }
}

extension OAuth2Handshake {
    /// Signs the requests of an identity with `dpop`; nil for all others.
    var signer: (any RequestSigner)? { settings.dpop ? DPoPSigner(clock: proofs.clock) : nil }

    /// The identity's own key pair: made once, kept as long as the registration of a client would be.
    func proofKey(_ environment: any GrantEnvironment) async throws(GrantFailure) -> DPoPKey? {
        guard settings.dpop else { return nil }
        var unusable: LayerMaterial?
        for _ in 0..<2 {
            let kept = try await environment.durable(.proofKey, unless: unusable) { () async throws(GrantFailure) in
                LayerMaterial(bytes: try DPoPKey.make(), obtainedAt: await environment.now(), lifetime: nil)
            }
            if let key = DPoPKey(kept.bytes) { return key }
            // A key that cannot be read signs nothing, and everything bound to it is lost anyway.
            unusable = kept
        }
        throw .internal(reason: "dpop: the key that was kept cannot be read")
    }

    /// The proof for one request to the issuer.
    func addProof(
        of key: DPoPKey, to url: IssuerURL, _ headers: inout [(name: String, value: String)]
    ) throws(GrantFailure) {
        let claims = DPoPClaims(
            method: "POST", url: url.description, issuedAt: proofs.clock.issuersTime(world.wallSeconds),
            identifier: world.random(16), nonce: proofs.nonce(of: url))
        do throws(TLSFault) { headers.append((name: "DPoP", value: try key.proof(claims))) } catch {
            throw .internal(reason: "dpop: \(error.message)")
        }
    }

    /// Whether it is the proof that the server does not take, for want of its nonce (RFC 9449 §8) or by its clock: then nothing else of
    /// the request was judged.
    func refusesProof(_ answer: IssuerAnswer) -> Bool {
        guard answer.status == 400 || answer.status == 401, let object = try? AnswerObject(answer.body) else {
            return false
        }
        return ["use_dpop_nonce", "invalid_dpop_proof"].contains(OAuth2Answer.errorCode(object))
    }
}

extension DurablePart {
    /// The key pair of proofs of possession.
    public static let proofKey: DurablePart = "proof-key"
}
