import HotCache
import ScriptedKernel
import ScriptedWorld
import Synchronization
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import Telemetry

/// Spans of grants, as a collector reads them: each is a part of the first waiting request's trace, and points at all that waited for it.
@Suite struct KeeperTraceTests {
    /// A message of protocol buffers, as far as spans need it.
    private struct Message {
        var texts: [Int: [[UInt8]]] = [:]
        var numbers: [Int: UInt64] = [:]

        init(_ octets: [UInt8]) {
            var rest = octets[...]
            func varint() -> UInt64 {
                var (value, shift) = (UInt64(0), UInt64(0))
                while let octet = rest.popFirst() {
                    value |= UInt64(octet & 0x7F) << shift
                    shift += 7
                    if octet < 0x80 { break }
                }
                return value
            }
            while !rest.isEmpty {
                let tag = varint()
                let field = Int(tag >> 3)
                switch tag & 7 {
                case 0: numbers[field] = varint()
                case 1: rest = rest.dropFirst(8)
                case 5: rest = rest.dropFirst(4)
                default:
                    let count = Int(varint())
                    texts[field, default: []].append(Array(rest.prefix(count)))
                    rest = rest.dropFirst(count)
                }
            }
        }

        func text(_ field: Int) -> String { String(decoding: texts[field]?.first ?? [], as: UTF8.self) }
    }

    private struct Span {
        let name: String
        let trace, id, parent: [UInt8]
        let links: [[UInt8]]
        let linksLeftOut: UInt64
        let isFailed: Bool
        var attributes: [String: String] = [:]

        init(_ message: Message) {
            name = message.text(5)
            (trace, id) = (message.texts[1]?.first ?? [], message.texts[2]?.first ?? [])
            parent = message.texts[4]?.first ?? []
            links = (message.texts[13] ?? []).compactMap { Message($0).texts[2]?.first }
            linksLeftOut = message.numbers[14] ?? 0
            isFailed = message.texts[15] != nil
            for member in message.texts[9] ?? [] {
                let pair = Message(member)
                let value = Message(pair.texts[2]?.first ?? [])
                attributes[pair.text(1)] = value.numbers[3].map { "\($0)" } ?? value.text(1)
            }
        }
    }

    /// A collector that has taken everything.
    private final class Collector {
        let processor: SpanProcessor
        private let taken: Taken

        private final class Taken: Sendable {
            let exports = Mutex<[SpanExport]>([])
        }

        init() throws {
            let taken = Taken()
            self.taken = taken
            processor = SpanProcessor(
                resource: SpanResource(name: "gate", version: ""),
                log: LogThread(events: try EventLog(), format: .text), time: ScriptedTime()
            ) { export in
                taken.exports.withLock { $0.append(export) }
                return true
            }
        }

        func spans() -> [Span] {
            _ = processor.turn(at: 1, isLast: true)
            let exports = taken.exports.withLock { exports in
                defer { exports = [] }
                return exports
            }
            return exports.flatMap { export in
                (Message(export.body).texts[1] ?? []).flatMap { Message($0).texts[2] ?? [] }
                    .flatMap { Message($0).texts[2] ?? [] }.map { Span(Message($0)) }
            }
        }
    }

    private static let sampled = "tracing: {ratio: 100%}\n"
    private let collector: Collector

    init() throws { collector = try Collector() }

    private func scene(_ yaml: String) throws -> KeeperScene {
        let scene = try KeeperScene(yaml + Self.sampled, spans: collector.processor)
        scene.settle()
        return scene
    }

    // MARK: - Who waited

    @Test func aGrantPointsAtEachRequestThatWaitedForIt() throws {
        let scene = try scene(Plans.client())
        scene.issuer = { _ in nil }
        let callers = (0..<3).map { _ in scene.call() }
        scene.pass(seconds: 1)
        try #require(scene.issuers.last).send(Wire.bearer("t"))
        scene.settle()
        #expect(callers.map(\.status) == [200, 200, 200])
        let spans = collector.spans()
        let grant = try #require(spans.first { $0.name == "grant o" })
        let requests = spans.filter { $0.name.hasPrefix("GET") && $0.parent.isEmpty }
        #expect(requests.count == 3 && Set(grant.links) == Set(requests.map(\.id)))
        let first = try #require(requests.first { $0.id == grant.parent })
        #expect(grant.trace == first.trace && !grant.isFailed && grant.attributes["cardea.identity"] == "o")
        let call = try #require(spans.first { $0.name == "issuer call" })
        #expect(call.parent == grant.id && call.trace == grant.trace && !call.isFailed)
        #expect(call.attributes["http.request.method"] == "POST")
        #expect(call.attributes["http.response.status_code"] == "200")
        #expect(spans.count { $0.name == "grant o" } == 1)
    }

    /// A token that is had ahead keeps no request waiting.
    @Test func aGrantThatNoRequestWaitsForHasNoSpan() throws {
        let scene = try scene(Plans.client("startup: required"))
        scene.issuer = NumberedIssuer().answer
        // The first try met an issuer that was down.
        scene.pass(seconds: 60, step: 1)
        let calls = scene.issuerCalls.count
        #expect(calls > 1 && scene.status() == 200 && scene.issuerCalls.count == calls)
        let spans = collector.spans()
        #expect(spans.contains { $0.name.hasPrefix("GET") } && !spans.contains { $0.name.hasPrefix("grant") })
    }

    @Test func aGrantThatFailsSaysHowInOneWord() throws {
        let scene = try scene(Plans.client())
        scene.issuer = { _ in Wire.unavailable }
        #expect(scene.status() == 503)
        let spans = collector.spans()
        let grant = try #require(spans.first { $0.name == "grant o" })
        #expect(grant.isFailed && grant.attributes["error.type"] == "issuer_unavailable")
        let call = try #require(spans.first { $0.name == "issuer call" })
        #expect(call.isFailed && call.attributes["http.response.status_code"] == "503")
    }

    @Test func aCallThatHadNoAnswerHasFailedWithoutAStatus() throws {
        let scene = try scene(Plans.client())
        scene.keeperKernel.connectPlan = { _ in .failed(111) }
        #expect(scene.status() == 503)
        let call = try #require(collector.spans().first { $0.name == "issuer call" })
        #expect(call.isFailed && call.attributes["http.response.status_code"] == nil)
    }

    /// A request that was challenged waits under a ticket of its own.
    @Test func aGrantPointsAtTheRequestWhoseChallengeItAnswers() throws {
        let gate = NumberedGate()
        let scene = try scene(Plans.gate())
        (scene.issuer, scene.upstream) = (gate.answer, gate.guarded())
        #expect(scene.status("/w/x") == 200)
        let spans = collector.spans()
        let grant = try #require(spans.first { $0.name == "grant w" })
        let request = try #require(spans.first { $0.name.hasPrefix("GET") && $0.parent.isEmpty })
        #expect(grant.links == [request.id] && grant.parent == request.id)
        #expect(spans.count { $0.name == "issuer call" && $0.parent == grant.id } == 3)
    }

    // MARK: - Bounds

    private static let second: UInt64 = 1_000_000_000

    private func wait(_ place: TracedWait.Place, _ span: UInt64) -> TracedWait {
        TracedWait(place: place, span: SpanLink(traceHigh: 1, traceLow: 2, span: span))
    }

    /// A token, the traces that know who waits for it, and the slots of others.
    private func bounded() throws -> (token: KeptToken, traces: GrantTraces, others: [Slot]) {
        let scene = try KeeperScene(Plans.client())
        let token = try #require(scene.inKeeper { $0.tokens.all.first })
        let cache = HotCache(readers: 1, slots: GrantTraces.most + 8, byteLimit: 1 << 20)
        let others = (0..<GrantTraces.most + 4).compactMap { _ in cache.allocateSlot() }.filter { $0 != token.slot }
        return (token, GrantTraces(collector.processor, random: SeededRandom()), others)
    }

    private func grants(of token: KeptToken, _ traces: GrantTraces, at now: UInt64 = 2 * second) -> [Span] {
        traces.tell(of: token, trail: IssuerTrail(), failure: nil, since: Self.second, until: now)
        return collector.spans()
    }

    @Test func aRequestThatWaitedLongerThanAnyMayIsNotPointedAt() throws {
        let (token, traces, _) = try bounded()
        traces.note(wait(.slot(token.slot), 7), at: Self.second)
        let longest = token.identity.plan.acquireTimeout + Self.second
        #expect(grants(of: token, traces, at: Self.second + longest).count == 1)
        #expect(grants(of: token, traces, at: Self.second + longest + 1).isEmpty)
    }

    @Test func aSlotWhoseRequestsHaveTheirAnswerIsForgotten() throws {
        let (token, traces, _) = try bounded()
        traces.note(wait(.slot(token.slot), 7), at: Self.second)
        traces.forget(token.slot)
        #expect(grants(of: token, traces).isEmpty)
    }

    @Test func soManyRequestsOfOneSlotAreRememberedAndNoMore() throws {
        let (token, traces, _) = try bounded()
        for span in 1...UInt64(GrantTraces.mostTogether + 6) {
            traces.note(wait(.slot(token.slot), span), at: Self.second)
        }
        let grant = try #require(grants(of: token, traces).first)
        #expect(grant.links.count == 8 && Int(grant.linksLeftOut) == GrantTraces.mostTogether - 8)
    }

    /// Links are missing once where too many slots wait, and not for good.
    @Test func whereTooManySlotsWaitTheNewestIsRemembered() throws {
        let (token, traces, others) = try bounded()
        traces.note(wait(.slot(token.slot), 7), at: Self.second)
        for slot in others.prefix(GrantTraces.most - 1) { traces.note(wait(.slot(slot), 8), at: Self.second) }
        #expect(grants(of: token, traces).count == 1)
        // A further request of a slot that is known takes no room.
        traces.note(wait(.slot(token.slot), 9), at: Self.second)
        #expect(grants(of: token, traces).first?.links.count == 2)
        traces.note(wait(.slot(others[GrantTraces.most]), 8), at: Self.second)
        #expect(grants(of: token, traces).isEmpty)
        traces.note(wait(.slot(token.slot), 10), at: Self.second)
        #expect(grants(of: token, traces).first?.links.count == 1)
    }

    @Test func whereTooManyTicketsWaitTheNewestIsRemembered() throws {
        let (token, traces, _) = try bounded()
        token.tickets = [Ticket(loop: 0, number: 2)]
        for number in 1...UInt64(GrantTraces.most) {
            traces.note(wait(.ticket(Ticket(loop: 0, number: number)), number), at: Self.second)
        }
        #expect(grants(of: token, traces).count == 1)
        let last = Ticket(loop: 1, number: 1)
        traces.note(wait(.ticket(last), 3), at: Self.second)
        #expect(grants(of: token, traces).isEmpty)
        token.tickets = [last]
        #expect(grants(of: token, traces).count == 1)
        traces.forget(last)
        #expect(grants(of: token, traces).isEmpty)
    }
}
