internal import Glibc
internal import TLS

/// One connection to the server: a socket that never blocks, with TLS on it where it is asked for, and waits that have an end.
/// Owned by one thread.
final class RedisWire {
    let descriptor: Int32
    private var connection: TLSConnection?
    private var isClosed = false

    /// What one step did.
    enum Step: Equatable {
        case bytes(Int)
        case waits(Int16)
        case ended(String)
    }

    /// Connects, with the TLS handshake, before `deadline`. The name is looked up by the C library, whose own limits apply to that part.
    init(_ settings: RedisSettings, _ client: TLSClientConfiguration?, deadline: Int64) throws(RedisFault) {
        switch settings.place {
        case .unix(let path): descriptor = try Self.connect(path: path)
        case .tcp(let host, let port): descriptor = try Self.connect(host, port, deadline)
        }
        guard let client, case .tcp(let host, _) = settings.place else { return }
        do throws(TLSFault) {
            let connection = try TLSConnection(client: client, serverName: host, descriptor: descriptor)
            self.connection = connection
            try shake(connection, deadline)
        } catch {
            self.connection = nil
            Glibc.close(descriptor)
            isClosed = true
            throw RedisFault(.unavailable, "TLS: \(error.message)")
        }
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        connection?.shutdown()
        // It is freed before the descriptor may become another's.
        connection = nil
        Glibc.close(descriptor)
    }

    deinit { close() }

    var hasBufferedInput: Bool { connection?.hasBufferedInput ?? false }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Step {
        if let connection { return step(connection.read(into: buffer)) }
        let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
        if count > 0 { return .bytes(count) }
        if count == 0 { return .ended("the server closed the connection") }
        return errno == EAGAIN || errno == EINTR ? .waits(Int16(POLLIN)) : .ended(Self.errorText(errno))
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Step {
        if let connection { return step(connection.write(bytes)) }
        let count = send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        if count >= 0 { return .bytes(count) }
        return errno == EAGAIN || errno == EINTR ? .waits(Int16(POLLOUT)) : .ended(Self.errorText(errno))
    }

    private func step(_ result: TLSIO) -> Step {
        switch result {
        case .bytes(let count): .bytes(count)
        case .wantsRead: .waits(Int16(POLLIN))
        case .wantsWrite: .waits(Int16(POLLOUT))
        case .closed, .truncated: .ended("the server closed the connection")
        case .failed(let fault): .ended(fault.message)
        }
    }

    private func shake(_ connection: TLSConnection, _ deadline: Int64) throws(TLSFault) {
        while true {
            let wanted: Int16
            switch connection.handshake() {
            case .done: return
            case .wantsRead: wanted = Int16(POLLIN)
            case .wantsWrite: wanted = Int16(POLLOUT)
            case .failed(let fault): throw fault
            }
            guard Self.wait(descriptor, wanted, until: deadline) else {
                throw TLSFault(.closed, "the handshake took too long")
            }
        }
    }

    // MARK: - Connecting

    private static func connect(path: String) throws(RedisFault) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let capacity = MemoryLayout.size(ofValue: address.sun_path)
        guard path.utf8.count < capacity else { throw RedisFault(.unavailable, "\(path): too long for a socket") }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let descriptor = socket(
            AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw RedisFault(.unavailable, errorText(errno)) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(descriptor, $0, size) }
        }
        guard result == 0 else {
            let reason = errorText(errno)
            Glibc.close(descriptor)
            throw RedisFault(.unavailable, "\(path): \(reason)")
        }
        return descriptor
    }

    private static func connect(_ host: String, _ port: UInt16, _ deadline: Int64) throws(RedisFault) -> Int32 {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_NUMERICSERV
        var found: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, "\(port)", &hints, &found)
        guard status == 0, let first = found else {
            throw RedisFault(.unavailable, "\(host): \(String(cString: gai_strerror(status)))")
        }
        defer { freeaddrinfo(first) }
        var reason = "no address"
        var next: UnsafeMutablePointer<addrinfo>? = first
        while let entry = next {
            next = entry.pointee.ai_next
            let kind = entry.pointee.ai_socktype | Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
            let descriptor = socket(entry.pointee.ai_family, kind, 0)
            guard descriptor >= 0 else { continue }
            var failure: Int32 = 0
            if Glibc.connect(descriptor, entry.pointee.ai_addr, entry.pointee.ai_addrlen) != 0 { failure = errno }
            if failure == EINPROGRESS {
                failure = ETIMEDOUT
                if wait(descriptor, Int16(POLLOUT), until: deadline) {
                    var size = socklen_t(MemoryLayout<Int32>.size)
                    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &failure, &size)
                }
            }
            if failure == 0 {
                var one: Int32 = 1
                setsockopt(
                    descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
                return descriptor
            }
            reason = errorText(failure)
            Glibc.close(descriptor)
        }
        throw RedisFault(.unavailable, "\(host):\(port): \(reason)")
    }

    /// False when the deadline has passed.
    static func wait(_ descriptor: Int32, _ events: Int16, until deadline: Int64) -> Bool {
        while true {
            let left = deadline - milliseconds()
            guard left > 0 else { return false }
            var watched = pollfd(fd: descriptor, events: events, revents: 0)
            if poll(&watched, 1, Int32(clamping: left)) > 0 { return true }
        }
    }

    /// Of CLOCK_MONOTONIC: waits are measured while the machine is awake.
    static func milliseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    static func errorText(_ number: Int32) -> String { String(cString: strerror(number)) }
}
