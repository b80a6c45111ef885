internal import Octets
internal import Synchronization
internal import TLS

/// Writes a bound token and the proof that goes with it (RFC 9449 §7.1), for each request.
public struct DPoPSigner: RequestSigner {
    /// The lead of the issuer's clock over ours; the resource server is taken to go by the same time.
    let clock: DPoPClock

    /// `Authorization` with the scheme `DPoP`, and the proof (RFC 9449 §7.1).
    public var fieldNames: [String] { ["Authorization", "DPoP"] }
    /// A proof covers method and URL alone.
    public var readsBody: Bool { false }
    /// The upstream may ask for its nonce in every proof (RFC 9449 §9).
    public var nonceRule: NonceRule { .ofOrigin }

    /// - Throws: `SigningFault` where `material` is no bound token.
    public func sign(
        _ request: RequestToSign, with material: UnsafeRawBufferPointer, wallSeconds: Int64, entropy: [UInt8]
    ) throws(SigningFault) -> RequestSignature {
        guard let bound = BoundToken(material) else { throw SigningFault("the token has no key") }
        guard let key = request.keys?.key(bound) ?? DPoPKey(bound.key) else {
            throw SigningFault("the key of the token cannot be read")
        }
        let claims = DPoPClaims(
            method: request.method, url: request.url, issuedAt: clock.issuersTime(wallSeconds), identifier: entropy,
            nonce: request.nonce, token: bound.token)
        do throws(TLSFault) {
            let proof = try key.proof(claims)
            return RequestSignature(
                [
                    InjectedField(name: "Authorization", value: Array("DPoP ".utf8) + Array(bound.token)),
                    InjectedField(name: "DPoP", value: Array(proof.utf8)),
                ], secrets: request.namesSecrets ? [Secret(bound.token), Secret(proof)] : [])
        } catch { throw SigningFault("dpop: \(error.message)") }
    }
}

/// A token with the key that it is bound to, as one value: `thumbprint key token`, parted by blanks.
struct BoundToken {
    let thumbprint: UnsafeRawBufferPointer
    let encodedKey: UnsafeRawBufferPointer
    let token: UnsafeRawBufferPointer

    /// The parts lie in `material`.
    init?(_ material: UnsafeRawBufferPointer) {
        let parts = material.split(separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        thumbprint = UnsafeRawBufferPointer(rebasing: parts[0])
        encodedKey = UnsafeRawBufferPointer(rebasing: parts[1])
        token = UnsafeRawBufferPointer(rebasing: parts[2])
    }

    var key: Secret {
        var bytes = Base64.decodeURL(encodedKey) ?? []
        return Secret(taking: &bytes)
    }

    static func encode(_ token: Secret, boundTo key: DPoPKey) -> Secret {
        var bytes: [UInt8] = []
        // Enough at once, so that no growth leaves a copy behind.
        bytes.reserveCapacity(64 + 2 * key.material.count + token.count)
        bytes += key.thumbprint.utf8
        bytes.append(0x20)
        key.material.withBytes { bytes += Base64.encodeURL(Array($0)).utf8 }
        bytes.append(0x20)
        token.withBytes { bytes += $0 }
        return Secret(taking: &bytes)
    }
}

/// The keys that one data loop has read: reading one costs more than a signature does. Of that loop alone.
public final class ProofKeys: @unchecked Sendable {
    private var keys: [String: DPoPKey] = [:]
    private var signingKeys: [String: SigningKey] = [:]
    /// By the hash of the secret that they were read from.
    private var signing: [[UInt8]: [NamedSigningKey]] = [:]
    private static let most = 64

    /// No key is read yet.
    public init() {}

    func key(_ bound: BoundToken) -> DPoPKey? {
        let name = String(decoding: bound.thumbprint, as: UTF8.self)
        if let known = keys[name] { return known }
        guard let key = DPoPKey(bound.key), key.thumbprint == name else { return nil }
        // More identities than that read some of their keys again.
        if keys.count >= Self.most { keys.removeAll(keepingCapacity: true) }
        keys[name] = key
        return key
    }

    /// - Parameter thumbprint: of the key's octets, which is its name here.
    func signingKey(_ thumbprint: String, _ der: Secret) -> SigningKey? {
        if let known = signingKeys[thumbprint] { return known }
        guard let key = Self.read(der) else { return nil }
        if signingKeys.count >= Self.most { signingKeys.removeAll(keepingCapacity: true) }
        signingKeys[thumbprint] = key
        return key
    }

    static func read(_ der: Secret) -> SigningKey? {
        var octets = der.withBytes { Array($0) }
        defer { octets.wipe() }
        return try? SigningKey(file: octets, of: SigningKey.Kind.ofHTTP)
    }

    /// Keys that stand in a secret, where they are known.
    func signingKeys(of secret: Secret) -> [NamedSigningKey]? { signing[Self.name(of: secret)] }

    func know(_ keys: [NamedSigningKey], of secret: Secret) {
        if signing.count >= Self.most { signing.removeAll(keepingCapacity: true) }
        signing[Self.name(of: secret)] = keys
    }

    private static func name(of secret: Secret) -> [UInt8] {
        var octets = secret.withBytes { Array($0) }
        defer { octets.wipe() }
        return sha256(octets)
    }
}

/// How far the issuer's clock is from ours, as the keeper learns it and the loops read it: proofs are only good for a moment.
public final class DPoPClock: Sendable {
    private let seconds = Atomic<Int64>(0)

    /// More is not skew but nonsense.
    private static let most: Int64 = 86_400

    init() {}

    /// Within a few seconds every server takes a proof, and `Date` has whole ones.
    func learn(issuerTime: Int64, wall: Int64) {
        let (difference, overflow) = issuerTime.subtractingReportingOverflow(wall)
        guard !overflow, difference.magnitude <= Self.most else { return }
        seconds.store(difference.magnitude <= 3 ? 0 : difference, ordering: .relaxed)
    }

    var ahead: Int64 { seconds.load(ordering: .relaxed) }

    func issuersTime(_ wall: Int64) -> Int64 { wall &+ ahead }
}
