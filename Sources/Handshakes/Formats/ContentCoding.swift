/// Takes the content coding off a body (RFC 9110 §8.4).
public enum ContentCoding {
    /// - Parameters:
    ///   - coding: the value of `Content-Encoding`.
    ///   - limit: of the result, in bytes; a few can stand for gigabytes.
    /// - Returns: nil for a coding that is neither gzip nor deflate, a list of several, a broken body, and one that is longer.
    public static func decode(_ body: [UInt8], coding: [UInt8], limit: Int) -> [UInt8]? {
        let name = String(decoding: coding, as: UTF8.self).lowercased()
        switch name {
        case "", "identity": return body
        case "gzip", "x-gzip", "deflate": return Gzip.decompress(body, upTo: limit)
        default: return nil
        }
    }
}
