internal import Octets

/// Credentials and challenges of schemes that authenticate a connection and not a request: NTLM and Negotiate (RFC 4559 §6).
///
/// Whoever sends on such a connection afterwards is taken for the user who authenticated it.
extension RequestHead {
    /// Whether a credential of such a scheme reaches the upstream. The schemes count by name, whatever follows.
    ///
    /// - Parameters:
    ///   - bytes: what the head was parsed from.
    ///   - edits: the route's.
    public func bindsConnection(in bytes: Span<UInt8>, _ edits: borrowing RequestEdits) -> Bool {
        guard contains(.authorization) || !edits.renamed.isEmpty else { return false }
        let passes = !edits.dropsAuthorization
        let isRenamed = edits.writesAuthorization
        for index in 0..<fieldCount {
            let field = self[index]
            let counts =
                passes && field.known == .authorization
                || isRenamed && bytes.extracting(field.name.indices).isName(edits.renamed.span)
            if counts, bytes.namesBoundScheme(at: field.value) { return true }
        }
        return false
    }
}

extension ResponseHead {
    /// A field of challenges is there.
    @inline(__always)
    public var hasChallenges: Bool { contains(.wwwAuthenticate) || contains(.proxyAuthenticate) }

    /// Whether a challenge of such a scheme carries data, so that an exchange of it is under way. A bare one asks for nothing more than any
    /// other challenge does.
    ///
    /// - Parameter bytes: what the head was parsed from.
    public func bindsConnection(in bytes: Span<UInt8>) -> Bool {
        bindsConnection(in: bytes, .wwwAuthenticate) || bindsConnection(in: bytes, .proxyAuthenticate)
    }

    private func bindsConnection(in bytes: Span<UInt8>, _ known: KnownField) -> Bool {
        guard contains(known) else { return false }
        var lines: [[UInt8]] = []
        for index in 0..<fieldCount where self[index].known == known {
            lines.append(bytes.extracting(self[index].value.indices).withUnsafeBytes { Array($0) })
        }
        let list = AuthChallenge.list(lines)
        // Past the challenges that are read there may be one, and what cannot be read is data all the same.
        return lines.count > Self.mostLines || list.count >= AuthChallenge.mostChallenges
            || list.contains { challenge in
                (challenge.scheme.matches("ntlm") || challenge.scheme.matches("negotiate"))
                    && (challenge.token68 != nil || !challenge.parameters.isEmpty || challenge.fault != nil)
            }
    }

    /// Lines of challenges. No server sends as many; one that does may have meant anything.
    private static var mostLines: Int { 16 }
}

extension RequestEdits {
    /// Whether a caller's `Authorization`, or a field under a name that becomes it, is forwarded. (`Proxy-Authorization` never is.)
    public var passesAuthorization: Bool { !dropsAuthorization || writesAuthorization }

    fileprivate var dropsAuthorization: Bool { drop.contains(Self.authorization.span, lookAlike: true) }

    fileprivate var writesAuthorization: Bool { renamedTo.span.isName(Self.authorization.span) }

    private static let authorization = Array("authorization".utf8)
}

extension Span<UInt8> {
    /// Whether the first token of the value is the name of such a scheme.
    fileprivate func namesBoundScheme(at value: ByteRange) -> Bool {
        var start = Int(value.start)
        let end = Int(value.end)
        while start < end, !OctetClass.token.contains(self[start]) { start &+= 1 }
        var stop = start
        while stop < end, OctetClass.token.contains(self[stop]) { stop &+= 1 }
        let scheme = ByteRange(start..<stop)
        return spells("ntlm", at: scheme) || spells("negotiate", at: scheme)
    }

    /// Equal in any case.
    func isName(_ name: Span<UInt8>) -> Bool {
        guard count == name.count else { return false }
        for index in indices where lowercased(self[index]) != lowercased(name[index]) { return false }
        return true
    }
}
