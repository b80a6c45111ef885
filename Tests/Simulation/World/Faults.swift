import ScriptedKernel

/// One thing that goes wrong, for a while or once.
struct Fault: CustomStringConvertible {
    enum Kind {
        case issuer(OAuthIssuer.Mood)
        case upstream(Int, Upstream.Mood)
        /// A server refuses connections, or says nothing.
        case refuses(String)
        case isSilent(String)
        /// A server takes a request and is gone.
        case dies(String)
        /// Every connection of a gateway, or to a server, breaks.
        case breaksConnections(of: Int)
        case breaksConnectionsTo(String)
        case slow(UInt64)
        /// The first piece of each new connection to a server is sent anew after this many nanoseconds.
        case slowToConnect(UInt64)
        case shortPieces(Int)
        case noNames(String)
        /// A gateway alone does not reach a server: what it sends is lost, and nothing comes.
        case cut(gateway: Int, String)
        /// All tokens of a client are taken away.
        case revokes(String)
        /// All tokens of a client are taken away, and the one that it is given next.
        case revokesNext(String)
        /// The service of the WebGates forgets its users' logins, and perhaps who has registered.
        case forgets(registrations: Bool)
        /// A user has another password from now on; the gateways learn of it at the end of the fault.
        case password(String)
        /// The person logs in, though nobody has to, or out and in again.
        case logIn(Int, anew: Bool)
        /// A secret is another one with each reading, and none of them is right.
        case secretFlaps
        case wallClock(gateway: Int, nanoseconds: Int64)
        case kill(Int)
        case powerCut(Int)
        /// The process is gone, and the next one finds that the rows of its sessions cannot be opened.
        case sessionsRot(Int)
        /// The service manager starts another process; the next one may be there before the last one has ended.
        case restart(Int, overlaps: Bool)
        /// Another process takes over, or fails to.
        case upgrade(Int, SimulatedUpgrade.Failure?)
        /// Processes do not run for a while, and perhaps neither does the machine.
        case stops(Int, withMachine: Bool)
        case reload(Int)
        /// The power may be cut in the moment in which the purge is answered.
        case purge(Int, thenCut: Bool)
        /// Something happens to a gateway in the moment in which it has read an answer of the issuer, and not before. Where
        /// that of a login is meant, the person begins one.
        case atNextAnswer(Int, Blow, ofLogin: Bool)
        case disk(gateway: Int, SimulatedDisk.Mood)
        /// The disk stops answering, and another process begins beside it, as where somebody kills what seems to hang.
        case startsBesideDisk(gateway: Int)
        /// Whatever the store has to write takes this much longer, in nanoseconds.
        case slowDisk(gateway: Int, UInt64)
        /// The disk has only this much space left, in octets.
        case fullDisk(gateway: Int, left: Int)
        /// The next calls of a loop's kernel fail with this number.
        case descriptors(gateway: Int, loop: Int)
        case redis(RedisServer.Mood)
        case redisWiped
        /// Somebody who writes there puts back what was there at the fault's beginning.
        case redisReplayed
        case redisRestarted(keepsData: Bool)

        /// Whether leases of the fleet may be lost or late by it.
        var troublesFleet: Bool {
            switch self {
            case .issuer, .upstream, .revokes, .revokesNext, .forgets, .password, .logIn, .secretFlaps, .noNames:
                false
            default: true
            }
        }

        /// Whether gateways may not hear of each other's logins by it. A process that ends takes no login with it.
        var hidesLogins: Bool {
            switch self {
            case .redis, .redisWiped, .redisReplayed, .redisRestarted, .stops, .slow, .shortPieces, .descriptors,
                .breaksConnections:
                true
            case .cut(_, let address), .refuses(let address), .isSilent(let address), .dies(let address),
                .breaksConnectionsTo(let address):
                address == World.redisAddress
            case .noNames(let host): host == "redis.example"
            default: false
            }
        }
    }

    /// What befalls a gateway at a moment that something else chooses.
    enum Blow: CaseIterable {
        case kill, powerCut, purge, reload
        /// The next process sees what the purge has left.
        case purgeThenRestart
    }

    let number: Int
    let kind: Kind
    let begins: UInt64
    let ends: UInt64

    var description: String {
        "fault \(number) at \(Journal.text(begins)) until \(Journal.text(ends)): \(kind)"
    }
}

/// The faults of a run, all drawn before it begins, so that any of them can be left out.
struct FaultPlan {
    let faults: [Fault]
    let mildness: Mildness
    let theme: FaultTheme

    /// How much the seed lets go wrong. A list that was shrunk to nothing is as mild as it was.
    enum Mildness: String, CaseIterable {
        /// Nothing, so that everything has to succeed.
        case calm
        /// Only what costs no request: everything has to succeed as well.
        case mild
        case rough
    }

    var mustSucceed: Bool { mildness != .rough }

    /// Some faults of another plan.
    init(_ faults: [Fault], _ mildness: Mildness, _ theme: FaultTheme = .everything) {
        self.faults = faults
        self.mildness = mildness
        self.theme = theme
    }

    /// The same history with fewer faults.
    func with(_ faults: [Fault]) -> FaultPlan { FaultPlan(faults, mildness, theme) }

    /// - Parameter pace: nanoseconds from one fault to the next, on average.
    init(seed: UInt64, duration: UInt64, pace: UInt64, gateways: Int) {
        var draw = Draw(seed, Purpose.faults)
        guard pace > 0, !draw.once(in: 8) else {
            self.init([], .calm)
            return
        }
        let isMild = draw.once(in: 4)
        let isFleet = World.isFleet(seed)
        let theme = FaultTheme.drawn(&draw, isFleet: isFleet)
        let one = draw.below(gateways)
        let befallen = theme != .everything && draw.once(in: 2) ? one..<one + 1 : 0..<gateways
        // Faults of one moment meet what the gateway has under way because of each other; a fault that comes alone is seen to its end.
        let comesInGroups = draw.once(in: 2)
        func pause() -> UInt64 {
            guard comesInGroups else { return draw.below(2 * pace) }
            return draw.once(in: 4) ? draw.below(8 * pace) : draw.below(pace / 4)
        }
        var faults: [Fault] = []
        var time = draw.below(2 * pace)
        while time < duration {
            let kind =
                isMild
                ? Fault.Kind.mild(&draw) : Fault.Kind.rough(&draw, theme, befallen, isFleet: isFleet)
            let length = draw.once(in: 4) || kind.lasts ? draw.below(.seconds(12)) : draw.below(.seconds(2))
            faults.append(
                Fault(number: faults.count + 1, kind: kind, begins: time, ends: min(time + length, duration)))
            time += pause()
        }
        self.init(faults, isMild ? .mild : .rough, isMild ? .everything : theme)
    }

    func schedule(in world: World) {
        for fault in faults {
            world.timeline.at(fault.begins) {
                world.journal.note(.fault, UInt64(fault.number), [], "\(fault)")
                begin(fault, world)
            }
            world.timeline.at(fault.ends) { end(fault, world) }
        }
    }

    /// Ends what has no end of its own before the run's.
    func heal(_ world: World) {
        for fault in faults { end(fault, world) }
        for gateway in world.gateways where !gateway.isRunning { try? gateway.start() }
    }

    private func begin(_ fault: Fault, _ world: World) {
        if fault.kind.troublesFleet { world.redis?.noteTrouble(hidesLogins: fault.kind.hidesLogins) }
        switch fault.kind {
        case .issuer(let mood): world.issuer.mood = mood
        case .upstream(let number, let mood): world.upstreams[number].mood = mood
        case .refuses(let address): world.network.refusing.insert(address)
        case .isSilent(let address): world.network.silent.insert(address)
        case .dies(let address): world.network.dying.insert(address)
        case .breaksConnections(let gateway): world.network.breakAll { $0.gateway == gateway }
        case .breaksConnectionsTo(let address): world.network.breakAll { $0.address == address }
        case .slow(let nanoseconds): world.network.slowness = nanoseconds
        case .slowToConnect(let nanoseconds): world.network.dialSlowness = nanoseconds
        case .shortPieces(let most): world.network.longestPiece = most
        case .noNames(let host): world.lostNames.insert(host)
        case .cut(let gateway, let address): world.network.cuts.append((gateway, address))
        case .revokes(let client): world.tokens.revoke(client, now: world.timeline.now)
        case .revokesNext(let client): world.tokens.revokeNext(client, now: world.timeline.now)
        case .logIn(let gateway, let anew):
            guard let person = world.persons.first(where: { $0.cares(for: gateway) }) else { return }
            if anew { person.logInAnew(at: gateway) } else { person.logIn(at: gateway) }
        case .forgets(let registrations): world.mobileSocial.forgets(registrations: registrations)
        case .password(let user): world.issuer.passwords[user] = world.tokens.secret("pw")
        case .secretFlaps:
            world.wrongSecretsUntil = fault.ends + .seconds(40)
            for gateway in world.gateways { gateway.flaps = true }
        case .wallClock(let gateway, let nanoseconds): world.gateways[gateway].jump(nanoseconds: nanoseconds)
        case .kill(let gateway): world.gateways[gateway].kill()
        case .powerCut(let gateway): world.gateways[gateway].cutPower()
        case .sessionsRot(let gateway): world.gateways[gateway].killAndRot()
        case .restart(let gateway, let overlaps): world.gateways[gateway].restart(overlaps: overlaps)
        case .upgrade(let gateway, let failure): world.gateways[gateway].upgradeInPlace(failure: failure)
        case .stops(let gateway, let withMachine): world.gateways[gateway].stop(withMachine: withMachine)
        case .reload(let gateway): world.gateways[gateway].reload()
        case .purge(let gateway, let thenCut): world.gateways[gateway].purge(thenCut: thenCut)
        case .atNextAnswer(let gateway, let blow, let ofLogin):
            world.gateways[gateway].atNextAnswer = (blow, ofLogin)
            if ofLogin { world.persons.first { $0.cares(for: gateway) }?.logInAnew(at: gateway) }
        case .disk(let gateway, let mood): world.gateways[gateway].disk.mood = mood
        case .startsBesideDisk(let gateway):
            world.gateways[gateway].disk.mood = .hangs
            world.gateways[gateway].kill()
            try? world.gateways[gateway].start()
        case .slowDisk(let gateway, let nanoseconds): world.gateways[gateway].disk.slowness = nanoseconds
        case .fullDisk(let gateway, let left): world.gateways[gateway].fillDisk(but: left)
        case .descriptors(let gateway, let loop):
            let kernels = world.gateways[gateway].kernels
            if loop < kernels.count { kernels[loop].socketErrors = [24, 24, 0, 24] }
        case .redis(let mood): world.redis?.mood = mood
        case .redisWiped: world.redis?.wipe()
        case .redisReplayed: world.redis?.remember()
        case .redisRestarted(let keepsData): world.redis?.restart(keepsData: keepsData)
        }
    }

    private func end(_ fault: Fault, _ world: World) {
        if fault.kind.troublesFleet { world.redis?.noteTrouble(hidesLogins: fault.kind.hidesLogins) }
        expectTold(fault, world)
        switch fault.kind {
        case .issuer: world.issuer.mood = .well
        case .upstream(let number, _): world.upstreams[number].mood = .well
        case .refuses(let address): world.network.refusing.remove(address)
        case .isSilent(let address): world.network.silent.remove(address)
        case .dies(let address): world.network.dying.remove(address)
        case .cut(let gateway, let address): world.network.join(gateway, to: address)
        case .slow: world.network.slowness = 0
        case .slowToConnect: world.network.dialSlowness = 0
        case .shortPieces: world.network.longestPiece = .max
        case .noNames(let host): world.lostNames.remove(host)
        case .password(let user):
            guard let password = world.issuer.passwords[user] else { return }
            let name = [BasicGate.user: "BASIC", MobileSocial.user: "SERVICE"][user] ?? "PASSWORD"
            for gateway in world.gateways { gateway.setSecret(name, password) }
        case .secretFlaps: for gateway in world.gateways { gateway.endsFlapping() }
        case .atNextAnswer(let gateway, _, _):
            world.gateways[gateway].atNextAnswer = nil
            try? world.gateways[gateway].start()
        case .kill(let gateway), .powerCut(let gateway), .sessionsRot(let gateway): try? world.gateways[gateway].start()
        case .disk(let gateway, _), .startsBesideDisk(let gateway):
            world.gateways[gateway].disk.mood = .well
            world.gateways[gateway].heldBack.diskIsWell(at: world.timeline.now)
        case .slowDisk(let gateway, _): world.gateways[gateway].disk.slowness = 0
        case .fullDisk(let gateway, _):
            world.gateways[gateway].disk.capacity = SimulatedDisk.size
            world.gateways[gateway].heldBack.diskIsWell(at: world.timeline.now)
        case .redis: world.redis?.mood = .well
        case .redisReplayed: world.redis?.replay()
        case .stops(let gateway, _): world.gateways[gateway].goOn()
        case .descriptors(let gateway, _): for kernel in world.gateways[gateway].kernels { kernel.socketErrors = [] }
        case .breaksConnections, .breaksConnectionsTo, .revokes, .revokesNext, .forgets, .logIn, .wallClock,
            .redisWiped,
            .redisRestarted, .restart, .reload, .purge, .upgrade:
            break
        }
    }

    /// A server that has taken no writes for a while does not count as working.
    private func expectTold(_ fault: Fault, _ world: World) {
        guard case .redis(.readOnly) = fault.kind, let redis = world.redis, redis.mood == .readOnly,
            fault.ends > fault.begins + .seconds(6), world.timeline.now == fault.ends
        else { return }
        for gateway in world.gateways { gateway.expectServerToldBroken(since: fault.begins) }
    }
}
