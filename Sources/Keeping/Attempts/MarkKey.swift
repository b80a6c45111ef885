package import DataPath
internal import Handshakes
internal import TLS
package import TokenStore
package import World

/// Under which hashes of secrets and accounts are made: random, made once, kept beside the marks and sealed with them.
package struct MarkKey {
    let key: SealingKey
    let bytes: [UInt8]

    func hash(_ secret: Secret) -> [UInt8] { secret.withBytes { key.tag(Array($0)) } }

    /// Tells users apart in logs without naming them.
    func pseudonym(_ user: [UInt8]) -> [UInt8] { Array(key.tag(Array("subject".utf8) + user).prefix(4)) }

    /// Nil where the bytes are no key.
    init?(bytes: [UInt8]) {
        guard let key = try? SealingKey(bytes: bytes) else { return nil }
        (self.key, self.bytes) = (key, bytes)
    }

    /// The one in the rows, or a new one.
    package init(in rows: [StoredRow] = [], random: any RandomSource) throws(GatewayFault) {
        let row = rows.first { $0.kind == RowKind.markKey }
        if let found = row.flatMap({ MarkKey(bytes: $0.value) }) {
            self = found
            return
        }
        bytes = random.bytes(SealingKey.size)
        do { key = try SealingKey(bytes: bytes) } catch { throw GatewayFault("no randomness: \(error)") }
    }
}
