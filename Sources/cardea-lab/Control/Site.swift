import Glibc
import Synchronization

/// Answers the requests of a site.
protocol Handler: Sendable {
    /// Nil means that everything was already sent and the connection is to be closed.
    func answer(_ request: Request, _ connection: Connection) throws(WireFault) -> Response?
}

/// A listening address: accepts, gives every connection a thread, and can be stopped and started again on the same
/// port.
final class Site: Sendable {
    /// More connections than this are closed at once.
    static let connectionLimit = 4_000

    /// Where a connection stands between two requests.
    private enum Phase {
        case idle
        case busy
        /// Busy, and to be closed without a word when it becomes idle.
        case closing
    }

    private struct State {
        var listener: Int32 = -1
        var port: UInt16 = 0
        var open: [Int32: Phase] = [:]
    }

    let name: String
    private let host: String
    private let ledger: Ledger
    private let handler: any Handler
    private let state: Mutex<State>

    init(name: String, host: String, port: UInt16, ledger: Ledger, handler: any Handler) {
        self.name = name
        self.host = host
        self.ledger = ledger
        self.handler = handler
        state = Mutex(State(port: port))
    }

    private var faults: Faults { ledger.faults }

    var address: String { "\(host):\(state.withLock { $0.port })" }

    var openConnections: Int { state.withLock { $0.open.count } }
}

// MARK: - Listening

extension Site {
    /// Nil on success, else why the address cannot be had.
    func start() -> String? {
        let already = state.withLock { $0.listener >= 0 }
        if already { return nil }
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return reason("socket") }
        var on: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = state.withLock { $0.port }.bigEndian
        guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else {
            close(descriptor)
            return "'\(host)' is not an IPv4 address"
        }
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) == 0 && listen(descriptor, 1024) == 0
                    && getsockname(descriptor, $0, &size) == 0
            }
        }
        guard bound else {
            let why = reason("\(host)")
            close(descriptor)
            return why
        }
        let port = UInt16(bigEndian: address.sin_port)
        state.withLock {
            $0.listener = descriptor
            $0.port = port
        }
        Threads.start { self.accept(on: descriptor) }
        return nil
    }

    /// Closes the listening socket and every connection.
    func stop() {
        state.withLock { state in
            if state.listener >= 0 {
                // Only shutdown wakes a thread that is blocked in accept; that thread then closes the socket.
                shutdown(state.listener, Int32(SHUT_RDWR))
                state.listener = -1
            }
            for descriptor in state.open.keys { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
    }

    /// Closes the connections that wait between two requests, and those in use as soon as they wait; says how many.
    func closeIdle() -> Int {
        state.withLock { state in
            for (descriptor, phase) in state.open {
                if phase == .idle { shutdown(descriptor, Int32(SHUT_RDWR)) } else { state.open[descriptor] = .closing }
            }
            return state.open.count
        }
    }

    private func reason(_ what: String) -> String { "\(what): \(String(cString: strerror(errno)))" }

    private func accept(on listener: Int32) {
        while true {
            let descriptor = Glibc.accept(listener, nil, nil)
            if descriptor < 0 {
                if errno == EINTR || errno == ECONNABORTED { continue }
                if errno == EMFILE || errno == ENFILE {
                    usleep(10_000)
                    continue
                }
                close(listener)
                return
            }
            let admitted = state.withLock { state in
                guard state.listener == listener, state.open.count < Site.connectionLimit else { return false }
                state.open[descriptor] = .idle
                return true
            }
            ledger.count("\(name)_connections")
            guard admitted, Threads.start({ self.serve(descriptor) }) else {
                forget(descriptor)
                continue
            }
        }
    }

    private func forget(_ descriptor: Int32) {
        // Closed under the lock: `stop` must never shut down a descriptor that was closed and given out again.
        state.withLock {
            $0.open[descriptor] = nil
            close(descriptor)
        }
    }

    private func begin(_ descriptor: Int32) {
        state.withLock { $0.open[descriptor] = .busy }
    }

    /// False when the connection was told to close meanwhile.
    private func becomeIdle(_ descriptor: Int32) -> Bool {
        state.withLock {
            guard $0.open[descriptor] == .busy else { return false }
            $0.open[descriptor] = .idle
            return true
        }
    }
}

// MARK: - Serving

extension Site {
    private func serve(_ descriptor: Int32) {
        defer { forget(descriptor) }
        let connection = Connection(descriptor: descriptor)
        do {
            var served = 0
            while let request = try connection.readHead() {
                begin(descriptor)
                if name != "control" { ledger.record(name, request) }
                if served > 0, name == "protected", faults.take("close_on_reuse", path: request.path) != nil {
                    ledger.count("closed_on_reuse")
                    return
                }
                guard let response = try handler.answer(request, connection) else { return }
                let keepAlive = request.keepsAlive && !response.closes
                guard try deliver(response, request, connection, keepAlive: keepAlive), keepAlive else {
                    linger(connection)
                    return
                }
                served += 1
                guard becomeIdle(descriptor) else { return }
                if name == "protected", let fault = faults.take("close_idle", path: request.path) {
                    Moment.wait(milliseconds: fault.number ?? 0) { connection.peerIsGone }
                    return
                }
            }
        } catch .refused(let status, let why) {
            ledger.count("malformed")
            ledger.refuse("\(name): \(status) \(why)")
            var response = Response.text(why + "\n", status)
            response.closes = true
            try? connection.send(response, to: nil, keepAlive: false)
            linger(connection)
        } catch {}
    }

    /// Only the protected site lies on the wire; the others have their faults in their answers.
    private func deliver(
        _ response: Response, _ request: Request, _ connection: Connection, keepAlive: Bool
    ) throws(WireFault) -> Bool {
        guard name == "protected" else {
            try connection.send(response, to: request, keepAlive: keepAlive)
            return true
        }
        return try FaultyDelivery(faults: faults, connection: connection, request: request)
            .deliver(response, keepAlive: keepAlive)
    }

    /// Ends our side and reads on for a moment: a close with unread octets would become a reset that destroys the
    /// answer.
    private func linger(_ connection: Connection) {
        shutdown(connection.descriptor, Int32(SHUT_WR))
        var patience = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(connection.descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        let scrap = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 * 1024, alignment: 16)
        defer { scrap.deallocate() }
        let end = Moment.now() + 2_000
        while Moment.now() < end, recv(connection.descriptor, scrap.baseAddress, scrap.count, 0) > 0 {}
    }
}

// MARK: - Threads

enum Threads {
    private final class Work: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Runs `body` on a detached thread of 512 KiB stack; false when there is none to be had.
    @discardableResult
    static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, 512 * 1024)
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        var thread = pthread_t()
        let work = Unmanaged.passRetained(Work(body))
        let status = pthread_create(
            &thread, &attributes,
            { pointer in
                if let pointer { Unmanaged<Work>.fromOpaque(pointer).takeRetainedValue().body() }
                return nil
            }, work.toOpaque())
        if status != 0 { work.release() }
        return status == 0
    }
}
