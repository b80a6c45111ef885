import Glibc
public import Reactor

/// The other end of one connection, as a test plays it: a caller of the gateway or an upstream.
///
/// What the gateway's end does is not called but observed: bytes in `received`, the end of them in `sawEnd`.
public final class Peer {
    unowned let kernel: FakeKernel
    let socket: FakeSocket
    /// Where the gateway connected to; nil for a caller.
    public let address: SocketAddress?

    init(kernel: FakeKernel, socket: FakeSocket, address: SocketAddress?) {
        self.kernel = kernel
        self.socket = socket
        self.address = address
    }

    // MARK: - Sending to the gateway

    /// Does nothing once the sending direction is closed.
    public func send(_ bytes: UnsafeRawBufferPointer) {
        guard !socket.inputEnds, socket.error == 0 else { return }
        socket.input.append(bytes)
        kernel.edge(socket)
    }

    /// Does nothing once the sending direction is closed.
    public func send(_ bytes: [UInt8]) { bytes.withUnsafeBytes { send($0) } }
    /// Sends the UTF-8 of the text.
    public func send(_ text: String) { send(Array(text.utf8)) }

    /// Says that no more comes (FIN). The other direction stays open.
    public func finish() {
        socket.inputEnds = true
        kernel.edge(socket)
    }

    /// Ends the connection at once (RST). What was sent before can still be read, as on Linux.
    public func reset(_ error: Int32? = nil) {
        socket.inputEnds = true
        socket.isReset = true
        socket.error = error ?? ECONNRESET
        kernel.edge(socket)
    }

    // MARK: - What the gateway sent

    /// Octets that were not taken yet.
    public var received: [UInt8] { socket.output.prefix(.max) }
    /// The octets that were not taken yet, as UTF-8.
    public var receivedText: String { String(decoding: received, as: UTF8.self) }
    /// How many octets were not taken yet.
    public var receivedCount: Int { socket.output.count }

    /// Takes what was received; the window stays as it is.
    public func take() -> [UInt8] {
        take(socket.output.count)
    }

    /// Takes the first octets of it alone, as a slow reader does.
    public func take(_ count: Int) -> [UInt8] {
        let bytes = socket.output.prefix(count)
        socket.output.drop(bytes.count)
        return bytes
    }

    /// Takes what was received, as UTF-8.
    public func takeText() -> String { String(decoding: take(), as: UTF8.self) }

    /// Takes what was received without copying it anywhere.
    public func discard() { socket.output.drop(socket.output.count) }

    /// The gateway said that no more comes, or closed.
    public var sawEnd: Bool { socket.outputEnded || socket.isClosed }
    /// The gateway closed its descriptor so that the connection was reset.
    public var sawReset: Bool { socket.isClosed && socket.resetsOnClose }
    /// The gateway closed its descriptor.
    public var isClosed: Bool { socket.isClosed }
    /// Bytes that the gateway has not read.
    public var unread: Int { socket.input.count }

    /// Called whenever the gateway has written, said that no more comes, or closed. It is forgotten once the gateway has closed.
    public var touched: (() -> Void)? {
        get { socket.touched }
        set { socket.touched = newValue }
    }

    // MARK: - Scripts

    /// Bytes that the gateway's writes may still put on the wire; opening it wakes a writer that waits.
    public var window: Int {
        get { socket.window }
        set {
            let opens = newValue > 0 && socket.window == 0
            socket.window = newValue
            if opens, socket.wantsRoom { kernel.edge(socket) }
        }
    }

    /// The most reads of the socket in one turn of its loop.
    public var mostReads: Int { socket.mostReads }
    /// Most bytes that one read of the gateway moves.
    public var mostPerRead: Int {
        get { socket.mostPerRead }
        set { socket.mostPerRead = newValue }
    }
    /// Most bytes that one write of the gateway moves.
    public var mostPerWrite: Int {
        get { socket.mostPerWrite }
        set { socket.mostPerWrite = newValue }
    }

    /// Errors (`EAGAIN`, `EINTR`, `ECONNRESET`, …) for the gateway's next reads, first one first; zero lets one through.
    public func failReads(_ errors: [Int32]) { socket.readErrors += errors }
    /// Errors for the gateway's next writes, first one first; zero lets one through.
    public func failWrites(_ errors: [Int32]) { socket.writeErrors += errors }

    /// Ends a connection attempt that `ConnectPlan.silent` left open.
    public func accept() {
        socket.state = .connected
        kernel.edge(socket)
    }
}

/// What becomes of a connection attempt.
public enum ConnectPlan: Sendable {
    /// `EINPROGRESS`, then writable.
    case accepted
    /// Zero at once, as for unix sockets.
    case acceptedAtOnce
    /// An error at once: the value of `errno`.
    case failedAtOnce(Int32)
    /// `EINPROGRESS`, then an error: `ECONNREFUSED`, `ETIMEDOUT`, ….
    case failed(Int32)
    /// Nothing happens until the test calls `accept` or `reset`.
    case silent
}

/// The gateway's end, as the kernel sees it.
final class FakeSocket {
    enum State { case fresh, connecting, connected, listening }

    /// −1 while it waits in a backlog.
    var descriptor: Int32
    var state: State
    var input = ByteQueue()
    var output = ByteQueue()
    /// A FIN stands behind `input`.
    var inputEnds = false
    /// The gateway shut its writing side down.
    var outputEnded = false
    var isReset = false
    /// The last write said that more would follow at once.
    var holdsBack = false
    var isClosed = false
    var resetsOnClose = false
    /// Pending, reported once.
    var error: Int32 = 0
    var window = Int.max
    /// A write found no room: opening the window is an edge.
    var wantsRoom = false
    var mostPerRead = Int.max
    private(set) var mostReads = 0
    private var reads = (turn: UInt64(0), count: 0)
    var mostPerWrite = Int.max
    var readErrors: [Int32] = []
    var writeErrors: [Int32] = []
    // A listener's.
    var backlog: [FakeSocket] = []
    var acceptErrors: [Int32] = []
    /// The gateway did something that its peer would see.
    var touched: (() -> Void)?

    // Epoll.
    var interest: UInt32 = 0
    var key: UInt64 = 0
    var isWatched = false
    var isQueued = false

    func noteRead(in turn: UInt64) {
        if reads.turn != turn { reads = (turn, 0) }
        reads.count += 1
        mostReads = max(mostReads, reads.count)
    }

    init(descriptor: Int32, state: State) {
        self.descriptor = descriptor
        self.state = state
    }
}
