extension ResponseHead {
    /// Seconds after which the sender closes a connection without requests, as it announces in `Keep-Alive: timeout=N`; nil where nothing that
    /// can be read is announced. Of several the least.
    ///
    /// - Parameter bytes: what the head was parsed from.
    public func keepAliveTimeout(in bytes: Span<UInt8>) -> UInt64? {
        guard contains(.keepAlive) else { return nil }
        var least: UInt64?
        for index in 0..<fieldCount where self[index].known == .keepAlive {
            var members = ListMembers(self[index].value)
            while let member = members.next(in: bytes) {
                guard let seconds = bytes.timeout(at: member) else { continue }
                least = min(least ?? seconds, seconds)
            }
        }
        return least
    }
}

extension Span<UInt8> {
    /// The number of `timeout=N`.
    fileprivate func timeout(at member: ByteRange) -> UInt64? {
        var equals = Int(member.start)
        let end = Int(member.end)
        while equals < end, self[equals] != 0x3D { equals &+= 1 }
        guard equals < end, spells("timeout", at: trimmed(Int(member.start)..<equals)) else { return nil }
        return decimal(at: trimmed(equals &+ 1..<end))
    }
}
