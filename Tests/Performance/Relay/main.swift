internal import CLinux
internal import Glibc

/// The least that any proxy in Swift could do: bytes go from socket to socket, and one header line is put behind the request line.
///
/// It parses nothing, pools nothing, bounds nothing and knows one message a read; the benchmark needs it as the floor that the gateway's
/// own work stands on. Usage: `bare-relay LISTEN-PORT ORIGIN-PORT HEADER-LINE`.

let arguments = CommandLine.arguments
guard arguments.count == 4, let port = UInt16(arguments[1]), let origin = UInt16(arguments[2]) else {
    print("usage: bare-relay LISTEN-PORT ORIGIN-PORT HEADER-LINE")
    exit(64)
}
let line = Array((arguments[3] + "\r\n").utf8)
signal(SIGPIPE, SIG_IGN)

func check(_ result: Int32, _ what: String) -> Int32 {
    guard result >= 0 else {
        perror(what)
        exit(71)
    }
    return result
}

func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
}

func withAddress(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
    var address = loopback(port)
    return withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
}

func noDelay(_ socket: Int32) {
    var on: Int32 = 1
    setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
}

func stream(_ flags: Int32) -> Int32 {
    let descriptor = check(socket(AF_INET, Int32(SOCK_STREAM.rawValue) | flags, 0), "socket")
    noDelay(descriptor)
    return descriptor
}

/// Two sockets for each caller, and who is whose peer.
struct Relay: ~Copyable {
    static let limit = 65_536
    static let capacity = 65_536

    let line: [UInt8]
    let origin: UInt16
    let poll: Int32
    let listener: Int32
    let bytes: UnsafeMutablePointer<UInt8>
    /// By descriptor: the other end.
    let peers = UnsafeMutablePointer<Int32>.allocate(capacity: Relay.limit)
    let isCaller = UnsafeMutablePointer<Bool>.allocate(capacity: Relay.limit)

    init(port: UInt16, origin: UInt16, line: [UInt8]) {
        self.line = line
        self.origin = origin
        bytes = .allocate(capacity: Self.capacity + line.count)
        listener = stream(Int32(SOCK_NONBLOCK.rawValue))
        var on: Int32 = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        let socket = listener
        _ = check(withAddress(port) { bind(socket, $0, $1) }, "bind")
        _ = check(listen(listener, 1024), "listen")
        poll = check(epoll_create1(0), "epoll_create1")
        watch(listener)
    }

    func watch(_ socket: Int32) {
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.fd = socket
        _ = check(epoll_ctl(poll, EPOLL_CTL_ADD, socket, &event), "epoll_ctl")
    }

    func run() {
        let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: 256)
        while true {
            let count = epoll_wait(poll, events, 256, -1)
            guard count > 0 else { continue }
            for index in 0..<Int(count) {
                let socket = events[index].data.fd
                if socket == listener { accept() } else { pass(from: socket) }
            }
        }
    }

    func accept() {
        let caller = Glibc.accept(listener, nil, nil)
        guard caller >= 0, caller < Self.limit else { return }
        _ = fcntl(caller, F_SETFL, O_NONBLOCK)
        noDelay(caller)
        let upstream = stream(0)
        _ = check(withAddress(origin) { connect(upstream, $0, $1) }, "connect")
        _ = fcntl(upstream, F_SETFL, O_NONBLOCK)
        peers[Int(caller)] = upstream
        peers[Int(upstream)] = caller
        isCaller[Int(caller)] = true
        isCaller[Int(upstream)] = false
        watch(caller)
        watch(upstream)
    }

    func pass(from socket: Int32) {
        let received = read(socket, bytes, Self.capacity)
        guard received > 0 else {
            if received == 0 || errno != EAGAIN { end(socket) }
            return
        }
        var total = received
        if isCaller[Int(socket)], let newline = memchr(bytes, 10, received) {
            let after = UnsafeMutableRawPointer(bytes).distance(to: newline) + 1
            memmove(bytes + after + line.count, bytes + after, received - after)
            for (index, byte) in line.enumerated() { bytes[after + index] = byte }
            total += line.count
        }
        send(bytes, total, to: peers[Int(socket)])
    }

    /// Small messages only: a full socket means that the benchmark is misused, and the rest is dropped.
    func send(_ from: UnsafeMutablePointer<UInt8>, _ count: Int, to socket: Int32) {
        var sent = 0
        while sent < count {
            let result = write(socket, from + sent, count - sent)
            guard result > 0 else { return }
            sent += result
        }
    }

    func end(_ socket: Int32) {
        close(peers[Int(socket)])
        close(socket)
    }
}

Relay(port: port, origin: origin, line: line).run()
