internal import Handshakes
internal import TokenStore
internal import Tokens

/// Stored material of identities that the configuration does not have any more, or has changed (docs/design/tokens.md#rule-8): what a
/// person or a registration brought is never used and kept for 30 days.
struct OrphanRows {
    private(set) var rows: [StoredRow] = []

    /// Orphans beyond this many stay in the store and come back with the next start.
    static let most = 1024

    var isEmpty: Bool { rows.isEmpty }
    var count: Int { rows.count }

    /// Keeps the row for its 30 days, which begin when it is first found without an identity.
    /// - Parameters:
    ///   - wall: milliseconds since 1970.
    ///   - isStored: false where its identity kept nothing on disk: then memory alone has it, until the process ends.
    mutating func add(_ row: StoredRow, wall: Int64, isStored: Bool = true) -> [StoreChange] {
        let limit = wall + Orphans.keptForMilliseconds
        let isCounted = row.expiresWall.map { $0 <= limit } ?? false
        let kept = isCounted ? row : row.expiring(limit)
        if rows.count < Self.most { rows.append(kept) }
        return isCounted || !isStored ? [] : [.put(kept)]
    }

    /// The changes to be written after rows without identities were found.
    struct Sweep {
        var changes: [StoreChange] = []
        var deletions: [StoreChange] = []
    }

    /// A row whose identity is not configured goes, or is kept for its 30 days.
    mutating func leave(
        _ row: StoredRow, _ material: Material, wall: Int64, isStored: Bool = true, _ sweep: inout Sweep
    ) {
        switch Orphans.disposition(of: material, after: .digestChanged) {
        case .keep: break
        case .drop: sweep.deletions.append(.delete(kind: row.kind, key: row.key))
        case .orphan: sweep.changes += add(row, wall: wall, isStored: isStored)
        }
    }

    /// Judges the rows of a store by the identities that are there.
    /// - Parameters:
    ///   - keepsRows: whether an identity that is configured keeps anything on disk.
    ///   - mayBegin: the session may have begun with the refresh token that an identity names now.
    mutating func sweep(
        _ rows: [StoredRow], wall: Int64, isConfigured: (IdentityDigest) -> Bool, keepsRows: (IdentityDigest) -> Bool,
        mayBegin: (StoredRow) -> Bool
    ) -> Sweep {
        var sweep = Sweep()
        for row in rows {
            guard let (digest, material) = row.nature else { continue }
            if !isConfigured(digest) {
                let isDoubtful = material == .session && mayBegin(row)
                leave(row, isDoubtful ? .humanRefreshToken : material, wall: wall, &sweep)
            } else if !keepsRows(digest) {
                sweep.deletions.append(.delete(kind: row.kind, key: row.key))
            } else if material != .accessToken, row.expiresWall != row.lastingExpiry {
                // The identity came back: the days of its row are not counted any more.
                sweep.changes.append(.put(row.expiring(row.lastingExpiry)))
            }
        }
        return sweep
    }

    /// Like `add`, in place of what stands under its key.
    mutating func replace(_ row: StoredRow, wall: Int64, isStored: Bool) -> [StoreChange] {
        rows.removeAll { $0.kind == row.kind && $0.key == row.key }
        return add(row, wall: wall, isStored: isStored)
    }

    /// Rows whose identity is there again.
    mutating func takeBack(_ isConfigured: (IdentityDigest) -> Bool) -> [StoredRow] {
        let returned = rows.filter { row in row.nature.map { isConfigured($0.digest) } ?? false }
        rows.removeAll { returned.contains($0) }
        return returned
    }

    /// Forgets the rows that an earlier configuration of the same account has left.
    /// - Returns: what the issuer may still take for good; and what is to go from the disk.
    mutating func forget(_ key: SessionKey, at now: UInt64) -> (held: [LayerMaterial], gone: [StoreChange]) {
        var digests: Set = [key.digest]
        var held: [LayerMaterial] = []
        for row in rows where row.kind == RowKind.session {
            guard let other = try? KeyCodec.sessionKey(row.key), other.lock == key.lock,
                let stored = LayerRow(encoded: row.value)
            else { continue }
            digests.insert(other.digest)
            held.append(
                LayerMaterial(
                    bytes: stored.material, obtainedAt: now, lifetime: nil, refreshToken: stored.refreshToken,
                    isHuman: stored.isHuman))
        }
        return (held, remove { row in row.nature.map { digests.contains($0.digest) } ?? false })
    }

    /// Sessions that hold a refresh token that was just spent.
    mutating func dropCopies(of spent: Secret) -> [StoreChange] {
        remove { $0.kind == RowKind.session && LayerRow(encoded: $0.value)?.refreshToken == spent }
    }

    private mutating func remove(_ isMeant: (StoredRow) -> Bool) -> [StoreChange] {
        let gone = rows.filter(isMeant)
        rows.removeAll { gone.contains($0) }
        return gone.map { .delete(kind: $0.kind, key: $0.key) }
    }
}

extension StoredRow {
    /// The identity that the row belongs to, and the kind of what it holds; nil for rows that belong to no identity, and for what cannot be read.
    var nature: (digest: IdentityDigest, material: Material)? {
        switch kind {
        case RowKind.durable: (try? KeyCodec.durableKey(key)).map { ($0.digest, .durable) }
        case RowKind.session:
            LayerRow(encoded: value).flatMap { stored in
                (try? KeyCodec.sessionKey(key)).map {
                    ($0.digest, stored.isHuman && stored.refreshToken != nil ? .humanRefreshToken : .session)
                }
            }
        // Learned tables serve nobody without the token that they were learned with.
        case RowKind.access, RowKind.learned: (try? KeyCodec.accessKey(key)).map { ($0.digest, .accessToken) }
        default: nil
        }
    }

    /// When the row would end if its identity were never missed.
    var lastingExpiry: Int64? {
        guard let stored = LayerRow(encoded: value), stored.refreshToken == nil else { return nil }
        return stored.wallExpiry
    }

    func expiring(_ wall: Int64?) -> StoredRow { StoredRow(kind: kind, key: key, value: value, expiresWall: wall) }
}

extension LayerMaterial {
    /// The kind of a session.
    var nature: Material { isHuman && refreshToken != nil ? .humanRefreshToken : .session }
}
