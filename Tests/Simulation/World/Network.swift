import Glibc
import Reactor
import ScriptedKernel
import TLS

/// Whoever is at the other end of a connection of a gateway: a caller, or a server that it calls.
protocol Conversation: AnyObject {
    /// The connection stands. A caller may begin; a server waits.
    func began()
    func received(_ bytes: [UInt8])
    /// No more comes.
    /// - Parameter isReset: the connection broke; else its end was said.
    func ended(isReset: Bool)
}

/// Names and addresses of servers, and the connections between them and the gateways.
///
/// Each direction of a connection keeps its order and has a delay of its own for each piece, so that pieces of two connections meet in any
/// order. A connection that breaks loses what is on its way.
final class Network {
    let timeline: Timeline
    private var draw: Draw
    private var servers: [String: (Wire) -> any Conversation] = [:]
    private var serverTLS: [String: TLSServerConfiguration] = [:]
    private var numbers: UInt64 = 0
    private(set) var open: [Wire] = []
    /// Addresses that refuse, and addresses that say nothing.
    var refusing: Set<String> = []
    var silent: Set<String> = []
    /// Cables that are out: the gateway's, to a server.
    var cuts: [(gateway: Int, address: String)] = []
    /// Nanoseconds that each piece takes longer.
    var slowness: UInt64 = 0
    /// Nanoseconds that a new connection to a server takes longer.
    var dialSlowness: UInt64 = 0
    /// Pieces are cut this short; `Int.max` leaves them whole.
    var longestPiece = Int.max
    /// Servers that take a request and are gone.
    var dying: Set<String> = []
    /// The most that a gateway has read of one connection in one turn of a loop, in reads.
    private(set) var mostReads = 0

    init(_ timeline: Timeline, seed: UInt64) {
        self.timeline = timeline
        draw = Draw(seed, Purpose.network)
    }

    /// Makes a server: what it returns speaks on the wire from then on.
    /// - Parameter tls: what it speaks under; nil: clear text.
    func serve(_ address: String, _ tls: TLSServerConfiguration?, _ accept: @escaping (Wire) -> any Conversation) {
        servers[address] = accept
        serverTLS[address] = tls
    }

    /// A gateway's kernel that takes part.
    func join(_ kernel: FakeKernel, gateway: Int, process: ProcessName) {
        kernel.connectPlan = { _ in .silent }
        kernel.connected = { [unowned self] peer in dial(peer, gateway: gateway, process) }
    }

    private func dial(_ peer: Peer, gateway: Int, _ process: ProcessName) {
        let address = peer.address.map { "\($0)" } ?? ""
        let wire = Wire(self, peer, gateway: gateway, process: process, number: nextNumber(), address: address)
        let lost = dialSlowness > 0 ? draw.below(dialSlowness) : 0
        timeline.after(delay() + lost) { [self] in
            guard !peer.isClosed else { return }
            if silent.contains(address) || isCut(gateway, address) { return }
            guard !refusing.contains(address), let accept = servers[address] else { return peer.reset(ECONNREFUSED) }
            peer.accept()
            limit(wire)
            open.append(wire)
            if let tls = serverTLS[address] {
                wire.veil(under: tls, accept)
                wire.listen()
            } else {
                wire.conversation = accept(wire)
                wire.listen()
                wire.conversation?.began()
            }
        }
    }

    /// A caller's connection into a listener's queue.
    func call(_ peer: Peer, gateway: Int, process: ProcessName, _ caller: (Wire) -> any Conversation) -> Wire {
        let wire = Wire(self, peer, gateway: gateway, process: process, number: nextNumber(), address: "caller")
        limit(wire)
        wire.conversation = caller(wire)
        open.append(wire)
        wire.listen()
        wire.conversation?.began()
        return wire
    }

    /// The cable is in again. What was sent meanwhile comes late, as it does when it is sent anew.
    func join(_ gateway: Int, to address: String) {
        cuts.removeAll { $0 == (gateway, address) }
        for wire in open where wire.gateway == gateway && wire.address == address { wire.resume() }
    }

    func isCut(_ gateway: Int, _ address: String) -> Bool { cuts.contains { $0 == (gateway, address) } }

    /// Some peers have little room for what they have not read, and some of the gateway's reads bring less than there is.
    private func limit(_ wire: Wire) {
        wire.window = draw.once(in: 4) ? 2000 + draw.below(30_000) : .max
        let mostPerRead = draw.once(in: 8) ? 200 + draw.below(2000) : .max
        // A record is read to its end, in however many reads: how many there are would say nothing of turns.
        if serverTLS.isEmpty { wire.mostPerRead = mostPerRead }
    }

    private func nextNumber() -> UInt64 {
        numbers += 1
        return numbers
    }

    func delay() -> UInt64 { 20_000 + draw.below(1_000_000) + slowness }

    /// How much of a piece goes at once.
    func piece(of count: Int) -> Int {
        if longestPiece < count { return 1 + draw.below(longestPiece) }
        return draw.once(in: 16) ? 1 + draw.below(count) : count
    }

    fileprivate func forget(_ wire: Wire) {
        mostReads = max(mostReads, wire.mostReads)
        if let index = open.firstIndex(where: { $0 === wire }) { open.remove(at: index) }
    }

    /// Breaks every connection for which `isMeant` holds, as a network that is gone does.
    func breakAll(_ isMeant: (Wire) -> Bool) { for wire in open where isMeant(wire) { wire.reset() } }
}

/// One connection, as who is not the gateway sees it.
final class Wire {
    let number: UInt64
    /// The gateway whose end it is, and the process.
    let gateway: Int
    let process: ProcessName
    /// The server's; "caller" where the gateway is the server.
    let address: String
    fileprivate(set) var conversation: (any Conversation)?
    /// TLS, where it is spoken.
    private var veil: Veil?
    /// Brings whoever is to speak when the handshake has ended.
    private var accept: ((Wire) -> any Conversation)?
    private let network: Network
    private let peer: Peer
    private var isOver = false
    /// When the last piece of each direction arrives.
    private var arrives: UInt64 = 0
    private var departs: UInt64 = 0
    private var isListening = false
    private var hasSaidEnd = false
    /// A piece for the gateway did not arrive.
    private var hasLost = false
    /// Pieces for the gateway that wait for a cable.
    private var held: [[UInt8]] = []
    private var nextRead: (() -> Void)?
    /// When the gateway wrote the first octet that nobody has made a message of yet.
    private(set) var spokeAt: UInt64?

    fileprivate init(
        _ network: Network, _ peer: Peer, gateway: Int, process: ProcessName, number: UInt64, address: String
    ) {
        self.process = process
        self.network = network
        self.peer = peer
        self.gateway = gateway
        self.number = number
        self.address = address
    }

    /// Room for what the gateway writes; what is read makes room again.
    fileprivate var window: Int {
        get { peer.window }
        set { peer.window = newValue }
    }

    /// Octets that one read brings at most.
    fileprivate var mostPerRead: Int {
        get { peer.mostPerRead }
        set { peer.mostPerRead = newValue }
    }
    fileprivate var mostReads: Int { peer.mostReads }

    /// The gateway has closed its end already, whether or not that has arrived.
    var isAbandoned: Bool { peer.isClosed || isOver }
    /// The gateway has read all that has arrived.
    var isRead: Bool { peer.unread == 0 }

    func send(_ bytes: [UInt8]) {
        guard let veil else { return sendBare(bytes) }
        guard !isOver else { return }
        veil.say(bytes)
        if let body = nextRead {
            nextRead = nil
            whenRead(body)
        }
    }

    /// Toward the gateway, in pieces.
    func sendBare(_ bytes: [UInt8]) {
        guard !isOver else { return }
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(network.piece(of: rest.count)))
            rest = rest.dropFirst(piece.count)
            departs = max(departs, network.timeline.now + network.delay())
            network.timeline.at(departs) { [self] in arrive(piece) }
        }
        guard veil == nil, let body = nextRead else { return }
        nextRead = nil
        whenRead(body)
    }

    private func arrive(_ piece: [UInt8]) {
        if isOver || peer.isClosed {
            hasLost = true
        } else if network.isCut(gateway, address) {
            held.append(piece)
        } else {
            peer.send(piece)
        }
    }

    fileprivate func resume() {
        let pieces = held
        held = []
        for piece in pieces { arrive(piece) }
        if !isOver { hear() }
    }

    /// Calls `body` when the gateway has read all that was sent so far; never, where a piece of it is lost.
    func whenRead(_ body: @escaping () -> Void) {
        guard !isOver else { return }
        // A nanosecond later, when the gateway has had its turn at what has arrived.
        network.timeline.at(departs + 1) { [self] in if !hasLost, held.isEmpty, peer.unread == 0 { body() } }
    }

    /// As `whenRead`, for what is sent next.
    func whenNextRead(_ body: @escaping () -> Void) { nextRead = body }

    /// Says that no more comes, behind what was sent.
    func finish() {
        guard !isOver else { return }
        veil?.finish()
        departs = max(departs, network.timeline.now + network.delay())
        network.timeline.at(departs) { [self] in if !isOver { peer.finish() } }
    }

    /// Breaks the connection at once, for both.
    func reset() {
        guard !isOver else { return }
        over()
        if !peer.isClosed { peer.reset() }
        conversation?.ended(isReset: true)
        conversation = nil
    }

    /// The process at the gateway's end is gone: its kernel says so to the peer, and to nobody else.
    func lost() {
        guard !isOver else { return }
        over()
        let conversation = self.conversation
        self.conversation = nil
        network.timeline.after(network.delay()) { conversation?.ended(isReset: true) }
    }

    /// The other end closes and hears nothing more.
    func close() {
        finish()
        over(keepsSending: true)
        conversation = nil
    }

    private func over(keepsSending: Bool = false) {
        if !keepsSending { isOver = true }
        peer.touched = nil
        network.forget(self)
    }

    // MARK: - From the gateway

    fileprivate func listen() {
        peer.touched = { [unowned self] in hear() }
        hear()
    }

    /// Nothing that the gateway has written is on its way.
    var isHeard: Bool { peer.receivedCount == 0 }

    /// A message was made of what has arrived.
    func messageTaken() { spokeAt = nil }

    private func hear() {
        if spokeAt == nil { spokeAt = network.timeline.now }
        guard !isListening else { return }
        isListening = true
        arrives = max(arrives, network.timeline.now + network.delay())
        network.timeline.at(arrives) { [self] in
            isListening = false
            deliver()
        }
    }

    private func deliver() {
        guard !isOver, let conversation, !network.isCut(gateway, address) else { return }
        if peer.receivedCount > 0 {
            let piece = peer.take(network.piece(of: peer.receivedCount))
            if window != .max { window += piece.count }
            if network.dying.contains(address) { return reset() }
            hand(piece)
            if peer.receivedCount > 0 { return hear() }
        }
        guard peer.sawEnd, !hasSaidEnd, !isOver else { return }
        hasSaidEnd = true
        let listener = self.conversation ?? conversation
        if peer.isClosed {
            over()
            self.conversation = nil
        }
        listener.ended(isReset: peer.sawReset)
    }

    private func hand(_ piece: [UInt8]) {
        guard let veil else {
            conversation?.received(piece)
            return
        }
        let isNew = !veil.isEstablished
        guard let words = veil.hear(piece) else { return reset() }
        if veil.isEstablished, let accept {
            self.accept = nil
            conversation = accept(self)
            conversation?.began()
        }
        guard words.isEmpty else {
            conversation?.received(words)
            return
        }
        // A handshake is no message, nor the beginning of one.
        if isNew { messageTaken() }
    }

    // MARK: - TLS

    /// The protocol that ALPN has agreed on.
    var protocolName: String? { veil?.protocolName }

    /// From here on the wire speaks TLS, as a client does.
    func veil(as client: TLSClientConfiguration, to name: String) {
        veil = try? Veil(self, client: client, of: name)
        _ = veil?.shake()
    }

    /// From here on the wire speaks TLS, as a server does. Whom `accept` brings can ask for the protocol.
    fileprivate func veil(under server: TLSServerConfiguration, _ accept: @escaping (Wire) -> any Conversation) {
        veil = try? Veil(self, server: server)
        self.accept = accept
        conversation = Greeting(self)
    }
}

/// A server while the handshake is under way.
private final class Greeting: Conversation {
    private unowned let wire: Wire

    init(_ wire: Wire) { self.wire = wire }

    func began() {}
    func received(_ bytes: [UInt8]) {}
    func ended(isReset: Bool) { if !isReset { wire.close() } }
}
