internal import Octets

/// A client's first message (RFC 8446 section 4.1.2), as far as it decides who answers: read before there is a TLS connection, and not
/// authenticated by anything.
public struct ClientHello: Sendable, Equatable {
    /// The host asked for (RFC 6066 section 3), in lower case and without a dot at its end; nil when none was sent.
    public var serverName: String?
    /// ALPN's names in the client's order (RFC 7301 section 3.1); empty when none were sent.
    public var protocols: [String] = []

    /// A hello without names and protocols.
    public init() {}

    /// The verdict on the bytes received so far.
    public enum Reading: Sendable, Equatable {
        /// More bytes are needed.
        case incomplete
        case complete(ClientHello)
        /// These are no TLS records.
        case notTLS
        /// TLS, but no hello that we can read: OpenSSL says to the client what is wrong with it.
        case unreadable
    }

    /// The most bytes that a hello may take together with its record headers. With post-quantum key shares it is about 2 KiB.
    static let longest = 16 * 1024

    /// Reads the hello at the front of `bytes`.
    public static func read(_ bytes: Span<UInt8>) -> Reading {
        guard !bytes.isEmpty else { return .incomplete }
        guard bytes[0] == 22 else { return .notTLS }
        if bytes.count > 1, bytes[1] != 3 { return .notTLS }
        // The message may be cut into records wherever the client likes.
        var message: [UInt8] = []
        var at = 0
        while at + 5 <= bytes.count {
            let length = Int(bytes[at + 3]) << 8 | Int(bytes[at + 4])
            guard bytes[at] == 22, bytes[at + 1] == 3, length > 0, length <= 16384 else { return .unreadable }
            let available = min(length, bytes.count - at - 5)
            for index in (at + 5)..<(at + 5 + available) { message.append(bytes[index]) }
            at += 5 + available
            if message.count >= 4 {
                let length = Int(message[1]) << 16 | Int(message[2]) << 8 | Int(message[3])
                guard message[0] == 1, length <= longest else { return .unreadable }
                if message.count >= 4 + length {
                    var cursor = Cursor(message[4..<(4 + length)])
                    return ClientHello(&cursor).map { .complete($0) } ?? .unreadable
                }
            }
            if available < length { break }
        }
        return bytes.count >= longest ? .unreadable : .incomplete
    }

    // MARK: -

    private init?(_ message: inout Cursor) {
        // legacy_version, random, session id, cipher suites, compression methods
        guard message.skip(2 + 32), message.block(1) != nil, message.block(2) != nil, message.block(1) != nil else {
            return nil
        }
        // A hello without extensions is old, and legal.
        guard !message.isEmpty else { return }
        guard var extensions = message.block(2), message.isEmpty else { return nil }
        while !extensions.isEmpty {
            guard let kind = extensions.number(2), var body = extensions.block(2) else { return nil }
            switch kind {
            case 0:
                guard var list = body.block(2), body.isEmpty, serverName == nil else { return nil }
                while !list.isEmpty {
                    guard let type = list.number(1), let name = list.block(2) else { return nil }
                    guard type == 0 else { continue }
                    guard serverName == nil, let host = Self.host(name.bytes) else { return nil }
                    serverName = host
                }
            case 16:
                guard var list = body.block(2), body.isEmpty, protocols.isEmpty else { return nil }
                while !list.isEmpty {
                    guard let name = list.block(1), !name.isEmpty else { return nil }
                    protocols.append(String(decoding: name.bytes, as: UTF8.self))
                }
            default: break
            }
        }
    }

    /// A DNS name of plain characters; a trailing dot means the same name.
    private static func host(_ bytes: ArraySlice<UInt8>) -> String? {
        let name = bytes.last == UInt8(ascii: ".") ? bytes.dropLast() : bytes
        guard !name.isEmpty, name.count <= 253, name.first != UInt8(ascii: ".") else { return nil }
        let isPlain = name.allSatisfy(\.isHostNameCharacter)
        return isPlain ? String(decoding: name, as: UTF8.self).lowercased() : nil
    }

    /// Bytes in network order, each step checked against what is left.
    private struct Cursor {
        var bytes: ArraySlice<UInt8>
        var isEmpty: Bool { bytes.isEmpty }

        init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

        mutating func skip(_ count: Int) -> Bool {
            guard bytes.count >= count else { return false }
            bytes = bytes.dropFirst(count)
            return true
        }

        mutating func number(_ width: Int) -> Int? {
            guard bytes.count >= width else { return nil }
            defer { bytes = bytes.dropFirst(width) }
            return bytes.prefix(width).reduce(0) { $0 << 8 | Int($1) }
        }

        /// The block that stands behind a length of `width` bytes.
        mutating func block(_ width: Int) -> Cursor? {
            guard let length = number(width), bytes.count >= length else { return nil }
            defer { bytes = bytes.dropFirst(length) }
            return Cursor(bytes.prefix(length))
        }
    }
}
