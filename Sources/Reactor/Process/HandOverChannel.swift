internal import CLinux
internal import Glibc
internal import Numbers

/// The channel between the two processes of an upgrade: short messages, some with descriptors, in order and whole.
public final class HandOverChannel: Sendable {
    /// Readable when a message waits.
    public let descriptor: Int32

    /// The end that another process gets.
    public struct End: Sendable {
        let descriptor: Int32
        /// For the process that has handed the end to another.
        public func close() { Glibc.close(descriptor) }
    }

    /// A datagram between the two processes.
    public struct Message: Sendable {
        /// UTF-8; at most one datagram's bytes.
        public var text: String
        /// Close-on-exec, the receiver's to close.
        public var descriptors: [Int32]
    }

    /// The result of a read.
    public enum Received: Sendable {
        case message(Message)
        case nothing
        /// The other process has closed its end, or is gone.
        case end
    }

    /// Descriptors that one message carries.
    public static let descriptorLimit = Int(CARDEA_CHANNEL_DESCRIPTORS)

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { Glibc.close(descriptor) }

    /// - Returns: nil when the kernel refuses.
    public static func make() -> (ours: HandOverChannel, theirs: End)? {
        var ends: [Int32] = [-1, -1]
        guard cardea_channel(&ends) == 0 else { return nil }
        return (HandOverChannel(ends[0]), End(descriptor: ends[1]))
    }

    /// The end that the launcher gave this process; nil where nobody hands over. Once: who is started by us is not meant.
    public static func ofThisStart() -> HandOverChannel? {
        guard let text = getenv("CARDEA_HANDOVER").map({ String(cString: $0) }) else { return nil }
        unsetenv("CARDEA_HANDOVER")
        guard let descriptor = ReceivedNumber(text)?.within(3...Int32.max), cardea_is_channel(descriptor) != 0 else {
            return nil
        }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        return HandOverChannel(descriptor)
    }

    /// - Returns: false when the other end is closed, or does not read.
    @discardableResult
    public func send(_ text: String, descriptors: [Int32] = []) -> Bool {
        let bytes = Array(text.utf8.prefix(Int(CARDEA_CHANNEL_TEXT)))
        return bytes.withUnsafeBytes { bytes in
            cardea_channel_send(descriptor, bytes.baseAddress, bytes.count, descriptors, descriptors.count) == 0
        }
    }

    /// The next message.
    /// - Parameter waits: until there is one, or the end.
    public func receive(waits: Bool) -> Received {
        var descriptors = [Int32](repeating: -1, count: Self.descriptorLimit)
        var count = 0
        var text = [UInt8](repeating: 0, count: Int(CARDEA_CHANNEL_TEXT))
        let length = cardea_channel_receive(descriptor, &text, text.count, &descriptors, &count, waits ? 1 : 0)
        if length == -Int(EAGAIN) { return .nothing }
        guard length > 0 else { return .end }
        return .message(
            Message(text: String(decoding: text[..<length], as: UTF8.self), descriptors: Array(descriptors[..<count])))
    }
}
