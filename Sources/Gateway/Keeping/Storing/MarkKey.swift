internal import TLS
internal import TokenStore

/// Under which hashes of secrets and accounts are made: random, made once, kept beside the marks and sealed with them.
struct MarkKey {
    let key: SealingKey
    let bytes: [UInt8]

    /// The one in the rows, or a new one.
    init(in rows: [StoredRow] = []) throws(GatewayFault) {
        let row = rows.first { $0.kind == RowKind.markKey }
        if let row, let key = try? SealingKey(bytes: row.value) {
            self.key = key
            bytes = row.value
            return
        }
        bytes = randomBytes(SealingKey.size)
        do { key = try SealingKey(bytes: bytes) } catch { throw GatewayFault("no randomness: \(error)") }
    }
}
