internal import CLinux
internal import Glibc
internal import Numbers
public import World

/// Tells the service manager of systemd how the service fares (sd_notify(3)), without its library: a datagram of `NAME=value` lines to
/// the socket that `NOTIFY_SOCKET` names.
public struct SystemdNotice: Sendable {
    private let path: [UInt8]
    private let time: any TimeSource
    /// Nanoseconds between two signs of life, half of what systemd allows; nil: none are expected.
    public let watchdogInterval: UInt64?

    /// - Parameters:
    ///   - environment: gives a variable's value. Remove the variables afterwards (`forget`): children must not speak for us.
    ///   - time: systemd compares its `CLOCK_MONOTONIC` with its own.
    /// - Returns: nil where nobody listens.
    public init?(environment: (String) -> String?, time: any TimeSource = SystemTime()) {
        self.time = time
        guard let socket = environment("NOTIFY_SOCKET"), let first = socket.utf8.first else { return nil }
        // Neither a path nor an abstract address, for which `@` stands: a kind that we do not know.
        guard first == UInt8(ascii: "/") || first == UInt8(ascii: "@") else { return nil }
        path = Array(socket.utf8)
        let isForUs = environment("WATCHDOG_PID").map { ReceivedNumber($0) == ReceivedNumber(getpid()) } ?? true
        let allowed =
            environment("WATCHDOG_USEC").flatMap { ReceivedNumber($0) }
            .map { TimeSpan($0, .microseconds).nanoseconds } ?? 0
        watchdogInterval = isForUs && allowed > 0 ? allowed / 2 : nil
    }

    /// Takes the variables of `sd_notify(3)` out of the environment, so that no child answers in this process's name.
    public static func forget() {
        for name in ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"] { unsetenv(name) }
    }

    // MARK: - What there is to say

    /// - Parameter process: the one that serves from now on. With `NotifyAccess=main` only the main process is listened to, so the old one
    ///   says who is the next.
    public func ready(_ status: String, process: Int32? = nil) {
        send("READY=1\nSTATUS=\(Self.line(status))\nMAINPID=\(process ?? getpid())")
    }

    /// A line for `systemctl status`, without saying that anything has changed.
    public func status(_ text: String) { send("STATUS=\(Self.line(text))") }

    /// Followed by `ready`. The moment lets systemd tell this reload from an earlier one.
    public func reloading() { send("RELOADING=1\nMONOTONIC_USEC=\(time.awake() / 1000)") }

    /// `STOPPING=1`: the gateway drains.
    public func stopping() { send("STOPPING=1\nSTATUS=draining") }
    /// `WATCHDOG=1`, due within `WATCHDOG_USEC`.
    public func signOfLife() { send("WATCHDOG=1") }

    private static func line(_ text: String) -> String {
        String(decoding: text.utf8.prefix(512).map { $0 < 0x20 ? 0x20 : $0 }, as: UTF8.self)
    }

    /// Sends once, without waiting: a service manager that does not read must not hold us up.
    private func send(_ text: String) {
        let bytes = Array(text.utf8)
        _ = path.withUnsafeBytes { path in
            bytes.withUnsafeBytes { cardea_notify(path.baseAddress, path.count, $0.baseAddress, $0.count) }
        }
    }
}
