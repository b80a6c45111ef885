internal import HTTP1
internal import HotCache
internal import TLS
package import Tokens

/// The key of one URL's token, where a token is good for one URL (`token_scope: url`): kept as the names of end users are, in a space of its
/// own. The URL is ours, as it goes to the upstream, without its query; what stands in a challenge selects nothing.
package enum URLKey {
    /// The first byte of a key with the path itself; a key with the digest of a longer path begins with `digestMark`.
    static let pathMark: UInt8 = 2
    static let digestMark: UInt8 = 3
    private static let longestPath = 255

    /// - Parameter path: as received.
    static func with<Result>(
        _ path: UnsafeRawBufferPointer, on route: RoutePlan, _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        let kept = UnsafeRawBufferPointer(
            rebasing: path.prefix { $0 != UInt8(ascii: "?") }[route.edits.strippedLength(of: path.octets)...])
        return withUnsafeTemporaryAllocation(byteCount: longestPath + 1, alignment: 1) { key in
            guard kept.count > longestPath else {
                key[0] = pathMark
                UnsafeMutableRawBufferPointer(rebasing: key[1...]).copyMemory(from: kept)
                return body(UnsafeRawBufferPointer(rebasing: key[...kept.count]))
            }
            key[0] = digestMark
            sha256(kept, into: UnsafeMutableRawBufferPointer(rebasing: key[1..<SubjectPlan.digestSize]))
            return body(UnsafeRawBufferPointer(rebasing: key[..<SubjectPlan.digestSize]))
        }
    }

    /// Nil where the key has a digest of it.
    package static func path(of key: ByteString) -> String? {
        guard key.bytes.first == pathMark else { return nil }
        let path = String(decoding: key.bytes.dropFirst(), as: UTF8.self)
        return path.hasPrefix("/") ? path : "/" + path
    }

    /// - Parameter path: without the route's prefix, as `probe` has it.
    package static func of(path: String) -> ByteString {
        let path = path.utf8.prefix { $0 != UInt8(ascii: "?") }
        guard path.count > longestPath else { return ByteString([pathMark] + Array(path)) }
        var key = [UInt8](repeating: digestMark, count: SubjectPlan.digestSize)
        key.withUnsafeMutableBytes { key in
            Array(path).withUnsafeBytes { sha256($0, into: UnsafeMutableRawBufferPointer(rebasing: key[1...])) }
        }
        return ByteString(key)
    }
}
