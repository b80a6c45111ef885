import ScriptedKernel
import Testing

@testable import Scenes

/// Answers that turn out not to be whole: what their callers see of that.
@Suite struct CutAnswerTests {
    // MARK: - Over HTTP/2, what one read brings

    private static func frame(_ type: UInt8, _ flags: UInt8, _ payload: [UInt8]) -> [UInt8] {
        [0, UInt8(payload.count >> 8), UInt8(payload.count & 0xff), type, flags, 0, 0, 0, type == 4 ? 0 : 1] + payload
    }

    /// `:status 200`, `content-length: 5`.
    private static let head = frame(1, 4, [0x88, 0x0f, 0x0d, 1, UInt8(ascii: "5")])
    private static func data(_ text: String, ends: Bool) -> [UInt8] { frame(0, ends ? 1 : 0, Array(text.utf8)) }

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let rest: [UInt8]
        init(_ name: String, _ rest: [UInt8]) { (testDescription, self.rest) = (name, rest) }
    }

    static let contradictions = [
        Case("too long", data("123456", ends: true)),
        Case("too long, unfinished", data("123456", ends: false)),
        Case("too short", data("1234", ends: true)),
        Case("too long by a second frame", data("1234", ends: false) + data("56", ends: false)),
        Case("another head", data("12345", ends: false) + head),
        Case("a pseudo-field behind it", data("12345", ends: false) + frame(1, 5, [0x88])),
    ]

    /// Nothing was sent yet.
    @Test(arguments: contradictions) func whatContradictsItsHeadBesideItIsAnswered(_ known: Case) throws {
        let scene = try Scene(Plans.open("http: 2"))
        let caller = scene.call(Wire.get())
        scene.upstreams[0].send(Self.frame(4, 0, []) + Self.head + known.rest)
        scene.settle()
        #expect(caller.status == 502 && caller.receivedText.contains("problems/upstream-garbage"))
        // The connection has done nothing wrong, and serves the next one.
        let next = scene.call(Wire.get("/next"))
        #expect(scene.upstreams.count == 1)
        var answer = Self.head + Self.data("12345", ends: true)
        answer[8] = 3
        answer[8 + Self.head.count] = 3
        scene.upstreams[0].send(answer)
        scene.settle()
        #expect(next.status == 200 && next.receivedText.hasSuffix("\r\n\r\n12345"))
        scene.upstreams[0].reset()
        scene.end()
    }

    /// Nor is a connection that breaks beside the head, of a server that does not speak the protocol any more.
    @Test func whatBreaksItsConnectionBesideItIsAnswered() throws {
        let scene = try Scene(Plans.open("http: 2"))
        let caller = scene.call(Wire.get())
        // SETTINGS have no five octets.
        let breach = Self.frame(4, 0, [0, 0, 0, 0, 0])
        scene.upstreams[0].send(Self.frame(4, 0, []) + Self.head + Self.data("123", ends: false) + breach)
        scene.settle()
        #expect(caller.status == 502 && caller.receivedText.contains("problems/upstream-garbage"))
        // What was whole before stays so.
        let next = scene.call(Wire.get("/next"))
        #expect(scene.upstreams.count == 2)
        scene.upstreams[1].send(Self.frame(4, 0, []) + Self.head + Self.data("12345", ends: true) + breach)
        scene.settle()
        #expect(next.status == 200 && next.receivedText.hasSuffix("\r\n\r\n12345"))
        #expect(scene.upstreams.map(\.isClosed) == [true, true])
        scene.end()
    }

    /// With the head on its way it is too late for another answer.
    @Test func whatContradictsItLaterIsCut() throws {
        let scene = try Scene(Plans.open("http: 2"))
        let caller = scene.call(Wire.get())
        scene.upstreams[0].send(Self.frame(4, 0, []) + Self.head)
        scene.settle()
        scene.upstreams[0].send(Self.data("123456", ends: true))
        scene.settle()
        #expect(caller.status == 200 && caller.isClosed && caller.receivedText.hasSuffix("\r\n\r\n"))
        scene.upstreams[0].reset()
        scene.end()
    }

    // MARK: - To callers whose answer ends with its connection

    private static let old = "GET / HTTP/1.0\r\n\r\n"
    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"

    @Test func anAnswerThatIsCutDoesNotEndInOrder() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Self.old)
        scene.upstreams[0].send(Self.chunked)
        scene.upstreams[0].finish()
        scene.settle()
        #expect(caller.receivedText.hasSuffix("\r\n\r\nabc") && caller.sawReset)
        scene.end()
    }

    @Test func aWholeOneDoes() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Self.old)
        scene.upstreams[0].send(Self.chunked + "0\r\n\r\n")
        scene.settle()
        #expect(caller.receivedText.hasSuffix("\r\n\r\nabc") && caller.sawEnd && !caller.sawReset)
        scene.end()
        #expect(!caller.sawReset)
    }

    /// The rest is lost here and not at the upstream, for a caller that takes nothing of it.
    @Test func neitherDoesOneWhoseRestWasNotTaken() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Self.old)
        caller.window = 20
        scene.upstreams[0].send(Self.chunked + "0\r\n\r\n")
        scene.settle()
        for _ in 0..<3 { scene.pass(seconds: 61) }
        #expect(caller.receivedCount == 20)
        #expect(caller.isClosed && caller.sawReset)
        scene.end()
    }

    /// A length says as much by itself.
    @Test func aLengthNeedsNoReset() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Self.old)
        scene.upstreams[0].send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        scene.upstreams[0].finish()
        scene.settle()
        #expect(caller.receivedText.hasSuffix("\r\n\r\nabc") && caller.isClosed && !caller.sawReset)
        scene.end()
    }
}
