@testable import Fleet

/// Any bytes as what a shared server sends: a reply ends inside them and reads the same alone and with more behind it, a part of it is
/// none, no count or depth passes its bound, and an error's words are fit for a log. What we write reads back as it was.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzReplies(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    checkWritten(bytes)
    guard let (value, length) = try? RESPReader.read(bytes) else { return 0 }
    precondition((1...count).contains(length))
    checkBounds(value, depth: 1)
    precondition(same(value, Array(bytes[..<length]), length))
    precondition(same(value, bytes + [0, 13, 10, 42], length))
    for part in [length - 1, length / 2] {
        do {
            let none = try RESPReader.read(Array(bytes[..<part])) == nil
            precondition(none, "a part of a reply is one")
        } catch { preconditionFailure("a part of a reply is refused") }
    }
    return 0
}

private func same(_ value: RESPValue, _ bytes: [UInt8], _ length: Int) -> Bool {
    guard let again = try? RESPReader.read(bytes) else { return false }
    return again.value == value && again.length == length
}

private func checkBounds(_ value: RESPValue, depth: Int) {
    precondition(depth <= RESPReader.deepest)
    switch value {
    case .text(let bytes): precondition(bytes.count <= RESPReader.longestString)
    case .number, .null: break
    case .error(let words):
        precondition(words.utf8.count <= 160 && words.utf8.allSatisfy { (0x20...0x7e).contains($0) })
    case .list(let items), .push(let items):
        // A map has two for each.
        precondition(items.count <= 2 * RESPReader.mostItems)
        for item in items { checkBounds(item, depth: depth + 1) }
    }
}

/// The input, cut at each zero, as the words of a command.
private func checkWritten(_ bytes: [UInt8]) {
    let words = bytes.split(separator: 0, maxSplits: 63, omittingEmptySubsequences: false).map { Array($0) }
    let written = RESPWriter.bytes(of: words)
    guard let (value, length) = try? RESPReader.read(written), length == written.count else {
        preconditionFailure("what was written does not read")
    }
    precondition(value == .list(words.map { .text($0) }))
}
