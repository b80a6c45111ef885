import Octets

/// The bytes of a secret. They are wiped when the last reference goes.
public final class SecretBytes: Sendable {
    // Written once in `init`, read-only until `deinit`: nothing to race with.
    private nonisolated(unsafe) let bytes: UnsafeMutableRawBufferPointer

    /// Copies the UTF-8 bytes of `text`. Swift cannot wipe the string itself.
    public convenience init(_ text: String) {
        self.init(wiping: Array(text.utf8))
    }

    /// Copies `source` and wipes that array's storage if no one else holds it.
    public init(wiping source: consuming [UInt8]) {
        bytes = .allocate(byteCount: source.count, alignment: 1)
        let target = bytes
        // With shared storage this would wipe a copy, hence `consuming`.
        source.withUnsafeMutableBytes { raw in
            target.copyMemory(from: UnsafeRawBufferPointer(raw))
            raw.wipe()
        }
    }

    deinit {
        bytes.wipe()
        bytes.deallocate()
    }

    /// In bytes.
    public var count: Int { bytes.count }

    /// Lends the bytes for the length of the call. They must not be kept.
    public func withBytes<Result, Fault: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Fault) -> Result
    ) throws(Fault) -> Result {
        try body(UnsafeRawBufferPointer(bytes))
    }
}

extension SecretBytes: Hashable {
    /// Equal content. The time taken depends on the lengths only.
    public static func == (left: SecretBytes, right: SecretBytes) -> Bool {
        left.withBytes { left in right.withBytes { left.isEqualInConstantTime(to: $0) } }
    }

    /// Over the bytes; a hash table of secrets is never seen from outside.
    public func hash(into hasher: inout Hasher) { hasher.combine(bytes: UnsafeRawBufferPointer(bytes)) }
}

extension SecretBytes: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Dots, whatever the secret is.
    public var description: String { "••••••••" }
    /// Dots, whatever the secret is.
    public var debugDescription: String { description }
    /// Empty, so that `dump` prints nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
