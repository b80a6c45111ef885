@testable import Audit

/// Any bytes as an audit log. The first byte says how: whether there is a key, and in pieces of which length it comes. What is refused in
/// one piece is refused in all; nothing but the empty log is good under a key that nobody has.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLog(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count > 0 else { return 0 }
    let text = UnsafeRawBufferPointer(start: start + 1, count: count - 1)
    let isKeyed = start[0] & 1 == 0
    let whole = outcome(of: text, inPiecesOf: text.count, isKeyed: isKeyed)
    let parts = outcome(of: text, inPiecesOf: 1 + Int(start[0] >> 1), isKeyed: isKeyed)
    precondition(whole == parts)
    precondition(!isKeyed || whole != nil || !text.contains(0x0A))
    if let head = ChainHead(String(decoding: text, as: UTF8.self)) { precondition(ChainHead("\(head)") == head) }
    return 0
}

/// Nil where nothing is wrong.
private func outcome(of text: UnsafeRawBufferPointer, inPiecesOf size: Int, isKeyed: Bool) -> ChainFault? {
    var verifier = ChainVerifier(key: isKeyed ? ChainKey(wiping: Array(1...32)) : nil, lastGroup: 1000)
    var cutter = LineCutter()
    var rest = text[...]
    do throws(ChainFault) {
        while !rest.isEmpty {
            let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(size))
            rest = rest.dropFirst(size)
            try cutter.take(piece) { (line) throws(ChainFault) in try verifier.take(line) }
        }
        try cutter.finish()
        try verifier.finish()
        return nil
    } catch { return error }
}
