internal import CLinux
internal import Glibc

/// Starts this program anew for an upgrade in place.
///
/// A process in a sandbox cannot start one outside of it, and one with threads should not fork. So a copy of the process is made at its
/// very beginning: it holds no secret and no descriptor but its socket and the standard ones, shares its memory with us until one of the
/// two writes, sleeps, and dies with us.
public final class Launcher: Sendable {
    /// Readable when a note waits.
    public let descriptor: Int32

    /// A message of the launcher's process.
    public enum Note: Sendable, Equatable {
        case started(process: Int32)
        case cannotStart(errno: Int32)
        /// The started process has ended, with this wait status.
        case ended(status: Int32)
        /// Somebody has killed the launcher.
        case gone
    }

    /// Before any thread, sandbox or secret. The program will be found at the path, and get the arguments and the environment, of this
    /// start.
    /// - Returns: nil where the kernel refuses.
    public init?() {
        let made = cardea_start_launcher(CommandLine.unsafeArgv)
        guard made >= 0 else { return nil }
        descriptor = made
    }

    deinit { Glibc.close(descriptor) }

    /// The path of the executable.
    public static var program: String { cardea_executable().map { String(cString: $0) } ?? "" }

    /// Starts the program with the other end of `channel`. `.started` or `.cannotStart` follows.
    /// - Returns: false when the launcher is gone.
    public func launch(with channel: HandOverChannel.End) -> Bool {
        defer { channel.close() }
        return cardea_launch(descriptor, channel.descriptor) == 0
    }

    /// Kills what was started. `.ended` follows.
    public func kill() { _ = cardea_launch_kill(descriptor) }

    /// The next note; nil when none waits.
    public func next() -> Note? {
        var note = cardea_launch_note()
        let result = cardea_next_launch_note(descriptor, &note)
        guard result != 0 else { return nil }
        guard result > 0 else { return .gone }
        switch note.kind {
        case Int32(CARDEA_LAUNCHED): return .started(process: note.value)
        case Int32(CARDEA_NOT_LAUNCHED): return .cannotStart(errno: note.value)
        default: return .ended(status: note.value)
        }
    }
}
