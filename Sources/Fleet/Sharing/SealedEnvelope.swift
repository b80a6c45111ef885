internal import Numbers
internal import TLS

/// A value with all that is decided by, under one seal: who can write to the server can neither count a version up nor put off an end, and an
/// old value that is put back is as old as it was.
///
/// A version byte, then the session's version and the end in milliseconds since 1970 (all ones: none), eight octets each and big-endian, the
/// identity behind its length in one octet, and the value.
struct SealedEnvelope: Equatable {
    var version = SessionVersion.none
    /// By the clock of the gateway that sealed it; nil: no end.
    var end: WallTime?
    /// The identity of a token or a registration; empty for a session.
    var identity = ""
    var value: [UInt8]

    /// How far the clocks of two gateways may be apart.
    static let tolerance = TimeSpan(120, .seconds)
    private static let mark: UInt8 = 2

    var octets: [UInt8] {
        let end = end.map { time in (0..<8).map { UInt8(truncatingIfNeeded: time.milliseconds >> (56 - 8 * Int64($0))) }
        }
        let name = Array(identity.utf8.prefix(255))
        return [Self.mark] + version.octets + (end ?? [UInt8](repeating: 0xff, count: 8)) + [UInt8(name.count)] + name
            + value
    }

    /// The time that the value has left: as the server says, which counts by one clock for all, but not beyond the sealed end by more
    /// than clocks may differ.
    func left(_ told: TimeSpan?, at now: WallTime) -> TimeSpan? {
        guard let end else { return told }
        let most = (end + Self.tolerance).left(at: now)
        return min(told ?? most, most)
    }
}

extension SealedEnvelope {
    /// Nil for anything that `octets` does not make.
    init?(octets: [UInt8]) {
        guard octets.count >= 18, octets[0] == Self.mark, let version = SessionVersion(octets: octets[1..<9]) else {
            return nil
        }
        let time = octets[9..<17].reduce(Int64(0)) { $0 << 8 | Int64($1) }
        let start = 18 + Int(octets[17])
        guard octets.count >= start else { return nil }
        self.version = version
        end = time < 0 ? nil : WallTime(milliseconds: time)
        identity = String(decoding: octets[18..<start], as: UTF8.self)
        value = Array(octets[start...])
    }
}

extension FleetKeys {
    func seal(_ envelope: SealedEnvelope, for name: SharedName) throws(SealingFault) -> [UInt8] {
        try ring.seal(envelope.octets, boundTo: Self.binding(name))
    }

    /// Nil for what was never sealed for this name, or says something else than an envelope does.
    func envelope(_ sealed: [UInt8], for name: SharedName) -> SealedEnvelope? {
        (try? ring.open(sealed, boundTo: Self.binding(name))).flatMap { SealedEnvelope(octets: $0) }
    }

    /// A value of the old format never opens as one of the new, nor as news.
    private static func binding(_ name: SharedName) -> [UInt8] { Array("2 \(name.text)".utf8) }
}
