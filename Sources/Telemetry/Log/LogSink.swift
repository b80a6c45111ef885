import Glibc

/// Lines on their way to a descriptor that may be a pipe whose reader has stopped. Never blocks and never grows.
///
/// The descriptor stays blocking: standard output is shared with whoever started us, and `O_NONBLOCK` would be theirs too.
/// Instead it writes only after `poll` said that there is room, and at most `PIPE_BUF` bytes a time: that much a
/// writable pipe takes without blocking (pipe(7)).
struct LogSink: ~Copyable {
    let descriptor: Int32
    /// A line that does not fit is not taken.
    let capacity: Int
    private let piece: Int
    private var bytes: [UInt8] = []
    private var written = 0
    /// The pipe has no reader any more: it is closed, or its reader is gone.
    private(set) var isBroken = false
    /// Lines that were given up because the descriptor broke.
    private(set) var lost: UInt64 = 0

    static let longestLine = 8192

    init(descriptor: Int32, capacity: Int = 64 * 1024) {
        self.descriptor = descriptor
        self.capacity = max(capacity, Self.longestLine)
        var status = stat()
        // A regular file does not block in this sense, and larger writes cost less.
        let isFile = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        piece = isFile ? self.capacity : 4096
        bytes.reserveCapacity(self.capacity)
    }

    var isEmpty: Bool { bytes.isEmpty }
    var hasRoom: Bool { bytes.count + Self.longestLine <= capacity }

    mutating func append(_ line: [UInt8]) {
        guard !isBroken, bytes.count + line.count <= capacity else {
            lost &+= 1
            return
        }
        bytes.append(contentsOf: line)
    }

    /// Writes what the descriptor takes now.
    /// - Returns: whether everything went out.
    mutating func flush() -> Bool {
        while written < bytes.count, !isBroken {
            var check = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard poll(&check, 1, 0) > 0 else { break }
            let count = bytes.withUnsafeBytes { raw in
                write(descriptor, raw.baseAddress.map { $0 + written }, min(piece, raw.count - written))
            }
            if count > 0 {
                written += count
            } else if errno != EINTR {
                if errno == EAGAIN { break }
                isBroken = true
                lost &+= UInt64(bytes[written...].count { $0 == 0x0a })
                written = bytes.count
            }
        }
        if written == bytes.count {
            bytes.removeAll(keepingCapacity: true)
            written = 0
            return true
        }
        // Room at the front is only won by moving the rest; worth it once half is gone.
        if written > capacity / 2 {
            bytes.removeFirst(written)
            written = 0
        }
        return false
    }
}
