internal import Octets
internal import TLS

/// The key that signs messages, as the signer gets it for a token.
struct HTTPSignatureKey: Sendable {
    enum Form: Sendable {
        /// A private key in DER, and the name under which loops know it.
        case pair(der: Secret, thumbprint: String)
        case shared(Secret)
    }

    let form: Form
    let algorithm: HTTPSignatureAlgorithm
    /// `kid` of a JWK.
    let id: String?

    static let keyName = "key"
    static let passwordName = "key_password"
    static let sharedName = "shared_key"

    /// - Parameter shared: octets, as they are.
    /// - Throws: `.secretUnusable` for an empty one.
    init(shared: Secret) throws(GrantFailure) {
        guard !shared.isEmpty else { throw .secretUnusable(name: Self.sharedName, reason: "empty") }
        form = .shared(shared)
        algorithm = .hmac
        id = nil
    }

    /// - Parameter wanted: nil: what the key says by its kind or by its `alg`.
    /// - Throws: `.secretUnusable` where the key does not sign by that algorithm, or by several.
    init(_ named: NamedSigningKey, signingBy wanted: HTTPSignatureAlgorithm?) throws(GrantFailure) {
        let ofJWK: HTTPSignatureAlgorithm? = named.algorithm == .rs256 ? .rsaPKCS1 : nil
        guard let algorithm = wanted ?? ofJWK ?? named.key.onlyHTTPAlgorithm else {
            throw .secretUnusable(
                name: Self.keyName,
                reason: "an RSA key signs in two ways: write algorithm: rsa-pss-sha512, or rsa-v1_5-sha256")
        }
        if let id = named.id, id.utf8.count > HTTPSignatureSettings.longestText || id.structuredString == nil {
            throw .secretUnusable(name: Self.keyName, reason: "its kid is too long, or not printable ASCII")
        }
        do throws(TLSFault) {
            // A key may be limited to other functions, which shows when it signs.
            _ = try named.key.sign([], algorithm)
            var der = try named.key.der()
            form = .pair(der: Secret(taking: &der), thumbprint: "")
        } catch { throw .secretUnusable(name: Self.keyName, reason: error.message) }
        self.algorithm = algorithm
        id = named.id
    }
}

// MARK: - As a token

extension HTTPSignatureKey {
    private static let part = "key"
    private static let derName = "der"
    private static let octetsName = "octets"
    private static let thumbprintName = "thumbprint"
    private static let algorithmName = "algorithm"
    private static let idName = "id"

    var encoded: Secret {
        var values = [Self.algorithmName: Secret(algorithm.rawValue)]
        values[Self.idName] = id.map { Secret($0) }
        switch form {
        case .shared(let octets): values[Self.octetsName] = octets
        case .pair(let der, _):
            values[Self.derName] = der
            var octets = der.withBytes { Array($0) }
            defer { octets.wipe() }
            values[Self.thumbprintName] = Secret(Hexadecimal.encode(sha256(octets)))
        }
        return RecipeMaterial.encode([Self.part: values])
    }

    /// - Returns: nil for anything but `encoded`.
    init?(_ material: Secret) {
        guard let values = RecipeMaterial.decode(material)?[Self.part],
            let algorithm = values[Self.algorithmName].flatMap({ HTTPSignatureAlgorithm(rawValue: $0.plain) })
        else { return nil }
        if let octets = values[Self.octetsName] {
            form = .shared(octets)
        } else if let der = values[Self.derName], let thumbprint = values[Self.thumbprintName] {
            form = .pair(der: der, thumbprint: thumbprint.plain)
        } else {
            return nil
        }
        self.algorithm = algorithm
        id = values[Self.idName]?.plain
    }
}

// MARK: - Signing

extension HTTPSignatureKey {
    /// - Parameter keys: those that the loop has read so far, where it keeps any.
    func sign(_ base: [UInt8], _ keys: ProofKeys?) throws(SigningFault) -> [UInt8] {
        switch form {
        case .shared(let secret): return secret.withBytes { keyedHash(key: $0, base) }
        case .pair(let der, let thumbprint):
            guard let key = keys?.signingKey(thumbprint, der) ?? ProofKeys.read(der) else {
                throw SigningFault("the key cannot be read")
            }
            do throws(TLSFault) { return try key.sign(base, algorithm) } catch {
                throw SigningFault("http_signature: \(error.message)")
            }
        }
    }
}

extension Secret {
    fileprivate var plain: String { withBytes { String(decoding: $0, as: UTF8.self) } }
}
