internal import Octets

/// Bytes that must not be seen: immutable, wiped when the last reference goes, silent in every description.
public final class Secret: Sendable {
    // Written in `init` and wiped in `deinit` only; in between any thread may read it.
    private nonisolated(unsafe) let storage: UnsafeMutableRawBufferPointer

    /// Copies the bytes; the caller wipes its own.
    public init(_ bytes: UnsafeRawBufferPointer) {
        storage = .allocate(byteCount: bytes.count, alignment: 1)
        storage.copyMemory(from: bytes)
    }

    /// Copies the bytes; the caller wipes its own.
    public convenience init(_ bytes: [UInt8]) {
        self.init(bytes[...])
    }

    /// Copies the bytes; the caller wipes its own.
    public convenience init(_ bytes: ArraySlice<UInt8>) {
        self.init(unsafeCopyOf: bytes)
    }

    /// Copies the UTF-8 of the text, which itself cannot be wiped.
    public convenience init(_ text: String) {
        self.init(unsafeCopyOf: text.utf8)
    }

    /// Takes the bytes over and wipes the array they came in.
    public convenience init(taking bytes: inout [UInt8]) {
        self.init(bytes[...])
        bytes.wipe()
    }

    private init(unsafeCopyOf bytes: some Collection<UInt8>) {
        storage = .allocate(byteCount: bytes.count, alignment: 1)
        storage.copyBytes(from: bytes)
    }

    deinit {
        storage.wipe()
        storage.deallocate()
    }

    /// How many bytes there are.
    public var count: Int { storage.count }
    /// True where there is no byte.
    public var isEmpty: Bool { storage.isEmpty }

    /// The bytes, for the length of the call. The pointer must not leave it.
    public func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(storage))
    }
}

// MARK: - Equality

extension Secret: Equatable {
    /// Takes the same time wherever the bytes differ; only the lengths show.
    public static func == (left: Secret, right: Secret) -> Bool {
        left.withBytes { left in right.withBytes { left.isEqualInConstantTime(to: $0) } }
    }
}

// MARK: - Silence

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// A fixed text, whatever the secret is.
    public var description: String { "<secret>" }
    /// A fixed text, whatever the secret is.
    public var debugDescription: String { "<secret>" }
    /// Empty, so that `dump` prints nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
