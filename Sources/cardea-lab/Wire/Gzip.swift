import CZlib

/// gzip (RFC 1952) of small documents.
enum Gzip {
    private static let largest = 1 << 20

    static func compress(_ bytes: [UInt8]) -> [UInt8]? {
        run(bytes, into: bytes.count + 1024, czlib_start_gzip, deflate, deflateEnd)
    }

    /// Nil for anything that is not one whole gzip member without extra fields.
    static func expand(_ bytes: [UInt8]) -> [UInt8]? {
        guard bytes.starts(with: [0x1F, 0x8B, 8, 0]) else { return nil }
        return run(bytes, into: largest, czlib_start_inflate, inflate, inflateEnd)
    }

    private typealias Step = (UnsafeMutablePointer<z_stream>) -> Int32

    /// Nil unless the stream's end is reached together with the input's.
    private static func run(
        _ bytes: [UInt8], into capacity: Int, _ start: Step, _ step: (z_streamp, Int32) -> Int32, _ end: Step
    ) -> [UInt8]? {
        var stream = z_stream()
        guard start(&stream) == Z_OK else { return nil }
        defer { _ = end(&stream) }
        var input = bytes
        let output = [UInt8](unsafeUninitializedCapacity: capacity) { output, count in
            input.withUnsafeMutableBufferPointer { input in
                stream.next_in = input.baseAddress
                stream.avail_in = UInt32(input.count)
                stream.next_out = output.baseAddress
                stream.avail_out = UInt32(output.count)
                if step(&stream, Z_FINISH) == Z_STREAM_END, stream.avail_in == 0 { count = Int(stream.total_out) }
            }
        }
        return output.isEmpty ? nil : output
    }
}
