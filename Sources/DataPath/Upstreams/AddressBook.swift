internal import Reactor
internal import Telemetry

/// The addresses of one upstream as one loop sees them: which there are, how busy each is, which are avoided, and where the next
/// connection goes. A pure machine: time comes in as a parameter, and nothing is opened here.
///
/// - **Choice.** Available addresses before ejected ones; of a name's families the one that the resolver puts first; then the fewest
///   connections in use; then the one that was chosen longest ago.
/// - **Ejection.** Three strikes in a row eject. A connection that could not be made (refused, unreachable, TLS failed, not there in
///   time, overtaken by another address) counts three, a fresh connection that was lost before its answer's head one. An answer of
///   any status is none: a 503 may be the request's own fault, and a server that answers is there. An answer's head clears all.
/// - **Recovery.** The first ejection lasts one second, each further one without an answer between doubles it, up to a minute. After it
///   the address takes one connection as a trial; the answer decides over the rest.
/// - **Never all.** The last address that is available stays so, whatever happens to it; and where nothing else is left the
///   ejected ones are tried too.
struct AddressBook {
    private(set) var addresses: [UpstreamAddress] = []
    private var choices: UInt64 = 0
    /// The addresses that active checks found unfit last, unlisted ones too.
    private var unhealthy: Set<SocketAddress> = []

    static let strikesToEject = 3
    static let firstEjection: UInt64 = 1_000_000_000
    static let longestEjection: UInt64 = 60_000_000_000
    /// Addresses over all endpoints; more are left out.
    static let mostAddresses = 64

    /// The kind of failure at an address: no connection, or a fresh one lost before its answer's head.
    enum Failure { case connect, reset }
}

/// An address of an upstream on one loop. Connections hold it for as long as they live, also after it left the book.
package final class UpstreamAddress {
    let address: SocketAddress
    let logAddress: LogAddress
    /// Position of the endpoint that named it.
    fileprivate(set) var endpoint: Int
    /// 0 for the family that the resolver put first, 1 for the other: that one is for when the first fails.
    fileprivate(set) var familyRank: Int
    /// False once the name no longer has this address: its connections are not used again.
    fileprivate(set) var isListed = true
    /// Connections that are being made or carry a request: what their pool and their dialers count, each in one place.
    var inFlight = 0
    fileprivate(set) var strikes = 0
    /// Ejections in a row, without an answer between them.
    fileprivate(set) var ejections = 0
    fileprivate(set) var ejectedUntil: UInt64 = 0
    /// The number of the choice that took it last.
    fileprivate var lastChosen: UInt64 = 0
    /// The verdict of active checks; true where there are none.
    var isHealthy = true

    init(_ address: SocketAddress, endpoint: Int, familyRank: Int) {
        self.address = address
        logAddress = address.logAddress
        self.endpoint = endpoint
        self.familyRank = familyRank
    }

    /// An answer's head came: whatever was wrong is over.
    func answered() {
        guard strikes != 0 || ejections != 0 else { return }
        strikes = 0
        ejections = 0
    }

    /// After an ejection one connection at a time, until an answer has come.
    fileprivate var isOnTrial: Bool { ejections > 0 && inFlight > 0 }

    /// Left alone for what it did, or for what the checks say of it.
    func isAvoided(at now: UInt64) -> Bool { !isHealthy || now < ejectedUntil }

    func isAvailable(at now: UInt64) -> Bool { !isAvoided(at: now) && !isOnTrial }
}

extension AddressBook {
    // MARK: - Which there are

    /// Sets the addresses of one endpoint. Those that were known keep their state.
    /// - Returns: those that are gone.
    mutating func list(_ found: [SocketAddress], endpoint: Int) -> [UpstreamAddress] {
        let others = addresses.filter { $0.endpoint != endpoint }
        var own: [UpstreamAddress] = []
        let first = found.first?.family
        for address in found.prefix(max(0, Self.mostAddresses - others.count)) {
            // Two endpoints may name one address, which counts once.
            guard !own.contains(where: { $0.address == address }), !others.contains(where: { $0.address == address })
            else { continue }
            let rank = address.family == first ? 0 : 1
            if let known = addresses.first(where: { $0.endpoint == endpoint && $0.address == address }) {
                known.familyRank = rank
                own.append(known)
            } else {
                own.append(UpstreamAddress(address, endpoint: endpoint, familyRank: rank))
                own.last?.isHealthy = !unhealthy.contains(address)
            }
        }
        let gone = addresses.filter { old in old.endpoint == endpoint && !own.contains { $0 === old } }
        for old in gone { old.isListed = false }
        addresses = (others + own).sorted { $0.endpoint < $1.endpoint }
        return gone
    }

    /// Takes over the result of active checks: the addresses in it are avoided, all others count as healthy.
    mutating func noteUnhealthy(_ unhealthy: Set<SocketAddress>) {
        self.unhealthy = unhealthy
        for entry in addresses { entry.isHealthy = !unhealthy.contains(entry.address) }
    }

    // MARK: - Choice

    /// Where the next request goes best. Nil when no address is known.
    /// - Parameter avoided: is chosen only when there is no other.
    func choose(at now: UInt64, avoiding avoided: UpstreamAddress? = nil) -> UpstreamAddress? {
        var best: UpstreamAddress?
        for entry in addresses where entry !== avoided {
            if let found = best, !Self.goesBefore(entry, found, at: now) { continue }
            best = entry
        }
        return best ?? addresses.first
    }

    /// Notes that the address was taken: among equals the others come first now.
    mutating func chosen(_ entry: UpstreamAddress) {
        choices += 1
        entry.lastChosen = choices
    }

    /// Every address, in the order in which a connection is to be tried; the first counts as chosen.
    /// - Parameter wanted: is the first, if it is still one of them.
    mutating func order(
        at now: UInt64, avoiding avoided: UpstreamAddress? = nil, wanting wanted: UpstreamAddress? = nil
    ) -> [UpstreamAddress] {
        let named = addresses.first { $0 === wanted }
        guard let first = named ?? choose(at: now, avoiding: avoided) else { return [] }
        chosen(first)
        let others = addresses.filter { $0 !== first }.sorted { Self.goesBefore($0, $1, at: now) }
        let usable = others.filter { $0.isAvailable(at: now) }
        let avoided = others.filter { !$0.isAvailable(at: now) }
        return HappyEyeballs.interleave([first] + usable) { $0.address.family == .ipv6 } + avoided
    }

    private static func goesBefore(_ one: UpstreamAddress, _ other: UpstreamAddress, at now: UInt64) -> Bool {
        let isUsable = one.isAvailable(at: now)
        if isUsable != other.isAvailable(at: now) { return isUsable }
        // Where none is available, the one that has been left alone the longest.
        if !isUsable, one.ejectedUntil != other.ejectedUntil { return one.ejectedUntil < other.ejectedUntil }
        if one.familyRank != other.familyRank { return one.familyRank < other.familyRank }
        if one.inFlight != other.inFlight { return one.inFlight < other.inFlight }
        return one.lastChosen < other.lastChosen
    }

    // MARK: - Outcomes

    /// - Returns: whether the address was ejected for it.
    func failed(_ entry: UpstreamAddress, _ failure: Failure, at now: UInt64) -> Bool {
        entry.strikes += failure == .connect ? Self.strikesToEject : 1
        guard entry.strikes >= Self.strikesToEject, entry.isListed, now >= entry.ejectedUntil else { return false }
        let isLast = !addresses.contains { $0 !== entry && $0.isHealthy && now >= $0.ejectedUntil }
        guard !isLast else { return false }
        let doublings = min(entry.ejections, 6)
        entry.ejectedUntil = now + min(Self.firstEjection << UInt64(doublings), Self.longestEjection)
        entry.ejections += 1
        entry.strikes = 0
        return true
    }
}
