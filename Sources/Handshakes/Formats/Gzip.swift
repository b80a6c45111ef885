internal import CZlib
internal import Octets

/// gzip (RFC 1952), for assertions that travel compressed.
enum Gzip {
    /// Nil only where there is no memory.
    static func compress(_ bytes: [UInt8]) -> [UInt8]? {
        var stream = z_stream()
        guard czlib_start_gzip(&stream) == Z_OK else { return nil }
        defer { deflateEnd(&stream) }
        var output = [UInt8](repeating: 0, count: Int(deflateBound(&stream, UInt(bytes.count))))
        var input = bytes
        let isDone = run(&stream, &input, &output) { deflate(&$0, Z_FINISH) == Z_STREAM_END }
        input.wipe()
        guard isDone else { return nil }
        output.removeLast(Int(stream.avail_out))
        return output
    }

    /// - Parameter limit: of the result; a few octets can stand for gigabytes.
    /// - Returns: nil for what is neither gzip nor zlib, is cut short, or is larger.
    static func decompress(_ bytes: [UInt8], upTo limit: Int) -> [UInt8]? {
        var stream = z_stream()
        guard czlib_start_inflate(&stream) == Z_OK else { return nil }
        defer { inflateEnd(&stream) }
        var output = [UInt8](repeating: 0, count: limit)
        var input = bytes
        let isDone = run(&stream, &input, &output) { inflate(&$0, Z_FINISH) == Z_STREAM_END }
        input.wipe()
        guard isDone else {
            output.wipe()
            return nil
        }
        output.removeLast(Int(stream.avail_out))
        return output
    }

    /// The pointers are the stream's for the length of one call only.
    private static func run(
        _ stream: inout z_stream, _ input: inout [UInt8], _ output: inout [UInt8],
        _ step: (inout z_stream) -> Bool
    ) -> Bool {
        input.withUnsafeMutableBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                stream.next_in = input.baseAddress
                stream.avail_in = UInt32(input.count)
                stream.next_out = output.baseAddress
                stream.avail_out = UInt32(output.count)
                return step(&stream)
            }
        }
    }
}
