internal import DataPath
internal import Glibc
internal import Numbers
internal import Reactor
internal import Synchronization

/// Listening sockets that somebody opened for us: systemd by socket activation, or the process that we take over from. They are found by
/// address, so that the configuration says the same with and without them.
public final class InheritedSockets: Sendable {
    /// Not yet taken.
    private let waiting: Mutex<[(address: SocketAddress, descriptor: Int32, isSpare: Bool)]>

    /// The first one that is handed over (`SD_LISTEN_FDS_START`).
    private static let first: Int32 = 3
    private static let most: Int32 = 1024

    /// Takes what `LISTEN_FDS` counts, if `LISTEN_PID` means us. What is no listening stream socket is left alone and not used.
    /// - Parameter handed: more of them, which somebody else opened for this process.
    public init(environment: (String) -> String?, handed: [HandedSocket] = []) {
        var found: [(address: SocketAddress, descriptor: Int32, isSpare: Bool)] = []
        if environment("LISTEN_PID").flatMap({ ReceivedNumber($0) }) == ReceivedNumber(getpid()),
            let count = environment("LISTEN_FDS").flatMap({ ReceivedNumber($0)?.within(0...Int32.max) })
        {
            for descriptor in Self.first..<(Self.first + max(0, min(count, Self.most))) {
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
                guard ListeningSocket.isListening(descriptor), let address = ListeningSocket.boundAddress(descriptor)
                else {
                    continue
                }
                _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
                found.append((address, descriptor, true))
            }
        }
        waiting = Mutex(found + Self.found(handed))
    }

    /// Sockets of an earlier process, by the addresses that its configuration gave them: with port 0 the kernel's choice goes on.
    public init(handed: [HandedSocket]) {
        waiting = Mutex(Self.found(handed))
    }

    private static func found(_ handed: [HandedSocket]) -> [(
        address: SocketAddress, descriptor: Int32, isSpare: Bool
    )] {
        handed.compactMap { socket in
            SocketAddress(parsing: socket.address).map { ($0, socket.descriptor, socket.isSpare) }
        }
    }

    /// Closes what the process before served and nobody took: it is then the last that can serve who waits there.
    public func closeRest() {
        waiting.withLock { waiting in
            for socket in waiting where !socket.isSpare { Glibc.close(socket.descriptor) }
            waiting.removeAll { !$0.isSpare }
        }
    }

    /// The sockets that nobody took, for the next process.
    var rest: [HandedSocket] {
        waiting.withLock { $0.map { HandedSocket(address: "\($0.address)", descriptor: $0.descriptor, isSpare: true) } }
    }

    /// Programs that we start must not take the sockets for theirs.
    public static func forget() {
        for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] { unsetenv(name) }
    }

    /// All sockets that are bound to `address`, which are then the caller's to close.
    func take(_ address: SocketAddress) -> [Int32] {
        waiting.withLock { waiting in
            defer { waiting.removeAll { $0.address == address } }
            return waiting.filter { $0.address == address }.map(\.descriptor)
        }
    }

    /// Addresses of sockets that nobody took.
    public var left: [String] { waiting.withLock { $0.map { "\($0.address)" } } }
}
