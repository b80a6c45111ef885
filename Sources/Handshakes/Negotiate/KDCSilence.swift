internal import GSSAPI

/// The servers and users for which no KDC has answered, and is not asked for a while: a call would block for half a minute, and a caller wait
/// in vain.
///
/// Kept by server, and for tickets in users' names by server and user: one user's silence is not everybody's, but the second one's is.
struct KDCSilence {
    private struct Rest {
        /// Milliseconds since 1970.
        var until: Int64
        var fault: GSSFault
    }

    private struct Place: Hashable {
        let server: String
        /// Octets of the name; nil: our own tickets, or everybody's.
        let user: [UInt8]?
    }

    private var rests: [Place: Rest] = [:]

    /// Milliseconds without another try.
    static let rest: Int64 = 30_000
    private static let most = 2048

    /// - Returns: nil where a KDC may be asked.
    func fault(at server: String, of user: String?, now: Int64) -> GSSFault? {
        let places = [Place(server: server, user: nil), Place(server: server, user: user.map { Array($0.utf8) })]
        return places.lazy.compactMap { rests[$0] }.first { now < $0.until }?.fault
    }

    mutating func note(_ fault: GSSFault, at server: String, of user: String?, now: Int64) {
        if rests.count >= Self.most { rests = rests.filter { now < $0.value.until } }
        if rests.count >= Self.most { rests = [:] }
        let place = Place(server: server, user: user.map { Array($0.utf8) })
        let rest = Rest(until: now + Self.rest, fault: fault)
        let isNotAlone = rests.contains { $0.key.server == server && $0.key != place && now < $0.value.until }
        rests[place] = rest
        if isNotAlone { rests[Place(server: server, user: nil)] = rest }
    }

    /// A KDC has answered, whatever it said.
    mutating func end(at server: String, of user: String?) {
        rests[Place(server: server, user: nil)] = nil
        rests[Place(server: server, user: user.map { Array($0.utf8) })] = nil
    }
}
