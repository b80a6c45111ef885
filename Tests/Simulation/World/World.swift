import Reactor
import Synchronization

/// Everything of one run: three gateways, what they call, who calls them, and the faults that a seed brings.
final class World {
    let seed: UInt64
    let timeline = Timeline()
    let journal: Journal
    let verdicts: Verdicts
    let network: Network
    let tokens: Tokens
    private(set) var gateways: [GatewayProcess] = []
    private(set) var callers: [Caller] = []
    private(set) var issuer: OAuthIssuer!
    private(set) var mobileSocial: MobileSocial!
    private(set) var upstreams: [Upstream] = []
    /// Nil where the gateways are no fleet.
    private(set) var redis: RedisServer?
    private(set) var persons: [Person] = []
    /// Nil where all is said in clear text.
    private(set) var certificate: SimulatedCertificate?
    let plan: FaultPlan
    let limits: SeedLimits
    /// Until when an issuer may be sent a secret that is none, nanoseconds.
    var wrongSecretsUntil: UInt64 = 0
    var secretsWereWrong: Bool { timeline.now < wrongSecretsUntil }
    var refusals = Refusals()
    /// Users whose password somebody has refused, whichever it was.
    var refusedUsers: Set<String> = []
    private var turns: Draw
    /// Host names that resolve now.
    var lostNames: Set<String> = []

    /// Data loops of each gateway.
    static let loops = 2
    static let listener = "127.0.0.1:8080"
    /// Addresses that callers come to.
    static let listeners = [listener, "127.0.0.1:8081"]
    /// The place in `listeners` of the one whose callers come by a proxy that says who they are.
    static let proxied = 1
    static let routes = [
        Route(name: "service", client: "service"), Route(name: "person", client: "person"),
        Route(name: "basic", client: "basic"), Route(name: "gate", client: MobileSocial.client),
        crowd, Route(name: "none", client: "none"),
        // A token is for one origin alone, so that two routes of one client to two origins ask for two.
        Route(name: "second", client: "service@second"), human,
    ]
    /// A person has to log in for it.
    static let human = Route(name: "human", client: Person.client)
    /// Routes that callers ask on. Nobody has logged in when a run begins, so that not every request succeeds there.
    var asked: [Route] { mustSucceed ? Self.routes.filter { $0.client != Person.client } : Self.routes }
    func asked(_ draw: inout Draw) -> Route {
        let route = draw.element(of: asked)
        guard route.client == Person.client, plan.theme.leavesLoginsAlone, !draw.once(in: 30) else { return route }
        return Self.routes[0]
    }
    /// Each user has a token of their own.
    static let crowd = Route(name: "users", client: "crowd")
    /// APIs; the last one speaks HTTP/2.
    static let upstreams = 3
    /// Routes with paths that refuse every token, where something may go wrong.
    static let closedRoutes = ["service", "second"]

    /// Routes with paths that take only tokens that are good for more.
    static let wideRoutes = ["service"]

    struct Route {
        /// The first part of its paths.
        let name: String
        /// Whose credential it takes: a client's and, behind '@', for which audience.
        let client: String

        /// The client, with the user where each has a token of his own.
        func client(for user: Substring) -> String { client == "crowd" ? "crowd/\(user)" : client }
    }
    /// Nobody waits longer, in nanoseconds.
    static let patience: UInt64 = .seconds(180)
    /// Nanoseconds for the answers to the last questions.
    static let lastAnswers: UInt64 = .seconds(60)
    /// Seconds that faults are over before the end is looked at.
    static let rest: UInt64 = .seconds(400)

    struct Size {
        var gateways = 3
        /// Nil: as many as the seed has.
        var callers: Int?
        /// Nanoseconds of virtual time in which callers ask.
        var duration: UInt64 = .seconds(30)
    }
    let size: Size

    /// Nothing that is broken in this run may cost a request.
    var mustSucceed: Bool { plan.mustSucceed }

    var hasClosedPaths: Bool { plan.mildness != .calm && seed % 2 == 0 }

    init(seed: UInt64, size: Size, plan: FaultPlan, keepsLines: Int = 0) throws {
        self.seed = seed
        self.size = size
        self.plan = plan
        limits = SeedLimits(seed, plan.theme, isAmple: plan.mustSucceed)
        journal = Journal(timeline, keeps: keepsLines)
        verdicts = Verdicts(timeline, journal)
        network = Network(timeline, seed: seed)
        tokens = Tokens(seed: seed)
        turns = Draw(seed, Purpose.turns)
        let secret = tokens.secret("cs")
        let password = tokens.secret("pw")
        let basic = tokens.secret("pw")
        issuer = OAuthIssuer(
            self, clients: ["service": secret, "person": secret, "crowd": secret, Person.client: secret])
        issuer.passwords = ["anna": password, BasicGate.user: basic, MobileSocial.user: basic]
        mobileSocial = MobileSocial(self)
        if Self.usesTLS(seed) { certificate = try SimulatedCertificate() }
        let tls = certificate?.server(speaksHTTP2: false)
        network.serve("10.0.0.2:9002", tls) { [unowned self] in mobileSocial.accept($0) }
        network.serve("10.0.0.1:9001", tls) { [unowned self] in issuer.accept($0) }
        for number in 0..<Self.upstreams {
            let upstream = Upstream(
                self, name: "api\(number)", number: UInt64(number), speaksHTTP2: number == Self.upstreams - 1)
            upstreams.append(upstream)
            let tls = certificate?.server(speaksHTTP2: number == Self.upstreams - 1)
            network.serve("10.0.1.\(number + 1):9000", tls) { upstream.accept($0) }
            if number == 1 { network.serve(Self.secondAddress, tls) { upstream.accept($0) } }
        }
        if Self.isFleet(seed) {
            let redis = RedisServer(self)
            self.redis = redis
            network.serve(Self.redisAddress, tls) { redis.accept($0) }
        }
        for number in 0..<size.gateways {
            let gateway = GatewayProcess(self, number: number)
            gateway.environment.withLock {
                $0 = ["SECRET": secret, "PASSWORD": password, "BASIC": basic, "SERVICE": basic, "KEY": Self.storeKey]
            }
            gateways.append(gateway)
        }
        if !mustSucceed {
            let places: [Int?] = redis == nil ? (0..<size.gateways).map { $0 } : [nil]
            persons = places.map { Person(self, place: $0) }
        }
        callers = (0..<(size.callers ?? Self.callers(seed))).map { Caller(self, number: $0) }
    }

    /// The other address of the second API.
    static let secondAddress = "10.0.1.12:9000"
    static let redisAddress = "10.0.2.1:6379"
    static let storeKey = "c2ltdWxhdGlvbi1zaW11bGF0aW9uLXNpbXVsYXRpb24="

    /// One seed of six has the standard load. Few callers let more histories happen in the same time; what needs a crowd needs many.
    static func callers(_ seed: UInt64) -> Int { seed % 6 == 1 ? 60 : 16 }

    /// Two seeds of three have a fleet; with the third each gateway is alone.
    static func isFleet(_ seed: UInt64) -> Bool { seed % 3 != 0 }

    /// One seed of seven speaks TLS everywhere. What OpenSSL draws is not the seed's, so that such a history may go another way the next time.
    static func usesTLS(_ seed: UInt64) -> Bool { seed % 7 == 5 }

    var scheme: String { certificate == nil ? "http" : "https" }
    private var listenerTLS: String {
        certificate.map { ", tls: [{certificate: \($0.certificate), key: \"file:\($0.key)\"}]" } ?? ""
    }
    /// The API without credentials. Under TLS it speaks both protocols, so that who authenticates a connection meets those that many share.
    private var open: String { certificate == nil ? "api0" : "api2" }
    /// Many seeds under TLS have one connection for it in each loop, which those who share one and those who authenticate one need by turns.
    /// The API takes uploads at once there, and callers are few: a long request, or one behind the other, would keep somebody who needs the
    /// connection for himself waiting with good reason.
    var hasOneConnection: Bool { certificate != nil && seed / 7 % 2 == 0 && Self.callers(seed) < 60 }
    private var bound: String { hasOneConnection ? ", limits: {connections: 1, waiters: 300}" : "" }
    private var trust: String { certificate.map { "tls: {ca: \($0.certificate)}" } ?? "" }

    static let storePath = "/disk/tokens.db"

    /// Every fifth seed has Digest where others have Basic.
    static func usesDigest(_ seed: UInt64) -> Bool { seed % 5 == 3 }

    /// Every fourth seed keeps tokens in memory alone.
    static func hasStore(_ seed: UInt64) -> Bool { seed % 4 != 1 }

    private var storeLine: String {
        let redisURL = certificate == nil ? "redis://redis.example:6379" : "rediss://redis.example:6379"
        let ca = certificate.map { ", ca: \($0.certificate)" } ?? ""
        let shared = "shared: {url: \"\(redisURL)\", allow_cleartext: true, format: new\(ca)}"
        let parts =
            (Self.hasStore(seed) ? ["path: \(Self.storePath)"] : []) + (redis == nil ? [] : [shared])
        return parts.isEmpty ? "" : "store: {key: env:KEY, \(parts.joined(separator: ", "))}"
    }

    /// Each edition has other times, and outside of a fleet every second one another form of one identity,
    /// whose tokens are of no use to the other.
    func configuration(of number: Int) -> String {
        let edition = gateways[number].edition
        return """
            name: gate\(number)
            threads: \(Self.loops)
            sandbox: off
            log: {access: all, format: text}
            admin: off
            \(storeLine)
            limits: {subjects: \(limits.subjects), new_subjects_per_second: \(limits.newSubjectsPerSecond), waiters: \(limits.waiters), replay_memory: \(limits.replayMemory)}
            listeners:
              front: {address: "\(Self.listeners[0])"\(listenerTLS)}
              behind: {address: "\(Self.listeners[1])", proxy_protocol: {from: 127.0.0.0/8}\(listenerTLS)}
            defaults:
              network: {\(trust)}
              route:
                listen: [front, behind]
                callers: {allow: [127.0.0.0/8, 192.0.2.0/24]}
                allow_cleartext: true
                limits: {\(limits.connections)}
                \(trust)
            identities:
              service:
                oauth2:
                  token_url: "\(scheme)://issuer.example:9001/token"
                  client_id: service
                  client_secret: env:SECRET
                  allowed_scopes: [reading, writing]
                  \(edition % 2 == 0 || redis != nil ? "" : "extra: {edition: odd}")
                network: {allow_cleartext: true, timeout: \(10 + edition % 3)s}
              person:
                oauth2:
                  token_url: "\(scheme)://issuer.example:9001/token"
                  client_id: person
                  client_secret: env:SECRET
                  grant: password
                  username: anna
                  password: env:PASSWORD
                network: {allow_cleartext: true}
              crowd:
                oauth2:
                  token_url: "\(scheme)://issuer.example:9001/token"
                  client_id: crowd
                  client_secret: env:SECRET
                  extra: {user: "{subject}"}
                network: {allow_cleartext: true}
              human:
                oauth2:
                  token_url: "\(scheme)://issuer.example:9001/token"
                  device_authorization_url: "\(scheme)://issuer.example:9001/device"
                  client_id: human
                  client_secret: env:SECRET
                  grant: device_code
                network: {allow_cleartext: true}
              svc:
                oam_webgate:
                  service: "\(scheme)://oam.example:9002/rest/mobile"
                  user_agent_prefix: OIC-Agent
                  client_id: EdgeProxy
                  username: \(MobileSocial.user)
                  password: env:SERVICE
                network: {allow_cleartext: true}
              otto:
                \(Self.usesDigest(seed) ? "digest" : "basic"): {username: \(BasicGate.user), password: env:BASIC}
            \(crowdOfIdentities)
            routes:
              - {match: {path: /service/}, to: "\(scheme)://api0.example:9000", use: service}
              - {match: {path: /person/}, to: "\(scheme)://api1.example:9000", use: person}
              - {match: {path: /human/}, to: "\(scheme)://api1.example:9000", use: human}
              - {match: {path: /users/}, to: "\(scheme)://api0.example:9000", use: crowd, subject: {from_header: X-User}}
              - {match: {path: /second/}, to: "\(scheme)://api2.example:9000"\(certificate == nil ? ", http: 2" : ""), use: service, audience: second}
              - {match: {path: /gate/}, to: "\(scheme)://api0.example:9000", use: svc}
              - {match: {path: /basic/}, to: "\(scheme)://api1.example:9000", use: otto}
              - {match: {path: /}, to: "\(scheme)://\(open).example:9000", use: none\(bound)}
            \(crowdOfRoutes)

            """
    }

    /// Every seventh seed has more identities whose secrets a start reads than the blocking thread lets wait.
    private var crowdOfIdentities: String {
        crowd { "  more\($0): {static: {header: X-More-\($0), value: env:SECRET}}" }
    }

    private var crowdOfRoutes: String {
        crowd { "  - {match: {path: /more\($0)/}, to: \"\(scheme)://api0.example:9000\", use: more\($0)}" }
    }

    private func crowd(_ line: (Int) -> String) -> String {
        seed % 7 == 2 ? (0..<300).map(line).joined(separator: "\n") : ""
    }

    func addresses(of host: String) -> Result<[SocketAddress], ResolveFault> {
        if lostNames.contains(host) { return .failure(.unavailable) }
        let addresses = [
            "issuer.example": "10.0.0.1", "oam.example": "10.0.0.2", "api0.example": "10.0.1.1",
            "api1.example": "10.0.1.2",
            "api2.example": "10.0.1.3", "redis.example": "10.0.2.1",
        ]
        let more = host == "api1.example" ? [Self.secondAddress.split(separator: ":")[0]] : []
        let found = ([addresses[host]].compactMap(\.self) + more.map(String.init)).compactMap {
            SocketAddress(host: $0, port: 0)
        }
        return found.isEmpty ? .failure(.notFound) : .success(found)
    }

    /// Everything has been whole for a while: each gateway answers on each route, and says that it is well.
    private func lookForRecovery() -> [Caller] {
        for gateway in gateways { gateway.expectWellTold() }
        let last = gateways.map { Caller(self, number: 1000 + $0.number, only: $0) }
        for caller in last { caller.askEverywhere() }
        return last
    }

    // MARK: - Running

    /// Runs to the end: the load, a rest in which everything must come to its end, and the look at what is left.
    func run() throws {
        for gateway in gateways { try gateway.start() }
        settle()
        plan.schedule(in: self)
        for person in persons { person.begin() }
        for caller in callers { caller.begin() }
        advance(to: size.duration)
        plan.heal(self)
        for caller in callers { caller.stop() }
        advance(to: size.duration + World.patience)
        for caller in callers {
            caller.look()
            caller.hangUp()
        }
        let last = lookForRecovery()
        advance(to: size.duration + World.patience + World.lastAnswers)
        for caller in last {
            caller.expectAnswers()
            caller.hangUp()
        }
        advance(to: size.duration + World.rest)
        for gateway in gateways { gateway.checkNothingIsLeft() }
        // Of one body 64 pieces move when its reader has something and as many when its writer has room; of requests there are a few more.
        // A record takes two reads.
        verdicts.expect(
            network.mostReads <= (certificate == nil ? 200 : 400), .endlessWait,
            "\(network.mostReads) reads of one connection in one turn, while others wait")
    }

    /// Lets time pass up to a moment, with all that happens until then.
    private func advance(to end: UInt64) {
        while true {
            var next = timeline.next ?? .max
            for gateway in gateways { next = min(next, gateway.nextDeadline) }
            guard next <= end else { break }
            timeline.move(to: next)
            for gateway in gateways { gateway.setClocks() }
            while timeline.step() {}
            settle()
        }
        timeline.move(to: end)
        for gateway in gateways { gateway.setClocks() }
        settle()
    }

    /// Turns loops, in an order that the seed draws, until none has anything to do: the order in which threads come to run at one moment.
    private func settle() {
        for gateway in gateways { gateway.findBusy() }
        for _ in 0..<1_000_000 {
            let count = gateways.reduce(0) { $0 + $1.busy.count }
            guard count > 0 else {
                for gateway in gateways { gateway.planStore() }
                return
            }
            var place = turns.below(count)
            for gateway in gateways {
                guard place >= gateway.busy.count else {
                    let chosen = gateway.busy[place]
                    chosen.life.turn(chosen.loop)
                    // What a loop does reaches other gateways when time has passed.
                    gateway.findBusy()
                    break
                }
                place -= gateway.busy.count
            }
        }
        verdicts.expect(false, .endlessWait, "loops do not come to rest")
    }
}
