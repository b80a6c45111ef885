import CMallocCount
import ScriptedKernel
import TLS
import Testing

@testable import DataPath
@testable import Scenes

/// The first law of the data path, counted: a hit allocates nothing and makes no call that it could leave out.
///
/// Calls are counted in every build. Allocations are counted in release builds only, which is what runs:
/// `CARDEA_TESTS=Budgets swift test -c release -Xswiftc -enable-testing --scratch-path .build/budgets --filter Budgets`
@Suite(.serialized) struct BudgetTests {
    enum Case: String, CaseIterable, Sendable {
        case noIdentity, hit, hitWithAccessLog, traced, tracedNow, hitWithBodies, hitWithChunks, hitWithChunkedRequest,
            hitOverMinutes
        case framedCaller, framedUpstream
        case user, callersToken, admittedByToken, ownField, manyFields, query, cookie, tellsTheCaller, mapsAddresses

        /// As long as a JWT is.
        private static let own = String(repeating: "eyJhbGciOiJFUzI1NiJ9.", count: 40)

        func treadmill() throws -> Treadmill {
            let scene: Scene
            switch self {
            case .noIdentity: scene = try Scene(Plans.open())
            case .hitWithAccessLog: scene = try Scene(Plans.fixed() + "log: {access: all}\n", logsAccess: true)
            case .traced: scene = try Scene(Plans.fixed() + "tracing: {ratio: 100%}\n", exportsSpans: true)
            case .tracedNow: scene = try Scene(Plans.fixed() + "tracing: {ratio: 1%}\n", exportsSpans: true)
            case .ownField: scene = try Scene(Plans.fixed("inject: {header: X-Key, value: \"k {token}\"}"))
            case .admittedByToken: scene = try Scene(Plans.fixed("callers: {token: \"literal:secret\"}"))
            case .framedUpstream: scene = try Scene(Plans.fixed("http: '2'"))
            case .query: scene = try Scene(Plans.fixed("inject: {query: key}"))
            case .cookie: scene = try Scene(Plans.fixed("inject: {cookie: key}"))
            case .user: scene = try Scene(Plans.users("extra: {act_as: '{subject}'}", "{from_header: X-User}"))
            case .callersToken: scene = try Scene(Plans.users("grant: token_exchange", "from_caller_token"))
            case .tellsTheCaller:
                scene = try Scene(Plans.fixed("forwarded: {fields: both, caller: hidden}, server_timing: on"))
            case .mapsAddresses:
                let plan = Plans.fixed("rewrite: {strip_prefix: /a}")
                scene = try Scene(plan.replacing("cache_control: pass", with: "cache_control: private"))
            default: scene = try Scene(Plans.fixed())
            }
            if self == .user { try scene.publish("Bearer abc", generation: 1, for: Array("anna".utf8)) }
            if self == .callersToken {
                try scene.publish(
                    "Bearer abc", generation: 1, for: [SubjectPlan.digestMark] + sha256(Array(Self.own.utf8)))
            }
            if ![.noIdentity, .user, .callersToken].contains(self) {
                try scene.publish("Bearer abcdefghijklmnopqrstuvwxyz", generation: 1)
            }
            let body = String(repeating: "0123456789abcdef", count: 256)
            let fields = (0..<24).map { "X-Field-\($0): some value of a field\r\n" }.joined()
            switch self {
            case .framedCaller:
                return Treadmill(scene, request: Message.framedGet, answer: Message(Wire.ok("hello")))
            case .framedUpstream:
                return Treadmill(scene, request: Message(Wire.get()), answer: Message.framedHello)
            case .hitWithBodies: return Treadmill(scene, request: Wire.post(body), answer: Wire.ok(body))
            case .hitWithChunks:
                return Treadmill(
                    scene, request: Wire.get(),
                    answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n\(body)\r\n0\r\n\r\n")
            case .hitWithChunkedRequest:
                return Treadmill(scene, request: Wire.chunkedPost([body]), answer: Wire.ok("x"))
            // Deadlines pass and are set anew.
            case .hitOverMinutes: return Treadmill(scene, request: Wire.get(), answer: Wire.ok("x"), pace: 150_000_000)
            case .query: return Treadmill(scene, request: Wire.get("/a?key=x&b=1"), answer: Wire.ok("x"))
            case .cookie:
                return Treadmill(scene, request: Wire.get("/", "Cookie: key=x; b=1\r\n"), answer: Wire.ok("x"))
            case .tellsTheCaller:
                return Treadmill(
                    scene, request: Wire.get("/", "X-Forwarded-For: 1\r\nForwarded: for=x\r\n"), answer: Wire.ok("x"))
            case .mapsAddresses:
                return Treadmill(
                    scene, request: Wire.get("/a/b"),
                    answer: Wire.ok("x", "Location: http://127.0.0.1:9000/c\r\nSet-Cookie: a=b; Path=/; Secure\r\n"))
            // `anna:secret`.
            case .admittedByToken:
                return Treadmill(
                    scene, request: Wire.get("/", "Authorization: Basic YW5uYTpzZWNyZXQ=\r\n"), answer: Wire.ok("x"))
            case .user: return Treadmill(scene, request: Wire.get("/", "X-User: anna\r\n"), answer: Wire.ok("x"))
            case .callersToken:
                return Treadmill(
                    scene, request: Wire.get("/", "Authorization: Bearer \(Self.own)\r\n"), answer: Wire.ok("x"))
            case .manyFields: return Treadmill(scene, request: Wire.get("/", fields), answer: Wire.ok("x", fields))
            default: return Treadmill(scene, request: Wire.get(), answer: Wire.ok("hello"))
            }
        }

        var budget: Budget {
            switch self {
            case .framedCaller: return .framedCaller
            case .framedUpstream: return .framedUpstream
            // A body and its head leave for the upstream in two writes; an answer's in one.
            case .hitWithBodies, .hitWithChunkedRequest:
                return Budget(mallocs: Budget.hit.mallocs, systemCalls: Budget.hit.systemCalls + 1)
            default: return .hit
            }
        }
    }

    @Test("system calls of an exchange (mallocs: release builds only)", arguments: Case.allCases)
    func systemCalls(_ exchange: Case) throws {
        let treadmill = try exchange.treadmill()
        treadmill.run()
        #expect(!treadmill.stalled && treadmill.counted == Budget.exchanges)
        #expect(treadmill.systemCalls == exchange.budget.systemCalls * UInt64(Budget.exchanges))
    }

    @Test(
        "mallocs of an exchange",
        .enabled(if: cardea_counts_mallocs() == 1, "allocations are counted in release builds without sanitizers"),
        arguments: Case.allCases)
    func mallocs(_ exchange: Case) throws {
        let treadmill = try exchange.treadmill()
        treadmill.run()
        #expect(!treadmill.stalled && treadmill.counted == Budget.exchanges)
        let most = exchange.budget.mallocs * UInt64(Budget.exchanges)
        #expect(treadmill.mallocs <= most)
        if treadmill.mallocs > most { cardea_malloc_count_report(2) }
    }

    /// A counter that sees nothing would pass everything.
    @Test(
        "the counter counts",
        .enabled(if: cardea_counts_mallocs() == 1, "allocations are counted in release builds without sanitizers"))
    func theCounterCounts() {
        cardea_malloc_count_begin()
        var arrays: [[Int]] = []
        for number in 0..<10 { arrays.append(Array(repeating: number, count: 100 + number)) }
        let counted = cardea_malloc_count_end()
        #expect(counted >= 10 && arrays.count == 10)
        cardea_malloc_count_begin()
        #expect(cardea_malloc_count_end() < 10)
    }
}
