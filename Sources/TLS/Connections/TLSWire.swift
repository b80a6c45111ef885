internal import COpenSSL
internal import Glibc

/// The carrier of a TLS connection's records. OpenSSL does not hold the socket itself: bytes can be received before there is a connection,
/// and every system call goes through its owner's seam.
public protocol TLSWire: AnyObject {
    /// Reads once.
    /// - Returns: bytes read; zero at the end of input; `-errno`, with `-EAGAIN` when there is nothing now.
    func receive(into buffer: UnsafeMutableRawBufferPointer) -> Int
    /// Writes once.
    /// - Returns: bytes written, or `-errno`, with `-EAGAIN` when there is no room now.
    func transmit(_ bytes: UnsafeRawBufferPointer) -> Int
}

/// OpenSSL's view of a wire. Its data is the connection, which frees it together with the handle and so outlives it.
enum WireBIO {
    /// Made once and never freed, as every method of OpenSSL's own.
    nonisolated(unsafe) private static let method: OpaquePointer? = {
        guard let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire") else { return nil }
        BIO_meth_set_read(method) { bio, buffer, count in
            guard let connection = WireBIO.connection(of: bio), let buffer, count > 0 else { return -1 }
            let result = connection.takeFromWire(into: .init(start: buffer, count: Int(count)))
            return WireBIO.settle(result, bio, retry: BIO_FLAGS_READ)
        }
        BIO_meth_set_write(method) { bio, bytes, count in
            guard let connection = WireBIO.connection(of: bio), let bytes, count > 0 else { return -1 }
            let result = connection.giveToWire(.init(start: bytes, count: Int(count)))
            return WireBIO.settle(result, bio, retry: BIO_FLAGS_WRITE)
        }
        BIO_meth_set_ctrl(method) { bio, command, _, _ in
            switch command {
            case BIO_CTRL_FLUSH: 1
            case BIO_CTRL_EOF: WireBIO.connection(of: bio)?.wireEnded == true ? 1 : 0
            default: 0
            }
        }
        return method
    }()

    static func make() -> OpaquePointer? {
        guard let method, let bio = BIO_new(method) else { return nil }
        BIO_set_init(bio, 1)
        return bio
    }

    private static func connection(of bio: OpaquePointer?) -> TLSConnection? {
        guard let bio, let data = BIO_get_data(bio) else { return nil }
        return Unmanaged<TLSConnection>.fromOpaque(data).takeUnretainedValue()
    }

    /// A result of the wire in OpenSSL's convention: what may be tried again is flagged, and a real failure leaves its number behind.
    private static func settle(_ result: Int, _ bio: OpaquePointer?, retry: Int32) -> Int32 {
        BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_IO_SPECIAL | BIO_FLAGS_SHOULD_RETRY)
        guard result < 0 else { return Int32(clamping: result) }
        let number = Int32(clamping: -result)
        if number == EAGAIN || number == EINTR { BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY) }
        errno = number
        return -1
    }
}
