import ScriptedKernel
import ScriptedWorld
import Synchronization
import TLS
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Reactor
@testable import Telemetry

/// Batches of spans on their way to a collector that the test plays.
@Suite struct SpanExporterTests {
    private final class Scene {
        let kernel = FakeKernel()
        let loop: Loop
        let exporter: SpanExporter
        let counts = SpanCounts()
        let events: EventLog
        let destination: SpanDestination
        /// What the collector says; nil: nothing, ever.
        var status: Int? = 200
        /// Fields of its answer.
        var fields = ""
        private(set) var calls = 0
        private(set) var requests: [String] = []

        init(
            headers: [(name: String, value: SecretSource)] = [], blocking: any BlockingWork = ImmediateWork(),
            proxy: ProxyPlan? = nil
        ) throws {
            loop = try Loop(name: "keeper", kernel: kernel)
            events = try EventLog()
            exporter = SpanExporter(
                loop: loop, blocking: blocking, resolver: ScriptedNames([:]), events: events,
                counts: counts, seed: 1)
            destination = SpanDestination(
                url: try #require(IssuerURL("http://127.0.0.1:4318/v1/traces")), headers: headers,
                network: IssuerNetwork(
                    minimumVersion: .v1_2, legacyTLS: false, proxy: proxy, timeout: 10_000_000_000, connections: 1,
                    patience: 1_000_000_000, resolve: [:]))
            exporter.take(destination)
        }

        deinit { exporter.take(nil) }

        func leave(_ spans: Int) {
            exporter.take(SpanExport(body: Array(repeating: 0x0a, count: 64), count: spans))
            settle()
        }

        func settle() {
            for _ in 0..<12 {
                loop.turnOnce()
                for peer in kernel.connections {
                    let text = peer.takeText()
                    guard text.contains("/v1/traces HTTP/1.1\r\n") else { continue }
                    requests.append(text)
                    calls += 1
                    if let status { peer.send("HTTP/1.1 \(status) Said\r\n\(fields)Content-Length: 0\r\n\r\n") }
                }
            }
        }

        func pass(seconds: Int) {
            for _ in 0..<(4 * seconds) {
                kernel.advance(seconds: 0.25)
                settle()
            }
        }
    }

    @Test func whatTheCollectorTakesIsExported() throws {
        let scene = try Scene()
        scene.leave(3)
        scene.leave(4)
        #expect(scene.calls == 2 && scene.exporter.isIdle)
        #expect(scene.counts.count(of: .exported) == 7)
    }

    @Test func aBatchThatIsNotTakenForNowIsSentTwiceAndNoMore() throws {
        let scene = try Scene()
        scene.status = 503
        scene.leave(3)
        #expect(scene.calls == 1 && !scene.exporter.isIdle)
        scene.pass(seconds: 2)
        #expect(scene.calls == 2 && scene.exporter.isIdle)
        #expect(scene.counts.count(of: .failed) == 3)
    }

    @Test func aBatchThatIsRefusedIsNotSentAgain() throws {
        let scene = try Scene()
        scene.status = 400
        scene.leave(3)
        scene.pass(seconds: 3)
        #expect(scene.calls == 1 && scene.exporter.isIdle)
        #expect(scene.counts.count(of: .failed) == 3)
    }

    @Test func fewBatchesWaitForACollectorThatIsSilent() throws {
        let scene = try Scene()
        scene.status = nil
        for _ in 0..<(SpanExporter.mostWaiting + 4) { scene.leave(2) }
        #expect(scene.calls == 1)
        #expect(scene.counts.count(of: .dropped) == 8)
    }

    /// A reload, while the call was under way that finds out whether the collector is back.
    @Test func anotherDestinationIsNotHeldUpByATrialOfTheLastOne() throws {
        let scene = try Scene()
        scene.kernel.connectPlan = { _ in .failed(111) }
        // Enough failures in a row that calls stop.
        for _ in 0..<8 {
            scene.leave(1)
            scene.pass(seconds: 3)
        }
        #expect(scene.calls == 0)
        scene.kernel.connectPlan = { _ in .accepted }
        scene.status = nil
        for _ in 0..<60 where scene.calls == 0 {
            scene.leave(1)
            scene.pass(seconds: 1)
        }
        #expect(scene.calls == 1 && !scene.exporter.isIdle)
        scene.status = 200
        scene.exporter.take(scene.destination)
        scene.pass(seconds: 3)
        #expect(scene.exporter.isIdle)
        #expect(scene.counts.count(of: .exported) > 0)
    }
    @Test func eachDestinationThatTakesNothingIsToldOf() throws {
        let scene = try Scene()
        scene.status = 400
        for _ in 0..<3 {
            scene.leave(1)
            scene.leave(1)
            scene.exporter.take(scene.destination)
        }
        scene.status = 200
        scene.leave(1)
        var told: [String] = []
        while let event = scene.events.next() { told.append("\(event.message)") }
        #expect(told == Array(repeating: "spans cannot be exported", count: 3))
    }

    /// A proxy is told the whole address, and a collector that it is not for is reached without it.
    @Test(arguments: [true, false]) func aCollectorMayStandBehindAProxy(_ isFor: Bool) throws {
        let proxy = ProxyPlan(UpstreamEndpoint(host: "127.0.0.1", port: 3128), credential: nil) { host in
            host == "127.0.0.1" && isFor
        }
        let scene = try Scene(proxy: proxy)
        scene.leave(3)
        #expect(scene.counts.count(of: .exported) == 3)
        #expect(scene.kernel.connections.map { $0.address?.port } == [isFor ? 3128 : 4318])
        let target = isFor ? "http://127.0.0.1:4318/v1/traces" : "/v1/traces"
        #expect(scene.requests.first?.hasPrefix("POST \(target) HTTP/1.1\r\n") == true)
    }

    // MARK: - Headers

    /// A key that is renewed on disk is read anew for each call.
    @Test func aHeaderThatCannotBeReadIsReadAgain() throws {
        struct NoKey: Error {}
        let isThere = Mutex(false)
        let scene = try Scene(headers: [
            (
                name: "api-key",
                value: {
                    guard isThere.withLock({ $0 }) else { throw NoKey() }
                    return Secret("k1")
                }
            )
        ])
        scene.leave(3)
        #expect(scene.calls == 0 && !scene.exporter.isIdle && scene.counts.count(of: .failed) == 0)
        isThere.withLock { $0 = true }
        scene.pass(seconds: 2)
        #expect(scene.calls == 1 && scene.requests[0].contains("api-key: k1\r\n"))
        #expect(scene.counts.count(of: .exported) == 3 && scene.exporter.isIdle)
    }

    @Test(arguments: [ScriptedWork.Thread.full, .stuck]) func headersThatCannotBeReadInTimeHoldNothingUp(
        _ thread: ScriptedWork.Thread
    ) throws {
        let blocking = ScriptedWork()
        let scene = try Scene(headers: [(name: "api-key", value: { Secret("k1") })], blocking: blocking)
        blocking.thread = thread
        scene.leave(3)
        scene.pass(seconds: 30)
        #expect(scene.calls == 0 && scene.counts.count(of: .failed) == 3)
        // What is read at last is of no use to anybody.
        blocking.goOn()
        scene.pass(seconds: 10)
        #expect(scene.calls == 0 && scene.exporter.isIdle)
        scene.leave(2)
        scene.pass(seconds: 5)
        #expect(scene.calls == 1 && scene.counts.count(of: .exported) == 2)
    }

    /// Switched off while the headers were being read.
    @Test func whatIsSwitchedOffSendsNothing() throws {
        let blocking = ScriptedWork()
        blocking.thread = .stuck
        let scene = try Scene(headers: [(name: "api-key", value: { Secret("k1") })], blocking: blocking)
        scene.leave(3)
        scene.exporter.take(nil)
        blocking.goOn()
        scene.pass(seconds: 5)
        #expect(scene.calls == 0 && scene.counts.count(of: .dropped) == 3 && scene.exporter.isIdle)
        scene.leave(1)
        #expect(scene.calls == 0 && scene.counts.count(of: .dropped) == 4)
    }

    // MARK: - Answers

    @Test func aCollectorSaysWhenToComeAgain() throws {
        let scene = try Scene()
        scene.status = 429
        scene.fields = "Retry-After: 7\r\n"
        scene.leave(3)
        scene.status = 200
        scene.pass(seconds: 6)
        #expect(scene.calls == 1 && scene.counts.count(of: .exported) == 0)
        scene.pass(seconds: 2)
        #expect(scene.calls == 2 && scene.counts.count(of: .exported) == 3)
    }

    /// The batch has gone to another destination meanwhile: it is counted once.
    @Test func theAnswerOfAnEarlierDestinationCountsNoMore() throws {
        let scene = try Scene()
        scene.status = nil
        scene.leave(3)
        let first = try #require(scene.kernel.connections.last)
        scene.exporter.take(scene.destination)
        scene.settle()
        #expect(scene.calls == 2 && !scene.exporter.isIdle)
        first.send("HTTP/1.1 400 Said\r\nContent-Length: 0\r\n\r\n")
        scene.settle()
        #expect(scene.counts.count(of: .failed) == 0 && !scene.exporter.isIdle)
        try #require(scene.kernel.connections.last).send("HTTP/1.1 200 Said\r\nContent-Length: 0\r\n\r\n")
        scene.settle()
        #expect(scene.counts.count(of: .exported) == 3 && scene.counts.count(of: .failed) == 0)
        #expect(scene.exporter.isIdle)
    }
}
