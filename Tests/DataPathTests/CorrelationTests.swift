import HTTP1
import Octets
import ScriptedKernel
import ScriptedWorld
import Testing

@testable import DataPath
@testable import Scenes
@testable import Telemetry

/// By which id a request is known in its access record, in the problem, at the upstream and to its caller.
@Suite struct CorrelationTests {
    /// An exchange on a route with `request_id`, answered by the upstream with an id of its own.
    private struct Seen {
        var request = ""
        var answer = ""
        var record = ""

        init(_ route: String, _ fields: String) throws {
            let scene = try Scene(Plans.open(route) + "log: {access: all}\n", logsAccess: true)
            let caller = scene.call(Wire.get("/", fields))
            let upstream = try #require(scene.upstreams.first)
            request = upstream.takeText()
            upstream.send(Wire.ok("", "X-Request-Id: theirs\r\n"))
            scene.settle()
            answer = caller.takeText()
            record = try Self.record(of: scene)
            scene.end()
        }

        /// The id of the oldest access record.
        static func record(of scene: Scene) throws -> String {
            var id = ""
            let ring = try #require(scene.data.access)
            #expect(ring.next { id = String(decoding: $0.requestID, as: UTF8.self) })
            return id
        }
    }

    private static func isMade(_ id: String) -> Bool {
        id.utf8.count == 32 && id.utf8.allSatisfy { $0.isDigit || (0x61...0x66).contains($0) }
    }

    /// The value of `X-Request-Id`; nil where there is none, or more than one.
    private static func id(in head: String) -> String? {
        let lines = head.split(separator: "\r\n").filter { $0.lowercased().hasPrefix("x-request-id:") }
        return lines.count == 1 ? String(lines[0].dropFirst("x-request-id:".count).drop { $0 == " " }) : nil
    }

    @Test(arguments: ["a", "7f3c.A-Z_0", String(repeating: "x", count: 64)])
    func aCallersOwnIsTaken(_ id: String) throws {
        let seen = try Seen("request_id: echo", "x-request-ID: \(id)\r\n")
        #expect(seen.record == id && Self.id(in: seen.request) == id && Self.id(in: seen.answer) == id)
    }

    @Test(arguments: [
        "", "X-Request-Id: \r\n", "X-Request-Id: a b\r\n", "X-Request-Id: a/b\r\n", "X-Request-Id: a\"b\r\n",
        "X-Request-Id: a,b\r\n", "X-Request-Id: a\r\nX-Request-Id: a\r\n",
        "X-Request-Id: \(String(repeating: "x", count: 65))\r\n", "X_Request_Id: a\r\n",
    ])
    func anyOtherIsReplaced(_ fields: String) throws {
        let seen = try Seen("request_id: echo", fields)
        #expect(Self.isMade(seen.record), "\(seen.record)")
        #expect(Self.id(in: seen.request) == seen.record && Self.id(in: seen.answer) == seen.record)
        #expect(!seen.request.contains("X_Request_Id"))
    }

    @Test func withoutAWordOfTheRouteFieldsPassAsTheyCame() throws {
        let seen = try Seen("", "X-Request-Id: a b\r\nx-request-id: c\r\n")
        #expect(seen.request.contains("X-Request-Id: a b\r\nx-request-id: c\r\n"))
        #expect(Self.id(in: seen.answer) == "theirs" && Self.isMade(seen.record))
        let own = try Seen("", "X-Request-Id: mine\r\n")
        #expect(own.record == "mine" && Self.id(in: own.request) == "mine" && Self.id(in: own.answer) == "theirs")
        #expect(Self.id(in: try Seen("", "").request) == nil)
    }

    @Test func theUpstreamAloneIsTold() throws {
        let seen = try Seen("request_id: send", "")
        #expect(Self.id(in: seen.request) == seen.record && Self.id(in: seen.answer) == "theirs")
    }

    /// A request that is sent again is the same request.
    @Test func aReplayHasTheSameID() throws {
        let scene = try Scene(Plans.oauth("request_id: send"))
        try scene.publish("Bearer t1", generation: 1)
        _ = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        let first = try #require(Self.id(in: upstream.takeText()))
        upstream.send(Wire.challenge)
        scene.settle()
        let slot = try scene.publish("Bearer t2", generation: 2)
        scene.answer(try #require(scene.keeper.challenges.first?.ticket), .use(slot: slot, granted: 2))
        let again = scene.upstreams.map { $0.takeText() }.joined()
        #expect(again.contains("Authorization: Bearer t2\r\n") && Self.id(in: again) == first)
        scene.end()
    }

    @Test func twoRequestsOfAConnectionHaveTwo() throws {
        let scene = try Scene(Plans.open("request_id: send"))
        let caller = scene.call(Wire.get("/", "X-Request-Id: mine\r\n") + Wire.get() + Wire.get())
        var ids: [String] = []
        for _ in 0..<3 {
            let upstream = try #require(scene.upstreams.first)
            ids.append(try #require(Self.id(in: upstream.takeText())))
            upstream.send(Wire.ok())
            scene.settle()
        }
        #expect(ids[0] == "mine" && Self.isMade(ids[1]) && Self.isMade(ids[2]) && ids[1] != ids[2])
        #expect(caller.takeText() == Wire.ok() + Wire.ok() + Wire.ok())
        scene.end()
    }

    @Test(arguments: [("", false), ("request_id: send", false), ("request_id: echo", true)])
    func aProblemTellsIt(_ route: String, isTold: Bool) throws {
        let scene = try Scene(Plans.fixed(route) + "log: {access: errors}\n", logsAccess: true)
        let caller = scene.call("TRACE / HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: q.7\r\n\r\n")
        let answer = caller.takeText()
        #expect(answer.hasPrefix("HTTP/1.1 405 ") && answer.contains("\",\"request_id\":\"q.7\"}\n"))
        #expect(Self.id(in: answer) == (isTold ? "q.7" : nil))
        #expect(try Seen.record(of: scene) == "q.7")
        scene.end()
    }

    /// Not even a head that cannot be read is without one.
    @Test func aMalformedRequestHasOneThatWasMade() throws {
        let scene = try Scene(Plans.open() + "log: {access: errors}\n", logsAccess: true)
        let answer = scene.call("GET / HTTP/1.1\r\nX-Request-Id : a\r\n\r\n").takeText()
        let id = try Seen.record(of: scene)
        #expect(answer.hasPrefix("HTTP/1.1 400 ") && Self.isMade(id) && answer.contains("\"request_id\":\"\(id)\""))
        scene.end()
    }

    @Test func aTunnelKeepsTheOneItBeganWith() throws {
        let scene = try Scene(Plans.open() + "log: {access: all}\n", logsAccess: true)
        let caller = scene.call(
            Wire.get("/", "Connection: upgrade\r\nUpgrade: websocket\r\nX-Request-Id: long\r\n"))
        let upstream = try #require(scene.upstreams.first)
        upstream.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        scene.settle()
        caller.send(String(repeating: "z", count: 4096))
        scene.settle()
        caller.reset()
        scene.settle()
        #expect(try Seen.record(of: scene) == "long")
        scene.end()
    }

    @Test func anIdentityIsNamedInTheRecord() throws {
        let scene = try Scene(Plans.fixed() + "log: {access: all}\n", logsAccess: true)
        try scene.publish("Bearer t", generation: 1)
        _ = scene.call(Wire.get())
        try #require(scene.upstreams.first).send(Wire.ok())
        scene.settle()
        var line = ""
        let ring = try #require(scene.data.access)
        _ = ring.next { record in
            var formatter = LogFormatter(
                format: .text, routes: NameTable(), faults: NameTable(), identities: scene.logNames)
            formatter.write(copy record)
            line = String(decoding: formatter.line.bytes, as: UTF8.self)
        }
        #expect(line.contains(" identity=a request_id="), "\(line)")
        scene.end()
    }

    // MARK: - Traces

    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let parent = "00f067aa0ba902b7"

    /// The one value of a field; nil where there is none, or more than one.
    private static func value(of name: String, in head: String) -> String? {
        let lines = head.split(separator: "\r\n").filter { $0.lowercased().hasPrefix(name + ":") }
        return lines.count == 1 ? String(lines[0].dropFirst(name.count + 1).drop { $0 == " " }) : nil
    }

    /// What the upstream gets of a request with these fields, and the trace id in the record.
    private static func traced(
        _ fields: String, _ top: String = "tracing: on\n", route: String = "", listener: String = ""
    ) throws -> (parent: TraceParent?, state: String?, record: String, request: String) {
        var plan = Plans.open(route) + "log: {access: all}\n" + top
        if !listener.isEmpty {
            plan = plan.replacing("listen: \"127.0.0.1:8080\"", with: "listen: l")
            plan += "listeners: {l: {address: \"127.0.0.1:8080\", \(listener)}}\n"
        }
        let scene = try Scene(plan, logsAccess: true)
        let caller = scene.call(Wire.get("/", fields))
        let upstream = try #require(scene.upstreams.first)
        let request = upstream.takeText()
        upstream.send(Wire.ok())
        scene.settle()
        #expect(caller.takeText() == Wire.ok())
        var high: UInt64 = 0
        var low: UInt64 = 0
        let ring = try #require(scene.data.access)
        #expect(ring.next { (high, low) = ($0.traceHigh, $0.traceLow) })
        scene.end()
        let digits = [high, low].map { number in
            let text = String(number, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }
        let parent = value(of: "traceparent", in: request).flatMap { TraceParent(Array($0.utf8).span) }
        return (parent, value(of: "tracestate", in: request), digits.joined(), request)
    }

    private static func text(_ parent: TraceParent) -> String {
        [parent.traceHigh, parent.traceLow].map { number in
            let text = String(number, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }.joined()
    }

    private static let none = String(repeating: "0", count: 32)

    @Test func aCallersTraceGoesOn() throws {
        let seen = try Self.traced("Traceparent: 00-\(Self.trace)-\(Self.parent)-01\r\ntracestate: a=1,b=2\r\n")
        let parent = try #require(seen.parent)
        #expect(Self.text(parent) == Self.trace && seen.record == Self.trace && seen.state == "a=1,b=2")
        #expect(parent.span != 0x00f0_67aa_0ba9_02b7)
    }

    @Test(arguments: [
        "", "traceparent: 00-\(trace)-\(parent)\r\n", "traceparent: ff-\(trace)-\(parent)-01\r\n",
        "traceparent: 00-\(trace)-\(parent)-01\r\ntraceparent: 00-\(trace)-\(parent)-01\r\n",
        "traceparent: 00-\(none)-\(parent)-01\r\n", "trace_parent: 00-\(trace)-\(parent)-01\r\n",
    ])
    func aTraceBeginsWhereThereIsNone(_ fields: String) throws {
        let seen = try Self.traced(fields + "tracestate: a=1\r\n")
        let parent = try #require(seen.parent)
        #expect(Self.text(parent) == seen.record && seen.record != Self.trace && seen.state == nil)
        #expect(!seen.request.contains("a=1"))
    }

    @Test(arguments: [
        ("tracestate: a=1\r\nTracestate: b=2\r\n", "a=1,b=2"), ("tracestate: \r\n", nil), ("tracestate: A=1\r\n", nil),
        ("tracestate: a=1\r\ntracestate: B=2\r\n", nil),
        (
            "tracestate: \((0..<32).map { "k\($0)=1" }.joined(separator: ","))\r\n",
            (0..<32).map { "k\($0)=1" }.joined(separator: ",")
        ),
        ("tracestate: \((0..<33).map { "k\($0)=1" }.joined(separator: ","))\r\n", nil),
        (
            "tracestate: \((0..<10).map { "k\($0)=" + String(repeating: "v", count: 250) }.joined(separator: ","))\r\n",
            nil
        ),
    ])
    func aStateGoesOnWholeOrNotAtAll(_ fields: String, _ expected: String?) throws {
        let seen = try Self.traced("traceparent: 00-\(Self.trace)-\(Self.parent)-00\r\n" + fields)
        #expect(seen.state == expected && seen.parent.map(Self.text) == Self.trace)
        #expect(seen.request.lowercased().contains("tracestate") == (expected != nil))
    }

    @Test func withoutTracingFieldsPassAndTheRecordHasTheTrace() throws {
        let fields = "traceparent: 00-\(Self.trace)-\(Self.parent)-01\r\ntracestate: WHAT\r\n"
        let seen = try Self.traced(fields, "")
        #expect(seen.request.contains(fields) && seen.record == Self.trace)
        #expect(try Self.traced("", "").record == Self.none)
        #expect(try Self.traced("traceparent: nonsense\r\n", "").record == Self.none)
    }

    @Test func aRouteKeepsTracesFromItsUpstream() throws {
        let fields = "traceparent: 00-\(Self.trace)-\(Self.parent)-01\r\ntracestate: a=1\r\n"
        let seen = try Self.traced(fields, route: "headers: {remove: [traceparent, tracestate]}")
        #expect(!seen.request.lowercased().contains("trace") && seen.record == Self.trace)
        let bare = try Self.traced(fields, route: "headers: {remove: [Tracestate]}")
        #expect(bare.parent.map(Self.text) == Self.trace && !bare.request.lowercased().contains("tracestate"))
    }

    /// Anybody else could have everything recorded that it asks for.
    @Test(arguments: [
        ("0%", "", "01", false), ("100%", "", "00", true), ("0%", "forwarded_from: [127.0.0.0/8]", "01", true),
        ("100%", "forwarded_from: [127.0.0.0/8]", "00", false), ("100%", "forwarded_from: [10.0.0.0/8]", "00", true),
    ])
    func aCallersMarkCountsWhereItIsBelieved(ratio: String, listener: String, flags: String, isSampled: Bool) throws {
        let seen = try Self.traced(
            "traceparent: 00-\(Self.trace)-\(Self.parent)-\(flags)\r\n", "tracing: {ratio: \(ratio)}\n",
            listener: listener)
        #expect(seen.parent?.isSampled == isSampled)
        // Without a mark of the caller's the ratio decides, whoever calls.
        let own = try Self.traced("", "tracing: {ratio: \(ratio)}\n", listener: listener)
        #expect(own.parent?.isSampled == (ratio == "100%"))
    }

    @Test func aShareIsSampled() throws {
        let scene = try Scene(Plans.open() + "tracing: {ratio: 25%}\n")
        let caller = scene.call()
        var sampled = 0
        for _ in 0..<2000 {
            caller.send(Wire.get("/", "traceparent: 00-\(Self.trace)-\(Self.parent)-01\r\n"))
            scene.settle()
            let upstream = try #require(scene.upstreams.first)
            let line = try #require(Self.value(of: "traceparent", in: upstream.takeText()))
            if line.hasSuffix("-01") { sampled += 1 }
            upstream.send(Wire.ok())
            scene.settle()
            #expect(caller.takeText() == Wire.ok())
        }
        #expect((400...600).contains(sampled), "\(sampled) of 2000")
        scene.end()
    }

    /// The two ways to the upstream are told apart within one trace.
    @Test func aReplayIsAnotherSpanOfTheTrace() throws {
        let scene = try Scene(Plans.oauth() + "tracing: on\n")
        try scene.publish("Bearer t1", generation: 1)
        _ = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        let first = try #require(Self.value(of: "traceparent", in: upstream.takeText()))
        upstream.send(Wire.challenge)
        scene.settle()
        let slot = try scene.publish("Bearer t2", generation: 2)
        scene.answer(try #require(scene.keeper.challenges.first?.ticket), .use(slot: slot, granted: 2))
        let again = scene.upstreams.map { $0.takeText() }.joined()
        let second = try #require(Self.value(of: "traceparent", in: again))
        #expect(first.prefix(35) == second.prefix(35) && first != second && first.suffix(2) == second.suffix(2))
        scene.end()
    }

    // MARK: - Numbers

    @Test func aNumberHasAllItsDigits() {
        for value in [0, 1, 0x0123_4567_89ab_cdef, .max, 0xfedc_ba98_7654_3210, 1 << 63] as [UInt64] {
            let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 16, alignment: 1)
            defer { memory.deallocate() }
            var cursor = OutputCursor(memory)
            cursor.append(allHexadecimal: value)
            let text = String(value, radix: 16)
            #expect(!cursor.overflowed)
            #expect(String(decoding: memory, as: UTF8.self) == String(repeating: "0", count: 16 - text.count) + text)
            cursor.append(allHexadecimal: value)
            #expect(cursor.overflowed)
        }
    }

    @Test func noNumberIsGivenOutTwice() {
        var stock = NumberStock(SeededRandom(seed: 7))
        let numbers = (0..<1000).map { _ in stock.next() }
        #expect(Set(numbers).count == numbers.count)
    }
}
