import HTTP1
import HotCache
import ScriptedKernel
import ScriptedWorld
import Tokens

@testable import DataPath
@testable import Handshakes
@testable import Reactor

/// A run: a data loop of its own on a kernel in memory, and the script's peers around it.
final class Play {
    /// A connection as its peer saw it.
    struct Talk {
        let peer: Peer
        var sent: [UInt8] = []
        /// The peer has hung up: what it was told afterwards it has not read.
        var hasLeft = false
    }

    let script: Script
    let kernel = FakeKernel()
    let data: DataLoop
    let cache: HotCache
    private(set) var callers: [Talk] = []
    private(set) var upstreams: [Talk] = []
    private(set) var issuers: [Talk] = []
    /// Tokens that an answer of the issuer brought.
    private(set) var tokens: [[UInt8]] = []
    private let stage: Stage
    private let loop: Loop
    private let keeper = Keeper()
    private let issuer: UpstreamGroup
    private var generation: UInt64 = 1
    private var isFirstDial = true

    static let fixedToken = Array("Bearer fixed-67a1f0c2".utf8)

    init?(_ script: Script) {
        let stage = script.habits.upstreamSpeaksHTTP2 ? Stage.overHTTP2 : Stage.overHTTP1
        guard let stage, let cache = Stage.cache(slots: [stage.fixed, stage.granted]), let events = Stage.events,
            let resolver = Stage.resolver, let loop = try? Loop(name: "data", kernel: kernel, mailCapacity: 16)
        else { return nil }
        self.script = script
        self.stage = stage
        self.cache = cache
        self.loop = loop
        data = DataLoop(
            index: 0, loop: loop, plan: stage.plan, reader: cache.makeReader(0), keeper: keeper, metrics: stage.metrics,
            access: nil, events: events, resolver: resolver, random: SeededRandom(), local: LocalAddresses([]),
            census: nil)
        issuer = UpstreamGroup(
            plan: stage.issuer, loop: loop, buffers: data.buffers, resolver: resolver, report: { _ in })
        publish(Self.fixedToken, in: stage.fixed)
        kernel.connectPlan = { [unowned self] _ in
            defer { isFirstDial = false }
            return isFirstDial && script.habits.refusesFirst ? .failed(111) : .accepted
        }
        kernel.connected = { [unowned self] peer in
            if peer.address?.port == Stage.issuerPort { return issuers.append(Talk(peer: peer)) }
            upstreams.append(Talk(peer: peer))
            if script.habits.upstreamSpeaksHTTP2, !script.habits.upstreamIsMute {
                say(Script.frame(4, 0, 0, []), on: &upstreams[upstreams.count - 1])
            }
        }
    }

    /// Connections hold their loop as long as they are open.
    deinit {
        issuer.closeIdle()
        data.closeEverything()
    }

    // MARK: - Scenes

    func run() {
        call()
        for scene in script.scenes {
            perform(scene)
            settle()
        }
    }

    private func perform(_ scene: Script.Scene) {
        switch scene {
        case .say(.caller, let octets):
            inPieces(octets, script.habits.callerPiece) { say($0, on: &callers[callers.count - 1]) }
        case .say(.upstream, let octets):
            guard let index = open(upstreams) else { return }
            inPieces(octets, script.habits.upstreamPiece) { say($0, on: &upstreams[index]) }
        case .say(.issuer, let octets):
            guard let index = open(issuers) else { return }
            inPieces(octets, script.habits.upstreamPiece) { say($0, on: &issuers[index]) }
        case .pass(let nanoseconds): kernel.advance(by: nanoseconds)
        case .finish(.caller): leave(&callers[callers.count - 1]) { $0.finish() }
        case .finish(.upstream): if let index = open(upstreams) { leave(&upstreams[index]) { $0.finish() } }
        case .finish(.issuer): if let index = open(issuers) { leave(&issuers[index]) { $0.finish() } }
        case .reset(.upstream): if let index = open(upstreams) { leave(&upstreams[index]) { $0.reset() } }
        case .reset: leave(&callers[callers.count - 1]) { $0.reset() }
        case .call: if callers.count < 4 { call() }
        case .window(.caller, let count): callers[callers.count - 1].peer.window = count
        case .window(_, let count): if let index = open(upstreams) { upstreams[index].peer.window = count }
        }
    }

    private func open(_ talks: [Talk]) -> Int? { talks.lastIndex { !$0.peer.isClosed && !$0.hasLeft } }

    private func call() {
        let (descriptor, peer) = kernel.pair()
        data.admit(descriptor, from: SocketAddress(host: "127.0.0.1", port: 40_000), listener: stage.plan.listeners[0])
        callers.append(Talk(peer: peer))
        guard script.habits.callerSpeaksHTTP2 else { return }
        say(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + Script.frame(4, 0, 0, []), on: &callers[callers.count - 1])
    }

    private func say(_ octets: some Collection<UInt8>, on talk: inout Talk) {
        guard !talk.hasLeft, !talk.peer.isClosed else { return }
        talk.sent += octets
        talk.peer.send(Array(octets))
    }

    private func leave(_ talk: inout Talk, _ how: (Peer) -> Void) {
        guard !talk.hasLeft else { return }
        talk.hasLeft = true
        how(talk.peer)
    }

    /// No more than forty at a time: a run is to stay short.
    private func inPieces(_ octets: [UInt8], _ size: Int, _ body: (ArraySlice<UInt8>) -> Void) {
        guard size > 0 else { return body(octets[...]) }
        let size = max(size, octets.count / 40)
        var rest = octets[...]
        while !rest.isEmpty {
            body(rest.prefix(size))
            rest = rest.dropFirst(size)
            settle()
        }
    }

    // MARK: - Turning

    /// Turns the loop until nothing happens any more, and plays the keeper.
    func settle() {
        for _ in 0..<1000 {
            var quiet = 0
            for turn in 0... {
                loop.turnOnce()
                quiet = kernel.isQuiet && !loop.hasWork ? quiet + 1 : 0
                if quiet == 2 { break }
                expect(turn < 20_000, "the loop does not come to rest")
            }
            guard let report = keeper.next() else { return }
            answer(report)
        }
        refute("the keeper does not come to rest")
    }

    private func answer(_ report: LoopReport) {
        switch report {
        case .needed(let slot): grant { [data] in data.desk.open(.settled(slot: slot, $0)) }
        case .challenged(let challenge):
            guard let ticket = challenge.ticket else { return }
            // A fixed credential has no other one to be tried.
            guard challenge.sent?.slot == stage.granted, !challenge.isFinal, !challenge.isReplay else {
                return data.desk.open(.request(ticket, .final))
            }
            grant { [data] in data.desk.open(.request(ticket, $0)) }
        case .cold(let request): data.desk.open(.request(request.ticket, .fault(Fault(.issuerUnavailable))))
        case .traced, .refreshDue, .left, .foundOpen, .scoutFailed, .accepted: break
        }
    }

    /// Asks the issuer, and says what its answer makes of the request that waits.
    private func grant(_ completion: @escaping (TokenAnswer) -> Void) {
        guard let url = IssuerURL("http://127.0.0.1:\(Stage.issuerPort)/t") else { return completion(.final) }
        let call = IssuerCall(
            step: "token", method: "POST", url: url, headers: [], body: Array("grant_type=x".utf8),
            carriesPassword: false)
        let exchange = IssuerExchange(
            call, group: issuer, deadline: kernel.clock + 10_000_000_000, limits: data.limits.heads
        ) { [unowned self] result in
            guard case .success(let answer) = result, let grant = try? OAuth2Answer(answer).grant() else {
                return completion(.fault(Fault(.issuerUnavailable, retryAfter: 1)))
            }
            let token = grant.token.withBytes { Array("Bearer ".utf8) + Array($0) }
            tokens.append(token)
            generation += 1
            publish(token, in: stage.granted)
            completion(.use(slot: stage.granted, granted: generation))
        }
        exchange.start()
    }

    private func publish(_ token: [UInt8], in slot: Slot) {
        let end = kernel.clock + 1_000_000_000_000
        cache.publish(
            slot: slot,
            record: RecordFields(refreshAt: end, servedUntil: end, expiresAt: end, generation: generation),
            bytes: Array("Authorization: ".utf8) + token + [13, 10])
    }

    // MARK: - The end

    /// Callers hang up or stay silent, upstreams and the issuer stay silent, and all time passes: nothing may be left.
    func end() {
        if !script.habits.callersStay {
            for index in callers.indices { leave(&callers[index]) { $0.reset() } }
            settle()
        }
        for seconds in [1.5, 12, 30, 62, 80, 400, 4000] as [Double] {
            kernel.advance(seconds: seconds)
            settle()
        }
        expect(data.callers.isEmpty && data.arrivals.isEmpty && data.http2Callers.isEmpty, "a caller is left")
        expect(callers.allSatisfy(\.peer.isClosed), "a caller's connection is open")
        expect(data.desk.waiters == 0 && data.desk.parked.isEmpty, "a request waits")
        expect(data.exchanges.lent == 0, "an exchange is left")
        expect(data.buffers.pool.taken == 0, "a block is left")
        expect(data.buffers.pipes?.taken == 0, "a pipe is left")
        expect(data.buffers.inputBytes == 0 && data.buffers.outputBytes == 0, "a large block is left")
        expect(data.owners.isEmpty, "an owner is left")
        for group in data.groups + [issuer] {
            expect((group?.pool.count ?? 0) == 0, "a connection to an upstream is left")
        }
        expect(upstreams.allSatisfy(\.peer.isClosed), "a connection to an upstream is open")
        expect(kernel.openDescriptors == 0, "a descriptor is left")
        expect(kernel.misuse.isEmpty, "the kernel was misused: \(kernel.misuse)")
        expect(loop.nextDeadline == nil, "a timer is left")
    }
}

/// Writes down what the loop reports. Touched on one thread only, though the protocol is for many.
private final class Keeper: KeeperInbox, @unchecked Sendable {
    private var reports: [LoopReport] = []

    func send(_ report: LoopReport, from loop: Int) -> Bool {
        reports.append(report)
        return true
    }

    func next() -> LoopReport? { reports.isEmpty ? nil : reports.removeFirst() }
}
