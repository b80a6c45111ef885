internal import CGSSAPI
internal import Synchronization

/// A security context of the initiator's side (RFC 2744 section 1.1.3): makes the tokens for one server, one after the other.
///
/// A context serves one exchange of tokens. Thread safety: a step holds the context's lock, since GSSAPI allows no two calls with
/// the same context. A step may ask a KDC, and so may block for as long as one does.
public final class GSSInitiator: Sendable {
    /// The longest token in bytes that is accepted or returned. Tickets with the membership of many groups (MS-PAC) may reach 48 KiB.
    public static let maximumToken = 65536
    /// The longest application data of channel bindings in bytes.
    public static let maximumBindings = 1024

    private let credential: GSSCredential
    private let target: GSSTarget
    private let bindings: [UInt8]?
    private let wantsMutual: Bool
    private let state = Mutex(State())

    /// The library's handle, and how far the exchange got.
    private struct State: @unchecked Sendable {
        var handle: cgss_ctx?
        var phase = Phase.new
        var isMutual = false
    }

    private enum Phase { case new, waits, complete, failed }

    /// The outcome of a step.
    public struct Step: Sendable, Equatable {
        /// The token to send, empty when there is none.
        public let output: [UInt8]
        /// True when the context is established. False means that the server's token is needed.
        public let isComplete: Bool
        /// True when the context is established and the server has proved who it is.
        public let isMutual: Bool
        /// Seconds that the ticket for this server is still valid; nil where the mechanism does not say, or it has no end.
        public let lifetime: UInt32?
    }

    /// Nothing is asked of the library before the first step.
    ///
    /// - Parameters:
    ///   - credential: kept as long as the context.
    ///   - channelBindings: application data, as `tls-server-end-point:` and a hash (RFC 5929 section 4.1), at most
    ///     `maximumBindings` bytes; nil binds to no channel.
    ///   - mutual: the server has to prove who it is. Tickets are never delegated.
    /// - Throws: `invalidArgument` for bindings that are empty or too long.
    public init(
        _ credential: GSSCredential, target: GSSTarget, channelBindings: [UInt8]? = nil, mutual: Bool
    ) throws(GSSFault) {
        if let channelBindings, channelBindings.isEmpty || channelBindings.count > Self.maximumBindings {
            throw GSSFault(.invalidArgument, "channel bindings are empty or longer than \(Self.maximumBindings) bytes")
        }
        self.credential = credential
        self.target = target
        bindings = channelBindings
        wantsMutual = mutual
    }

    deinit {
        let calls = credential.library.calls
        state.withLock { cgss_delete(calls, $0.handle) }
    }

    /// True once the context is established and the server has proved who it is. Waits for a step that is under way, so an event
    /// loop reads the step's own value instead.
    public var isMutual: Bool { state.withLock { $0.phase == .complete && $0.isMutual } }

    /// Makes the first token (`input` nil), or reads the server's and makes the next, if any (`gss_init_sec_context`, RFC 2744
    /// section 5.19). After a fault the context is of no further use.
    ///
    /// - Throws: a fault of every kind but `libraryMissing` and `tooLate`.
    public func step(_ input: [UInt8]?) throws(GSSFault) -> Step {
        try state.withLock { state throws(GSSFault) in
            switch (state.phase, input) {
            case (.new, nil), (.waits, .some): break
            default:
                throw GSSFault(
                    .invalidArgument, "a first step has no token, a later one has, and none follows the last")
            }
            do throws(GSSFault) {
                let step = try advance(&state, input)
                state.phase = step.isComplete ? .complete : .waits
                return step
            } catch {
                state.phase = .failed
                throw error
            }
        }
    }

    private func advance(_ state: inout State, _ input: [UInt8]?) throws(GSSFault) -> Step {
        guard input.map({ !$0.isEmpty }) ?? true else { throw GSSFault(.tokenDefective, "the received token is empty") }
        guard (input?.count ?? 0) <= Self.maximumToken else {
            throw GSSFault(.tokenTooLong, "the received token is too long")
        }
        let library = credential.library
        let name = try GSSName(library, target)
        var output = cgss_buffer()
        defer { cgss_release_buffer(library.calls, &output) }
        var flags: UInt32 = 0
        var minor: UInt32 = 0
        var seconds: UInt32 = 0
        let mutual = UInt32(CGSS_FLAG_MUTUAL)
        // An array of nil passes no address, which the C half reads as "none".
        let major = withOptionalBytes(bindings) { bindings in
            withOptionalBytes(input) { input in
                name.withHandle { name in
                    cgss_init(
                        library.calls, &minor, credential.handle, &state.handle, name, credential.mechanism.code,
                        wantsMutual ? mutual : 0, bindings.baseAddress, bindings.count, input.baseAddress,
                        input.count, &output, &flags, &seconds)
                }
            }
        }
        let status = GSSStatus(major: major, minor: minor)
        guard !status.isError else {
            throw status.fault(library, credential.mechanism, doing: "no token for \(target.text)")
        }
        guard output.length <= Self.maximumToken else {
            throw GSSFault(.tokenTooLong, "the token for \(target.text) is longer than \(Self.maximumToken) bytes")
        }
        state.isMutual = flags & mutual != 0
        guard status.continues || state.isMutual || !wantsMutual else {
            throw GSSFault(.mutualAuthenticationFailed, "the server \(target.text) did not prove who it is")
        }
        let isComplete = !status.continues
        return Step(
            output: GSSStatus.bytes(of: output, limit: Self.maximumToken), isComplete: isComplete,
            isMutual: isComplete && state.isMutual,
            lifetime: seconds == .max ? nil : seconds)
    }
}

extension GSSTarget {
    /// The name for messages.
    var text: String {
        switch self {
        case .service(let name), .principal(let name): name
        }
    }
}

/// The bytes of an array that is not empty, or an empty buffer without an address.
private func withOptionalBytes<Value>(_ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer) -> Value) -> Value {
    guard let bytes, !bytes.isEmpty else { return body(UnsafeRawBufferPointer(start: nil, count: 0)) }
    return bytes.withUnsafeBytes(body)
}
