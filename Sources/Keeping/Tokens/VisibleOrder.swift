internal import HotCache
internal import Tokens

/// An order for what is done to several things where log, wire or rows show it: a hash table's differs from run to run.
extension Sequence {
    /// By octets that tell every element from the others.
    func inOrder(of octets: (Element) -> [UInt8]) -> [Element] {
        map { (octets($0), $0) }.sorted { $0.0.lexicographicallyPrecedes($1.0) }.map(\.1)
    }
}

extension Sequence<KeptToken> {
    /// By their slots.
    var inOrder: [KeptToken] { sorted { $0.slot.index < $1.slot.index } }
}

extension Sequence<SessionKey> {
    var inOrder: [SessionKey] { inOrder(of: { KeyCodec.encode($0) }) }
}

extension Sequence<DurableKey> {
    var inOrder: [DurableKey] { inOrder(of: { KeyCodec.encode($0) }) }
}
