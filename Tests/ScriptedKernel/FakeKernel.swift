public import CLinux
import Glibc
public import Reactor

/// A kernel in memory, which a test scripts: sockets are byte queues, time stands until the test moves it, and any call can fail.
///
/// Epoll is edge-triggered as on Linux: a descriptor is reported once after something about it changed, with everything that is true
/// of it then, in the order in which the changes came. A read or write that was cut short, or answered "not now" by a script, leaves
/// an edge behind, because the real kernel does so only when there will be one. Descriptors are used again at once, the lowest
/// first. Calls that no correct program makes are kept in `misuse`.
public final class FakeKernel: Kernel {
    /// Nanoseconds of `CLOCK_BOOTTIME`.
    public var clock: UInt64 = 1_000_000_000_000
    /// Milliseconds between `clock` and the wall clock; somebody who sets the wall clock changes it.
    public var wallOffset: Int64 = 1_700_000_000_000
    /// Decides over the connection attempts to come.
    public var connectPlan: (SocketAddress) -> ConnectPlan = { _ in .accepted }
    /// Where callers are accepted from.
    public var callerAddress = "127.0.0.1"
    /// Who is at the other end of a unix socket.
    public var callerUser: UInt32 = 1000
    /// Where a redirected connection was going, for each that is asked about.
    public var redirected: SocketAddress?
    /// Errors for the next calls of `socket`; zero lets one through.
    public var socketErrors: [Int32] = []
    /// Errors for the next descriptors that are to be watched; zero lets one through.
    public var watchErrors: [Int32] = []
    /// Connections that the gateway began, in order, where they are kept.
    public private(set) var connections: [Peer] = []
    /// Told of each connection that the gateway begins. Who sets it keeps the connections that it wants.
    public var connected: ((Peer) -> Void)?
    /// What was done with descriptors that are not open, and the like.
    public private(set) var misuse: [String] = []
    /// Called when a loop waits, before events are gathered: where a test that lets the loop run plays the peers.
    public var onWait: () -> Void = {}
    /// Called when a read has found nothing.
    public var afterEmptyRead: () -> Void = {}
    /// Waits of the loop so far.
    public private(set) var waits: UInt64 = 0
    /// Milliseconds that the loop was ready to wait the last time.
    public private(set) var lastPatience: Int32 = 0
    /// Errors for the next waits.
    public var waitErrors: [Int32] = []

    /// Pipes that may yet be made.
    public var pipesLeft = Int.max
    /// The most bytes of a pipe.
    public var pipeCapacity = 1 << 20
    /// Errors for the next calls of `splice`; zero lets one through.
    public var spliceErrors: [Int32] = []
    /// Bytes that went into pipes so far.
    public private(set) var spliced: UInt64 = 0

    private var pipes: [FakePipe] = []
    private var sockets: [FakeSocket?] = []
    private var queue: [FakeSocket] = []
    private var listeners: [FakeSocket] = []
    /// Written to in this turn with the announcement that more would follow.
    private var holding: [FakeSocket] = []

    private static let epoll: Int32 = 99_999
    /// Higher than what the process has open: loops ask the system for an eventfd.
    private static let first: Int32 = 100_000
    /// Of pipes; the inlet's number is one more.
    private static let firstPipe: Int32 = 1_000_000

    public override init() {
        super.init()
        queue.reserveCapacity(4096)
        holding.reserveCapacity(4096)
    }

    // MARK: - The test's side

    /// Descriptors that are open.
    public var openDescriptors: Int { sockets.count { $0 != nil } }
    /// Ends of pipes that are open.
    public var openPipeEnds: Int { pipes.reduce(0) { $0 + ($1.outletIsOpen ? 1 : 0) + ($1.inletIsOpen ? 1 : 0) } }
    /// No edge waits to be reported.
    public var isQuiet: Bool { queue.isEmpty }

    /// Moves the virtual clock.
    public func advance(by nanoseconds: UInt64) { clock += nanoseconds }
    /// Moves the virtual clock.
    public func advance(seconds: Double) { clock += UInt64(seconds * 1e9) }

    /// A connected socket and its other end: for a caller whose connection is handed to a loop.
    public func pair() -> (descriptor: Int32, peer: Peer) {
        let socket = make(.connected)
        return (socket.descriptor, Peer(kernel: self, socket: socket, address: nil))
    }

    /// A listening socket, to be watched by an acceptor.
    public func listen() -> Int32 {
        let socket = make(.listening)
        listeners.append(socket)
        return socket.descriptor
    }

    /// A caller in the listener's backlog.
    public func call(_ listener: Int32) -> Peer? {
        guard let socket = find(listener), socket.state == .listening else { return nil }
        // It gets its descriptor when it is accepted.
        let waiting = FakeSocket(descriptor: -1, state: .connected)
        socket.backlog.append(waiting)
        edge(socket)
        return Peer(kernel: self, socket: waiting, address: nil)
    }

    /// Errors for the listener's next calls of `accept`; zero lets one through.
    public func failAccepts(_ listener: Int32, _ errors: [Int32]) { find(listener)?.acceptErrors += errors }

    /// Adds to `misuse`.
    public func complain(_ text: String) { misuse.append(text) }

    // MARK: - Descriptors

    private func make(_ state: FakeSocket.State) -> FakeSocket {
        let socket = FakeSocket(descriptor: -1, state: state)
        place(socket)
        return socket
    }

    /// Gives it the lowest free descriptor.
    private func place(_ socket: FakeSocket) {
        let index = sockets.firstIndex { $0 == nil } ?? sockets.count
        socket.descriptor = Self.first + Int32(index)
        if index == sockets.count { sockets.append(socket) } else { sockets[index] = socket }
    }

    private func find(_ descriptor: Int32) -> FakeSocket? {
        let index = Int(descriptor - Self.first)
        guard index >= 0, index < sockets.count else { return nil }
        return sockets[index]
    }

    private func open(_ descriptor: Int32, _ call: StaticString) -> FakeSocket? {
        if let socket = find(descriptor) { return socket }
        misuse.append("\(call) on descriptor \(descriptor), which is not open")
        return nil
    }

    // MARK: - Epoll

    func edge(_ socket: FakeSocket) {
        guard socket.isWatched, !socket.isQueued else { return }
        socket.isQueued = true
        queue.append(socket)
    }

    private func state(of socket: FakeSocket) -> UInt32 {
        switch socket.state {
        case .listening: return socket.backlog.isEmpty ? 0 : Readiness.readable.rawValue
        case .fresh: return Readiness([.writable, .hungUp]).rawValue
        case .connecting where socket.error == 0: return 0
        case .connecting, .connected: break
        }
        var mask: Readiness = []
        if socket.isReset || socket.state == .connecting {
            mask = [.readable, .writable, .inputEnded, .hungUp]
        } else {
            if !socket.input.isEmpty || socket.inputEnds { mask.insert(.readable) }
            if socket.inputEnds { mask.insert(.inputEnded) }
            if socket.inputEnds, socket.outputEnded { mask.insert(.hungUp) }
            if socket.window > 0 || socket.outputEnded { mask.insert(.writable) }
        }
        if socket.error != 0 { mask.insert(.failed) }
        return mask.rawValue
    }

    // MARK: - Calls

    public override func now() -> UInt64 { clock }
    public override func wallMilliseconds() -> Int64 { wallOffset + Int64(clock / 1_000_000) }

    public override func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        systemCalls &+= 1
        guard let socket = open(descriptor, "read") else { return Int(-EBADF) }
        guard !buffer.isEmpty else {
            misuse.append("read of no bytes")
            return 0
        }
        socket.noteRead(in: waits)
        if !socket.readErrors.isEmpty {
            let error = socket.readErrors.removeFirst()
            if error == EAGAIN { edge(socket) }
            if error != 0 { return Int(-error) }
        }
        if !socket.input.isEmpty {
            let most = min(buffer.count, max(1, socket.mostPerRead))
            let count = socket.input.take(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<most]))
            if count < buffer.count, !socket.input.isEmpty { edge(socket) }
            return count
        }
        if socket.error != 0 {
            let error = socket.error
            socket.error = 0
            return Int(-error)
        }
        if socket.inputEnds { return 0 }
        afterEmptyRead()
        return Int(-EAGAIN)
    }

    public override func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, more: Bool) -> Int {
        systemCalls &+= 1
        guard let socket = open(descriptor, "write") else { return Int(-EBADF) }
        let room = room(in: socket, for: bytes.count)
        if room <= 0 { return room }
        socket.output.append(UnsafeRawBufferPointer(rebasing: bytes[..<room]))
        note(socket, holdsBack: more && room == bytes.count)
        return room
    }

    public override func write(_ descriptor: Int32, _ parts: UnsafeBufferPointer<iovec>, more: Bool) -> Int {
        systemCalls &+= 1
        guard let socket = open(descriptor, "write") else { return Int(-EBADF) }
        var total = 0
        for part in parts { total += part.iov_len }
        let room = room(in: socket, for: total)
        if room <= 0 { return room }
        var left = room
        for part in parts where left > 0 {
            let count = min(left, part.iov_len)
            socket.output.append(UnsafeRawBufferPointer(start: part.iov_base, count: count))
            left -= count
        }
        note(socket, holdsBack: more && room == total)
        return room
    }

    private func note(_ socket: FakeSocket, holdsBack: Bool) {
        socket.holdsBack = holdsBack
        if holdsBack { holding.append(socket) }
        socket.touched?()
    }

    public override func hasInput(_ descriptor: Int32) -> Bool {
        systemCalls &+= 1
        guard let socket = open(descriptor, "poll") else { return false }
        return state(of: socket) & Readiness([.readable, .failed, .hungUp]).rawValue != 0
    }

    // MARK: - Pipes

    public override func makePipe(capacity: Int) -> PipePair? {
        systemCalls &+= 2
        guard pipesLeft > 0 else { return nil }
        pipesLeft -= 1
        let outlet = Self.firstPipe + Int32(pipes.count * 2)
        pipes.append(FakePipe(capacity: min(capacity, pipeCapacity)))
        return PipePair(outlet: outlet, inlet: outlet + 1, capacity: min(capacity, pipeCapacity))
    }

    private func pipe(_ descriptor: Int32) -> FakePipe? {
        let index = Int(descriptor - Self.firstPipe) / 2
        return descriptor >= Self.firstPipe && index < pipes.count ? pipes[index] : nil
    }

    private func closePipe(_ descriptor: Int32) {
        guard let pipe = pipe(descriptor), isInlet(descriptor) ? pipe.inletIsOpen : pipe.outletIsOpen else {
            return complain("close of pipe \(descriptor), which is not open")
        }
        if isInlet(descriptor) { pipe.inletIsOpen = false } else { pipe.outletIsOpen = false }
    }

    private func isInlet(_ descriptor: Int32) -> Bool { (descriptor - Self.firstPipe) % 2 == 1 }

    /// From a socket into a pipe, or from a pipe into a socket, as `read` and `write` would.
    public override func splice(_ from: Int32, to target: Int32, count: Int) -> Int {
        if !spliceErrors.isEmpty {
            let error = spliceErrors.removeFirst()
            systemCalls &+= error == 0 ? 0 : 1
            if error != 0 { return Int(-error) }
        }
        return withUnsafeTemporaryAllocation(byteCount: count, alignment: 16) { buffer in
            if let pipe = pipe(target), pipe.inletIsOpen, isInlet(target) {
                guard pipe.room > 0 else { return Int(-EAGAIN) }
                let most = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(count, pipe.room)])
                let got = read(from, into: most)
                if got > 0 {
                    pipe.bytes.append(UnsafeRawBufferPointer(rebasing: buffer[..<got]))
                    spliced &+= UInt64(got)
                }
                return got
            }
            guard let pipe = pipe(from), pipe.outletIsOpen, !isInlet(from) else {
                complain("splice between \(from) and \(target)")
                return Int(-EINVAL)
            }
            guard !pipe.bytes.isEmpty else { return Int(-EAGAIN) }
            let front = pipe.bytes.copy(into: buffer)
            let put = write(target, UnsafeRawBufferPointer(rebasing: buffer[..<front]), more: false)
            if put > 0 { pipe.bytes.drop(put) }
            return put
        }
    }

    private func room(in socket: FakeSocket, for count: Int) -> Int {
        if !socket.writeErrors.isEmpty {
            let error = socket.writeErrors.removeFirst()
            if error == EAGAIN { edge(socket) }
            if error != 0 { return Int(-error) }
        }
        if socket.state != .connected { return Int(-ENOTCONN) }
        if socket.error != 0 {
            let error = socket.error
            socket.error = 0
            return Int(-error)
        }
        if socket.isReset || socket.outputEnded { return Int(-EPIPE) }
        let room = min(count, socket.window, max(1, socket.mostPerWrite))
        if room < count {
            socket.wantsRoom = true
            // The room that a script takes away, in place of the network, is there again at once.
            if room < socket.window { edge(socket) }
        }
        if room == 0, count > 0 { return Int(-EAGAIN) }
        if socket.window != .max { socket.window -= room }
        return room
    }

    public override func socket(family: Int32) -> Int32 {
        systemCalls &+= 1
        if !socketErrors.isEmpty, case let error = socketErrors.removeFirst(), error != 0 { return -error }
        return make(.fresh).descriptor
    }

    public override func connect(_ descriptor: Int32, to address: SocketAddress) -> Int32 {
        systemCalls &+= 1
        guard let socket = open(descriptor, "connect") else { return -EBADF }
        let plan = connectPlan(address)
        if case .failedAtOnce(let error) = plan { return -error }
        let peer = Peer(kernel: self, socket: socket, address: address)
        if let connected { connected(peer) } else { connections.append(peer) }
        switch plan {
        case .acceptedAtOnce:
            socket.state = .connected
            return 0
        case .accepted:
            socket.state = .connected
        case .failed(let error):
            socket.state = .connecting
            socket.error = error
        case .silent, .failedAtOnce:
            socket.state = .connecting
        }
        return -EINPROGRESS
    }

    public override func socketError(_ descriptor: Int32) -> Int32 {
        systemCalls &+= 1
        guard let socket = open(descriptor, "getsockopt") else { return EBADF }
        defer { socket.error = 0 }
        return socket.error
    }

    public override func accept(
        _ descriptor: Int32, from address: inout sockaddr_storage, length: inout socklen_t
    ) -> Int32 {
        systemCalls &+= 1
        guard let listener = open(descriptor, "accept") else { return -EBADF }
        let error = listener.acceptErrors.isEmpty ? 0 : listener.acceptErrors.removeFirst()
        guard error == 0, !listener.backlog.isEmpty else { return -(error == 0 ? EAGAIN : error) }
        let waiting = listener.backlog.removeFirst()
        place(waiting)
        SocketAddress(host: callerAddress, port: 50_000)?.withStorage { storage, size in
            address = storage.pointee
            length = size
        }
        return waiting.descriptor
    }

    public override func shutdownWriting(_ descriptor: Int32) {
        systemCalls &+= 1
        guard let socket = open(descriptor, "shutdown") else { return }
        socket.outputEnded = true
        socket.holdsBack = false
        if socket.inputEnds { edge(socket) }
        socket.touched?()
    }

    public override func resetOnClose(_ descriptor: Int32) {
        systemCalls &+= 1
        open(descriptor, "setsockopt")?.resetsOnClose = true
    }

    public override func close(_ descriptor: Int32) {
        systemCalls &+= 1
        if descriptor == Self.epoll { return }
        if descriptor >= Self.firstPipe { return closePipe(descriptor) }
        // What watches folders and addresses opens descriptors of the process, whatever its loop's kernel is.
        if descriptor >= 0, descriptor < Self.first { return _ = Glibc.close(descriptor) }
        guard let socket = open(descriptor, "close") else { return }
        socket.isClosed = true
        socket.holdsBack = false
        forget(socket)
        sockets[Int(descriptor - Self.first)] = nil
        socket.touched?()
        socket.touched = nil
    }

    public override func setOption(_ descriptor: Int32, level: Int32, option: Int32, value: Int32) {
        systemCalls &+= 1
        _ = open(descriptor, "setsockopt")
    }

    public override func peerUser(_ descriptor: Int32) -> UInt32? {
        systemCalls &+= 1
        return open(descriptor, "getsockopt") == nil ? nil : callerUser
    }

    public override func unsentCount(_ descriptor: Int32) -> Int {
        systemCalls &+= 1
        return open(descriptor, "ioctl")?.output.count ?? 0
    }

    public override func makeEpoll() -> Int32 {
        systemCalls &+= 1
        return Self.epoll
    }

    public override func watch(_ epoll: Int32, _ descriptor: Int32, events: UInt32, key: UInt64) -> Int32 {
        systemCalls &+= 1
        // The loop's eventfds are real ones: mail is looked for in every turn.
        guard descriptor >= Self.first else { return 0 }
        guard let socket = open(descriptor, "epoll_ctl") else { return -EBADF }
        if !watchErrors.isEmpty, case let error = watchErrors.removeFirst(), error != 0 { return -error }
        guard !socket.isWatched else {
            misuse.append("descriptor \(descriptor) is watched twice")
            return -EEXIST
        }
        socket.isWatched = true
        socket.interest = events | Readiness([.failed, .hungUp]).rawValue
        socket.key = key
        if state(of: socket) & socket.interest != 0 { edge(socket) }
        return 0
    }

    public override func rewatch(_ epoll: Int32, _ descriptor: Int32, events: UInt32, key: UInt64) {
        systemCalls &+= 1
        guard let socket = open(descriptor, "epoll_ctl") else { return }
        if !socket.isWatched { misuse.append("descriptor \(descriptor) is not watched") }
        socket.interest = events | Readiness([.failed, .hungUp]).rawValue
        socket.key = key
        if state(of: socket) & socket.interest != 0 { edge(socket) }
    }

    public override func unwatch(_ epoll: Int32, _ descriptor: Int32) {
        systemCalls &+= 1
        guard let socket = open(descriptor, "epoll_ctl") else { return }
        if !socket.isWatched { misuse.append("descriptor \(descriptor) is not watched") }
        forget(socket)
    }

    private func forget(_ socket: FakeSocket) {
        socket.isWatched = false
        guard socket.isQueued else { return }
        socket.isQueued = false
        queue.removeAll { $0 === socket }
    }

    public override func originalDestination(_ descriptor: Int32) -> SocketAddress? { redirected }

    public override func wait(
        _ epoll: Int32, into events: UnsafeMutableBufferPointer<epoll_event>, milliseconds: Int32
    ) -> Int {
        systemCalls &+= 1
        waits &+= 1
        lastPatience = milliseconds
        for socket in holding where socket.holdsBack {
            misuse.append("descriptor \(socket.descriptor) holds output back, and nothing follows")
        }
        holding.removeAll(keepingCapacity: true)
        onWait()
        if !waitErrors.isEmpty { return Int(-waitErrors.removeFirst()) }
        // A level-triggered listener is ready for as long as somebody waits.
        for listener in listeners
        where listener.isWatched && listener.interest & Self.edgeTriggered == 0 && !listener.backlog.isEmpty {
            edge(listener)
        }
        var count = 0
        var taken = 0
        while taken < queue.count, count < events.count {
            let socket = queue[taken]
            taken += 1
            socket.isQueued = false
            let mask = state(of: socket) & socket.interest
            guard mask != 0 else { continue }
            events[count].events = mask
            events[count].data.u64 = socket.key
            count += 1
        }
        queue.removeFirst(taken)
        return count
    }

    private static let edgeTriggered: UInt32 = 1 << 31
}
