internal import HTTP1
internal import Octets

extension CallerConnection {
    /// Looks for the token where this listener's callers put it: a proxy's in `Proxy-Authorization` (RFC 9110 §11.7.2). What came through a
    /// CONNECT that we have opened was admitted with it.
    func admitToken(_ token: CallerToken) -> Fault? {
        let isProxy = listener.forward.mode == .forward
        if isProxy, peer.authority != nil { return nil }
        let refusal = Fault(isProxy ? .proxyTokenRefused : .callerTokenRefused)
        let wanted: KnownField = isProxy ? .proxyAuthorization : .authorization
        var found: ByteRange?
        for index in 0..<data.requestHead.fieldCount {
            let field = data.requestHead[index]
            guard field.known == wanted else { continue }
            // Two tokens are refused, since nothing says which of them counts.
            guard found == nil else { return refusal }
            found = field.value
        }
        guard let found else { return refusal }
        let value = input[found]
        guard let blank = value.firstIndex(of: 0x20) else { return refusal }
        let scheme = UnsafeRawBufferPointer(rebasing: value[..<blank])
        guard let start = value[blank...].firstIndex(where: { $0 != 0x20 }) else { return refusal }
        let rest = UnsafeRawBufferPointer(rebasing: value[start...])
        let verdict: Bool?
        if equalsIgnoringCase(scheme, Self.bearer) {
            verdict = token.admits(rest)
        } else if equalsIgnoringCase(scheme, Self.basic), rest.count <= Self.longestBasic {
            // The stack is used for this many bytes at most; more would come from the heap.
            verdict = withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 1) { buffer in
                defer { buffer.wipe() }
                guard let count = Base64.decode(rest, into: buffer),
                    let colon = buffer[..<count].firstIndex(of: 0x3a)
                else { return false }
                // Whatever the user is called: the password is what counts.
                return token.admits(UnsafeRawBufferPointer(rebasing: buffer[(colon + 1)..<count]))
            }
        } else {
            verdict = false
        }
        switch verdict {
        case true?: return nil
        case false?: return refusal
        case nil: return Fault(.secretUnreadable, retryAfter: 1, detail: "callers.token cannot be read")
        }
    }

    private static let bearer = Array("bearer".utf8)
    private static let basic = Array("basic".utf8)
    /// Characters; decoded it is shorter than 1024 bytes.
    private static let longestBasic = 1360
}
