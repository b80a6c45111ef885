internal import Fleet
internal import Handshakes
internal import Numbers
internal import Tokens

/// Layers and names as they stand on the shared server (docs/design/fleet.md#names).
extension SharedTier {
    func name(of key: AccessKey) -> SharedName { name(.token, KeyCodec.encode(key)) }
    func name(of key: SessionKey) -> SharedName { name(.session, KeyCodec.encode(key)) }
    func name(of key: DurableKey) -> SharedName { name(.durable, KeyCodec.encode(key)) }
    func lock(of key: SessionKey) -> SharedName {
        name(.lock, Array(key.issuer.description.utf8) + [0] + (key.subject.map { [1] + $0.bytes } ?? []))
    }
    func name(of account: Account) -> SharedName {
        name(.account, Array(account.issuer.description.utf8) + [0] + account.user.bytes)
    }
    func name(of secret: Secret, _ account: Account) -> SharedName {
        secret.withBytes { bytes in
            name(.secret, Array(account.issuer.description.utf8) + [0] + account.user.bytes + [0] + Array(bytes))
        }
    }

    func attempt(_ account: Account, _ secret: Secret, _ number: String) -> SharedAttempt {
        SharedAttempt(account: name(of: account), secret: name(of: secret, account), number: number)
    }

    func identity(of value: Secret) -> String { value.withBytes { identity(of: Array($0)) } }
}

extension SharedSession {
    init(_ material: LayerMaterial, version: SessionVersion, at now: UInt64) {
        let row = LayerRow(
            material: material.bytes, refreshToken: material.refreshToken, isHuman: material.isHuman,
            wallExpiry: nil, original: material.lifetime)
        var left: TimeSpan?
        if material.refreshToken == nil, let life = material.lifetime {
            left = TimeSpan(nanoseconds: life) - TimeSpan(nanoseconds: now - min(now, material.obtainedAt))
        }
        self.init(version: version, value: row.encoded(), lasts: left)
    }

    /// Nil where it cannot be read.
    func material(at now: UInt64) -> LayerMaterial? {
        guard let row = LayerRow(encoded: value) else { return nil }
        var lifetime: UInt64?
        if let original = row.original {
            // The server counts what is left of a session; beside a refresh token, which has no end, nobody does.
            let left = lasts?.nanoseconds ?? original
            lifetime = row.refreshToken == nil ? min(left, original) : 0
        }
        return LayerMaterial(
            bytes: row.material, obtainedAt: now, lifetime: lifetime, refreshToken: row.refreshToken,
            isHuman: row.isHuman)
    }
}

extension KeptIdentity {
    /// Nil for parts that are this gateway's alone, as a key that tokens are bound to.
    func sharedKey(_ part: DurablePart) -> DurableKey? {
        policy.isShared && part != .proofKey ? durableKey(part) : nil
    }
}
