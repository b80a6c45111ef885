// Scheme and authority that the caller used: what an upstream's own addresses become in answers.

extension RequestHead {
    /// Writes `scheme://authority`, or nothing where the request names no host.
    ///
    /// A trusted peer stands between us and the caller, so what its first `Forwarded` element says comes first, or its
    /// `X-Forwarded-Proto` and `-Host`; values that are no scheme of HTTP or no authority are passed over.
    ///
    /// - Parameters:
    ///   - isSecure: the connection is TLS.
    ///   - isTrusted: the peer's own fields are believed.
    public func writeCallerOrigin(
        _ bytes: Span<UInt8>, isSecure: Bool, isTrusted: Bool, into output: inout OutputCursor
    ) {
        var secure = isSecure
        var authority = host
        if isTrusted {
            var told = TrustedOrigin()
            readStandard(bytes, &told)
            if told.secure == nil, let value = first(.xForwardedProto) {
                told.secure = scheme(firstMember(value, bytes), bytes)
            }
            if told.authority == nil, let value = first(.xForwardedHost) {
                let member = firstMember(value, bytes)
                if authorityPort(member, in: bytes) != nil { told.authority = member }
            }
            secure = told.secure ?? secure
            authority = told.authority ?? authority
        }
        guard let authority, !authority.isEmpty else { return }
        output.append(secure ? "https://" : "http://")
        output.append(bytes, authority)
    }

    private func readStandard(_ bytes: Span<UInt8>, _ told: inout TrustedOrigin) {
        guard let value = first(.forwarded) else { return }
        let text = bytes.extracting(value.indices)
        var list = ForwardedList()
        while let parameter = list.next(in: text), list.element == 0 {
            let found = ByteRange(
                start: value.start + parameter.value.start, count: parameter.value.count)
            if text.spells("proto", at: parameter.name) {
                told.secure = scheme(found, bytes)
            } else if text.spells("host", at: parameter.name), authorityPort(found, in: bytes) != nil {
                told.authority = found
            }
        }
    }

    private func scheme(_ range: ByteRange, _ bytes: Span<UInt8>) -> Bool? {
        if bytes.spells("https", at: range) { return true }
        return bytes.spells("http", at: range) ? false : nil
    }

    private func firstMember(_ value: ByteRange, _ bytes: Span<UInt8>) -> ByteRange {
        var members = ListMembers(value)
        return members.next(in: bytes) ?? .empty
    }
}

private struct TrustedOrigin {
    var secure: Bool?
    var authority: ByteRange?
}
