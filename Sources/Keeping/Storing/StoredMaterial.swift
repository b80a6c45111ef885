internal import Handshakes
internal import Numbers
internal import TokenStore
internal import Tokens

/// Layers as they stand in rows (docs/design/store.md#rows).
extension StoredRow {
    init(_ kind: UInt8, _ key: [UInt8], _ material: LayerMaterial, at moment: Moment) {
        let passed = moment.now - min(moment.now, material.obtainedAt)
        let left = material.lifetime.map { (TimeSpan(nanoseconds: $0) - TimeSpan(nanoseconds: passed)).milliseconds }
        let row = LayerRow(
            material: material.bytes, refreshToken: material.refreshToken, isHuman: material.isHuman,
            wallExpiry: left.map { moment.wall + $0 }, original: material.lifetime,
            refreshEnd: material.refreshLife.map { life in
                (moment.wall + Int64(clamping: (life.left - min(life.left, passed)) / 1_000_000), life.whole)
            })
        // A refresh token outlives the session that it renews; how long, only its issuer knows.
        self.init(
            kind: kind, key: key, value: row.encoded(),
            expiresWall: material.refreshToken == nil ? row.wallExpiry : nil)
    }
}

extension LayerRow {
    /// Nil when nothing is left of it.
    func material(at moment: Moment) -> LayerMaterial? {
        let wall = WallTime(milliseconds: moment.wall)
        var lifetime: UInt64?
        if let expiry = wallExpiry {
            guard expiry > moment.wall || refreshToken != nil else { return nil }
            lifetime = min(WallTime(milliseconds: expiry).left(at: wall).nanoseconds, original ?? .max)
        }
        return LayerMaterial(
            bytes: material, obtainedAt: moment.now, lifetime: lifetime, refreshToken: refreshToken, isHuman: isHuman,
            refreshLife: refreshEnd.map { end in
                let left = WallTime(milliseconds: end.wall).left(at: wall)
                return RefreshLife(left: min(left.nanoseconds, end.whole), whole: end.whole)
            })
    }
}

extension AccessRow {
    /// - Parameter wallExpiry: milliseconds since 1970.
    init(_ line: Secret, _ grant: Grant, wallExpiry: Int64) {
        self.init(
            line: line, wallExpiry: wallExpiry, original: grant.lifetime.original, level: grant.level,
            granted: grant.granted)
    }
}
