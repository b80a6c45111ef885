public import Numbers

/// A reply of a Redis server in RESP3 (https://redis.io/docs/reference/protocol-spec), as far as scripts and subscriptions need one.
public enum RESPValue: Sendable, Equatable {
    case text([UInt8])
    case number(ReceivedNumber)
    case list([RESPValue])
    case null
    /// The server's own words: its first word names the kind, as `READONLY`.
    case error(String)
    /// A message that was not asked for, such as news of a subscription.
    case push([RESPValue])

    /// The bytes of a string; nil for anything else.
    public var bytes: [UInt8]? { if case .text(let bytes) = self { bytes } else { nil } }
    /// The number of an integer reply; nil for anything else.
    public var integer: ReceivedNumber? { if case .number(let number) = self { number } else { nil } }
    /// The elements of an array; nil for anything else.
    public var items: [RESPValue]? { if case .list(let items) = self { items } else { nil } }
}

/// The fault of bytes that are no reply, or more of one than we take.
public enum RESPFault: Error, Sendable, Equatable {
    case malformed
    /// A length or a count over its bound.
    case tooLarge
    case tooDeep
}

/// Reads replies out of the bytes received so far. Pure: the same bytes give the same answer, and a part of a reply gives none.
///
/// Every length that a server writes is compared with a bound before anything is reserved for it. Doubles, big numbers, maps and sets do
/// not occur in what we ask for; they are read over, in their bounds, and given as text or list.
public struct RESPReader: Sendable {
    /// Octets of one string; a sealed row is at most 256 KiB.
    public static let longestString = 512 << 10
    /// Elements of one aggregate; of a map, pairs.
    public static let mostItems = 4096
    /// How deep aggregates may stand in each other.
    public static let deepest = 6
    /// Octets of a line: a type's mark, a number or a short text.
    static let longestLine = 1024
    /// Octets of an incomplete reply at which no more of it is waited for.
    public static let longestReply = 1 << 20

    private var position = 0
    /// Elements that all aggregates of one reply together may still have: a reply that comes octet by octet is read anew with each.
    private var itemsLeft = 2 * mostItems

    /// - Returns: the first reply and how many bytes it took; nil when more are needed.
    public static func read(_ bytes: [UInt8]) throws(RESPFault) -> (value: RESPValue, length: Int)? {
        var reader = RESPReader()
        guard let value = try reader.value(in: bytes, depth: 0) else {
            guard bytes.count < longestReply else { throw .tooLarge }
            return nil
        }
        return (value, reader.position)
    }

    private mutating func value(in bytes: [UInt8], depth: Int) throws(RESPFault) -> RESPValue? {
        guard depth < Self.deepest else { throw .tooDeep }
        guard let line = try line(in: bytes) else { return nil }
        guard let mark = line.first else { throw .malformed }
        let rest = line.dropFirst()
        switch mark {
        case UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: "("): return .text(Array(rest))
        case UInt8(ascii: "-"): return .error(Self.words(rest))
        case UInt8(ascii: ":"): return .number(try Self.number(rest))
        case UInt8(ascii: "#"): return .number(ReceivedNumber(rest.elementsEqual("t".utf8) ? 1 : 0))
        case UInt8(ascii: "_"): return .null
        case UInt8(ascii: "$"), UInt8(ascii: "="), UInt8(ascii: "!"):
            guard let count = try Self.count(rest, most: Self.longestString) else { return .null }
            let end = position + count
            guard bytes.count >= end + 2 else { return nil }
            guard bytes[end] == 13, bytes[end + 1] == 10 else { throw .malformed }
            defer { position = end + 2 }
            let content = bytes[position..<end]
            return mark == UInt8(ascii: "!") ? .error(Self.words(content)) : .text(Array(content))
        case UInt8(ascii: "*"), UInt8(ascii: "~"): return try list(rest, in: bytes, depth, times: 1).map { .list($0) }
        case UInt8(ascii: "%"): return try list(rest, in: bytes, depth, times: 2).map { .list($0) }
        case UInt8(ascii: ">"): return try list(rest, in: bytes, depth, times: 1).map { .push($0) }
        default: throw .malformed
        }
    }

    private mutating func list(
        _ count: ArraySlice<UInt8>, in bytes: [UInt8], _ depth: Int, times: Int
    ) throws(RESPFault) -> [RESPValue]? {
        guard let count = try Self.count(count, most: Self.mostItems) else { return [] }
        var items: [RESPValue] = []
        for _ in 0..<count * times {
            itemsLeft -= 1
            guard itemsLeft >= 0 else { throw .tooLarge }
            guard let item = try value(in: bytes, depth: depth + 1) else { return nil }
            items.append(item)
        }
        return items
    }

    private mutating func line(in bytes: [UInt8]) throws(RESPFault) -> ArraySlice<UInt8>? {
        let window = bytes[position..<min(bytes.count, position + Self.longestLine)]
        guard let end = window.firstIndex(of: 13) else {
            guard window.count < Self.longestLine else { throw .tooLarge }
            return nil
        }
        guard bytes.count > end + 1 else { return nil }
        guard bytes[end + 1] == 10 else { throw .malformed }
        defer { position = end + 2 }
        return bytes[position..<end]
    }

    private static func number(_ digits: ArraySlice<UInt8>) throws(RESPFault) -> ReceivedNumber {
        guard let number = ReceivedNumber(decimal: digits), number.within(Int64.min...Int64.max) != nil else {
            throw .malformed
        }
        return number
    }

    /// Nil for -1, which stands for nothing.
    private static func count(_ digits: ArraySlice<UInt8>, most: Int) throws(RESPFault) -> Int? {
        let number = try number(digits)
        if number == ReceivedNumber(-1) { return nil }
        guard number.clamped(to: -1...0) == 0 else { throw .malformed }
        guard let count = number.within(0...most) else { throw .tooLarge }
        return count
    }

    /// Safe to log: visible ASCII, short.
    private static func words(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: bytes.prefix(160).map { (0x20...0x7e).contains($0) ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
    }
}

/// Writes commands: arrays of strings.
public enum RESPWriter {
    /// Appends one command: an array of bulk strings.
    public static func bytes(of words: [[UInt8]]) -> [UInt8] {
        var bytes = Array("*\(words.count)\r\n".utf8)
        for word in words {
            bytes += "$\(word.count)\r\n".utf8
            bytes += word
            bytes += [13, 10]
        }
        return bytes
    }
}
