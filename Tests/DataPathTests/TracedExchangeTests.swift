import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes
@testable import Telemetry

/// What exchanges leave for their spans.
@Suite struct TracedExchangeTests {
    private static let tracing = "tracing: {ratio: 100%}\n"
    private static let none = "tracing: {ratio: 0%}\n"

    /// The records that the loop has left.
    private static func records(of scene: Scene) throws -> [ExchangeTrace] {
        let ring = try #require(scene.data.traces)
        var records: [ExchangeTrace] = []
        while ring.next({ records.append(copy $0) }) {}
        return records
    }

    /// An exchange with one answer of the upstream.
    private func exchange(_ yaml: String, _ answer: String, exports: Bool = true) throws -> (Scene, [ExchangeTrace]) {
        let scene = try Scene(yaml, exportsSpans: exports)
        let caller = scene.call(Wire.get("/a?b=c"))
        let upstream = try #require(scene.upstreams.first)
        scene.pass(seconds: 0.25)
        upstream.send(answer)
        scene.settle()
        #expect(!caller.takeText().isEmpty)
        let records = exports ? try Self.records(of: scene) : []
        scene.end()
        return (scene, records)
    }

    @Test func aSampledExchangeLeavesOneRecord() throws {
        let (scene, records) = try exchange(Plans.open() + Self.tracing, Wire.ok("x"))
        let record = try #require(records.first)
        #expect(
            records.count == 1 && record.isSampled && !record.isFailed && record.status == 200 && record.method == .get)
        #expect(record.sends == 1 && record.sentAt >= record.startedAt && record.endedAt >= record.sentAt + 250_000_000)
        #expect(record.span != 0 && record.parent == 0 && record.traceHigh | record.traceLow != 0)
        #expect(record.route == scene.plan.routes[0].logName && record.fault == 0 && record.wait.start == 0)
    }

    @Test func anExchangeThatNobodySampledLeavesNothing() throws {
        #expect(try exchange(Plans.open() + Self.none, Wire.ok("x")).1.count == 0)
        #expect(try exchange(Plans.open() + Self.none, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n").1.count == 0)
    }

    @Test func aFailureLeavesOneWhoeverSampled() throws {
        let (_, records) = try exchange(Plans.open() + Self.none, "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")
        #expect(records.map(\.status) == [503] && records.allSatisfy { !$0.isSampled && $0.isFailed })
    }

    @Test func withoutTracingNothingIsLeft() throws {
        #expect(try exchange(Plans.open(), "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n").1.count == 0)
    }

    @Test func aWaitIsToldToTheKeeperAndRecorded() throws {
        let scene = try Scene(Plans.oauth() + Self.tracing, exportsSpans: true)
        let callers = (0..<12).map { _ in scene.call(Wire.get()) }
        #expect(scene.keeper.needed == 1)
        // As many as a grant's span points at, each with its own span.
        let told = scene.keeper.traced
        #expect(told.count == SpanRecord.mostLinks && Set(told.map(\.span.span)).count == told.count)
        let slot = try #require(scene.plan.routes[0].slot)
        #expect(told.allSatisfy { $0.place == .slot(slot) })
        if case .traced? = scene.keeper.reports.first {} else { Issue.record("the wait was reported before its span") }
        scene.pass(seconds: 1)
        try scene.publish("Bearer x", generation: 1)
        scene.data.desk.open(.settled(slot: slot, .use(slot: slot, granted: 1)))
        scene.settle()
        for upstream in scene.upstreams { upstream.send(Wire.ok("x")) }
        scene.settle()
        let records = try Self.records(of: scene)
        #expect(records.count == callers.count)
        #expect(records.allSatisfy { $0.wait.start >= $0.startedAt && $0.wait.end >= $0.wait.start + 1_000_000_000 })
        #expect(records.allSatisfy { $0.sentAt >= $0.wait.end && $0.laterWait.start == 0 })
        #expect(Set(told.map(\.span.span)).isSubset(of: records.map(\.span)))
        scene.end()
    }

    @Test func aWaitThatNobodySampledIsNotTold() throws {
        let scene = try Scene(Plans.oauth() + Self.none, exportsSpans: true)
        _ = scene.call(Wire.get())
        #expect(scene.keeper.needed == 1 && scene.keeper.traced.count == 0)
        scene.end()
    }

    @Test(arguments: [
        ("GET", SpanMethod.get), ("PUT", .put), ("HEAD", .head), ("POST", .post), ("PATCH", .patch), ("TRACE", .trace),
        ("DELETE", .delete), ("CONNECT", .connect), ("OPTIONS", .options), ("get", .other), ("GEX", .other),
        ("", .other),
        ("PROPFIND", .other), ("OPTIMUM", .other),
    ])
    func aMethodIsNamedWhereItIsKnown(_ text: String, _ method: SpanMethod) {
        #expect(Array(text.utf8).withUnsafeBytes { SpanMethod($0) } == method)
    }
}
