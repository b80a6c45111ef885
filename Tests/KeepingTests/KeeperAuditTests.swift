import Audit
import Glibc
import ScriptedKernel
import ScriptedWorld
import Telemetry
import TemporaryFolder
import Testing

@testable import Keeping
@testable import Scenes
@testable import Tokens

/// The keeper's acts as they stand in the audit log on disk: by name, and without a word of the issuer.
@Suite struct KeeperAuditTests {
    /// An audit log in a folder of its own.
    private final class Log {
        let trail: AuditTrail
        private let folder = TemporaryFolder("keeper-audit")
        private let time = ScriptedTime()
        private var read = 0

        init(namesSubjects: Bool = true) throws {
            let path = folder.path + "/audit.log"
            _ = try ChainKeyFile.begin(beside: path, random: SeededRandom())
            let key = Array("a key of sixteen".utf8).withUnsafeBytes { SubjectKey($0) }
            trail = try AuditTrail(
                AuditFiles(path), subjectKey: namesSubjects ? key : nil, events: try EventLog(time: time), time: time,
                opening: [])
        }

        private var contents: [UInt8] {
            let descriptor = open(folder.path + "/audit.log", O_RDONLY)
            defer { close(descriptor) }
            var octets = [UInt8](repeating: 0, count: 1 << 20)
            let count = Glibc.read(descriptor, &octets, octets.count)
            return Array(octets.prefix(max(0, count)))
        }

        /// The records since the last look as `act member=value …`, without those of the chain.
        func acts() -> [String] {
            time.pass(nanoseconds: 1_000_000_000)
            _ = trail.turn(at: time.awake(), isLast: false)
            let lines = contents.split(separator: 0x0A)
            defer { read = lines.count }
            let acts = lines.dropFirst(read).map { Self.words(String(decoding: $0, as: UTF8.self)) }
            return acts.filter { $0 != "start" }
        }

        private static func words(_ line: String) -> String {
            let chain = ["number", "group", "time", "mac", "after", "group_end"]
            let members = line.dropFirst().dropLast().replacing(",\"", with: "\n\"").split(separator: "\n")
            let pairs = members.map { member in
                member.split(separator: ":", maxSplits: 1).map { String($0).replacing("\"", with: "") }
            }
            return pairs.filter { !chain.contains($0[0]) }.map { $0[0] == "act" ? $0[1] : "\($0[0])=\($0[1])" }
                .joined(separator: " ")
        }
    }

    private static let origin = "origin=http://127.0.0.1:9000"
    private let issuer = NumberedIssuer()

    private func scene(_ log: Log, _ yaml: String = Plans.client(), store: MemoryStore? = nil) throws -> KeeperScene {
        let scene = try KeeperScene(yaml, store: store, audit: log.trail)
        scene.issuer = issuer.answer
        scene.settle()
        return scene
    }

    // MARK: - Grants

    @Test func aGrantAndItsRenewalAreActsWithTheirGenerations() throws {
        let log = try Log()
        let scene = try scene(log)
        #expect(scene.status() == 200)
        let granted = try #require(scene.inKeeper { $0.tokens.all.first?.machine.heldGrant?.generation })
        #expect(log.acts() == ["grant identity=o \(Self.origin) generation=\(granted)"])
        scene.pass(seconds: 82)
        #expect(scene.status() == 200)
        let renewed = try #require(scene.inKeeper { $0.tokens.all.first?.machine.heldGrant?.generation })
        #expect(renewed > granted)
        #expect(log.acts() == ["refresh identity=o \(Self.origin) generation=\(renewed)"])
    }

    /// The token that was refused is gone when its refusal is told, so that the refusal names no generation.
    @Test func aRefusalByTheUpstreamAndTheGrantThatAnswersItAreTwoActs() throws {
        let log = try Log()
        let scene = try scene(log)
        scene.upstream = { $0.authorization == "Bearer t1" ? Wire.challenge : Wire.ok("in") }
        #expect(scene.status() == 200)
        let held = try #require(scene.inKeeper { $0.tokens.all.first?.machine.heldGrant?.generation })
        let acts = log.acts()
        #expect(acts.count == 3 && acts[0].hasPrefix("grant "))
        #expect(
            acts.dropFirst() == [
                "refusal identity=o \(Self.origin) reason=upstream",
                "grant identity=o \(Self.origin) generation=\(held)",
            ])
    }

    @Test func aTokenThatItsUpstreamRefusesAgainIsARefusalOfItsGeneration() throws {
        let log = try Log()
        let scene = try scene(log)
        scene.upstream = { _ in Wire.challenge }
        _ = scene.status()
        let last = try #require(log.acts().last)
        #expect(last.hasPrefix("refusal identity=o \(Self.origin) generation=") && last.hasSuffix(" reason=upstream"))
    }

    @Test func anIssuerThatIsDownIsARefusalInOneWord() throws {
        let log = try Log()
        let scene = try scene(log)
        issuer.fails = Wire.json(#"{"error":"temporarily_unavailable","error_description":"words"}"#, status: 503)
        #expect(scene.status() == 503)
        #expect(log.acts() == ["refusal identity=o \(Self.origin) reason=issuer_unavailable"])
    }

    @Test func aRenewalThatFailsIsARefusalBesideTheTokenThatIsServed() throws {
        let log = try Log()
        let scene = try scene(log)
        #expect(scene.status() == 200 && log.acts().count == 1)
        issuer.fails = Wire.unavailable
        scene.pass(seconds: 82)
        #expect(scene.status() == 200)
        let acts = log.acts()
        #expect(acts.count == 1 && acts[0].hasPrefix("refusal identity=o \(Self.origin) generation="), "\(acts)")
        #expect(acts[0].hasSuffix(" reason=issuer_unavailable"))
    }

    @Test func aRefusedPasswordIsARefusalByItsQuarantine() throws {
        let log = try Log()
        let scene = try scene(log, Plans.gate())
        let gate = NumberedGate()
        gate.refusesPassword = true
        scene.issuer = gate.answer
        scene.upstream = gate.guarded()
        #expect(scene.status("/w/x") == 503)
        #expect(log.acts() == ["refusal identity=w \(Self.origin) reason=quarantined"])
    }

    @Test func aLoginThatIsMissingIsARefusalThatNeedsAPerson() throws {
        let log = try Log()
        let plan = Plans.client(identity: "grant: device_code, device_authorization_url: https://idp.example.com/d")
        #expect(try scene(log, plan).status() == 503)
        #expect(log.acts() == ["refusal identity=o \(Self.origin) reason=interaction_required"])
    }

    /// A disk that takes nothing is the store's trouble, and no act on a credential.
    @Test func aDiskThatTakesNoTokenIsNoAct() throws {
        let (log, store) = (try Log(), MemoryStore())
        let scene = try scene(log, store: store)
        store.disk = .failing
        #expect(scene.status() == 200)
        #expect(log.acts().map { $0.prefix(6) } == ["grant "])
    }

    // MARK: - Purges

    @Test func eachPurgeNamesItsScopeAndTheTokensThatItFound() throws {
        let log = try Log()
        let scene = try scene(log, Plans.client(route: "name: r"))
        let scopes: [PurgeScope] = [.identity("o"), .route("r"), .everything]
        var told: [String] = []
        for scope in scopes {
            #expect(scene.status() == 200)
            _ = log.acts()
            _ = scene.inKeeper { $0.purge(scope) }
            told += log.acts()
        }
        // What was purged is held no more.
        _ = scene.inKeeper { $0.purge(.everything) }
        told += log.acts()
        #expect(told == ["purge identity=o count=1", "purge route=r count=1", "purge count=1", "purge count=0"])
    }

    @Test func aPurgeOfNothingThatIsConfiguredIsNoAct() throws {
        let log = try Log()
        let scene = try scene(log)
        let reports = scene.inKeeper { [$0.purge(.identity("nobody")), $0.purge(.route("nowhere"))] }
        #expect(reports == [nil, nil] && log.acts() == [])
    }

    // MARK: - End users

    private static let users = Plans.client(
        identity: "extra: {act_as: '{subject}'}", route: "callers: local, subject: {from_header: X-User}")

    @Test func anEndUserIsATagThatIsTheSameForTheSameUser() throws {
        let log = try Log()
        let scene = try scene(log, Self.users)
        for user in ["ann", "bob"] { #expect(scene.call(Wire.get("/", "X-User: \(user)\r\n")).status == 200) }
        let first = log.acts().map(Self.tag)
        #expect(first.count == 2 && first[0] != first[1])
        #expect(first.allSatisfy { $0?.count == 32 }, "\(first)")
        scene.pass(seconds: 120, step: 10)
        #expect(scene.call(Wire.get("/", "X-User: ann\r\n")).status == 200)
        #expect(log.acts().map(Self.tag) == [first[0]])
    }

    @Test func withoutASubjectKeyNoRecordSaysForWhomAGrantWas() throws {
        let log = try Log(namesSubjects: false)
        let scene = try scene(log, Self.users)
        #expect(scene.call(Wire.get("/", "X-User: ann\r\n")).status == 200)
        let acts = log.acts()
        #expect(acts.count == 1 && acts.map(Self.tag) == [nil] && !acts[0].contains("ann"))
    }

    private static func tag(_ act: String) -> Substring? {
        act.split(separator: " ").first { $0.hasPrefix("subject=") }?.dropFirst(8)
    }
}
