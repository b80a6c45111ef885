internal import Handshakes
internal import Tokens

/// Registrations and other durable things of identities, and who waits for one that is being made.
struct DurableParts {
    private(set) var held: [DurableKey: LayerMaterial] = [:]
    /// Flights that wait for parts that are being made.
    private var waits: [DurableKey: [Wait<DurableTurn>]] = [:]

    subscript(key: DurableKey) -> LayerMaterial? {
        get { held[key] }
        set { held[key] = newValue }
    }

    /// All, by their keys.
    var inOrder: [(key: DurableKey, value: LayerMaterial)] { held.inOrder { KeyCodec.encode($0.key) } }

    func live(_ key: DurableKey, at now: UInt64) -> LayerMaterial? {
        held[key].flatMap { $0.isLive(at: now) ? $0 : nil }
    }

    /// The first flight to claim a part makes it, the others wait for what becomes of it.
    /// - Returns: nil where `wait` is told.
    mutating func claim(_ key: DurableKey, _ wait: Wait<DurableTurn>, at now: UInt64) -> DurableTurn? {
        if let material = live(key, at: now) { return .standing(material) }
        guard waits[key] != nil else {
            waits[key] = []
            return .make
        }
        waits[key]?.append(wait)
        return nil
    }

    /// - Returns: who is to be told what became of it.
    mutating func made(_ key: DurableKey) -> [Wait<DurableTurn>] { waits.removeValue(forKey: key) ?? [] }

    /// Compared, because another flight may have replaced it while this one awaited its answer.
    /// - Returns: whether it is gone.
    mutating func drop(_ key: DurableKey, ifStill material: LayerMaterial) -> Bool {
        held[key] == material ? remove(key) : false
    }

    /// - Returns: false where there was none.
    mutating func remove(_ key: DurableKey) -> Bool { held.removeValue(forKey: key) != nil }

    func of(_ digest: IdentityDigest) -> [DurableKey: LayerMaterial] { held.filter { $0.key.digest == digest } }

    /// - Returns: what is gone.
    mutating func forget(_ digest: IdentityDigest) -> [DurableKey] {
        let keys = of(digest).keys.inOrder
        for key in keys { held[key] = nil }
        return keys
    }
}

// MARK: - Registrations that may be forgotten

extension DurableParts {
    /// A copy of the registration under a name of its own: it outlives a restart, and says nothing of another registration.
    private static let doubted: DurablePart = "doubted_registration"

    private func registration(of identity: KeptIdentity) -> LayerMaterial? {
        identity.durableKey(.registration).flatMap { self[$0] }
    }

    /// The last failure was of a step that used the registration that stands.
    func doubtsRegistration(of identity: KeptIdentity) -> Bool {
        guard let standing = registration(of: identity) else { return false }
        return identity.durableKey(Self.doubted).flatMap { self[$0] }?.bytes == standing.bytes
    }

    enum Doubt: Equatable {
        case unchanged
        case over(DurableKey)
        case noted(DurableKey, LayerMaterial)
    }

    mutating func note(doubt: Bool, of identity: KeptIdentity, at now: UInt64) -> Doubt {
        guard let key = identity.durableKey(Self.doubted) else { return .unchanged }
        guard doubt, let standing = registration(of: identity) else { return remove(key) ? .over(key) : .unchanged }
        guard self[key]?.bytes != standing.bytes else { return .unchanged }
        let copy = LayerMaterial(bytes: standing.bytes, obtainedAt: now, lifetime: nil)
        self[key] = copy
        return .noted(key, copy)
    }
}

/// The word to a flight that wants a durable part.
enum DurableTurn: Sendable {
    case standing(LayerMaterial)
    /// The flight makes the part, and says what became of it.
    case make
    case failed(Handshakes.GrantFailure)
}

extension KeptIdentity {
    /// Nil for schemes that have no durable layer.
    func durableKey(_ part: DurablePart) -> DurableKey? {
        issuer.map { DurableKey(digest: digest, issuer: $0, part: ByteString(part.name)) }
    }
}
