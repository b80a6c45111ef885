import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// What a caller's HTTP/2 connection has time for: the machine by a table, and the connection in virtual time.
@Suite struct HTTP2DeadlinesTests {
    private static let patience = HTTP2Deadlines.Patience(idle: 75, head: 10, write: 60, farewell: 1)

    /// One thing that happens to a connection.
    private enum Step {
        case state(served: Int, section: UInt32?)
        case waits(Bool)
        case request
        case leave(UInt64?)
        case passed(HTTP2Deadlines.Reason?)
    }

    private func play(_ steps: [(at: UInt64, step: Step, next: UInt64?)]) {
        var deadlines = HTTP2Deadlines()
        for (at, step, next) in steps {
            switch step {
            case .state(let served, let section):
                deadlines.note(served: served, section: section, at: at, Self.patience)
            case .waits(let waits): _ = deadlines.note(waits: waits, at: at, Self.patience)
            case .request: deadlines.requestCame()
            case .leave(let deadline): deadlines.leave(by: deadline)
            case .passed(let reason): #expect(deadlines.passed(at: at) == reason, "at \(at)")
            }
            #expect(deadlines.next == next, "at \(at), after \(step)")
        }
    }

    @Test func frameAfterFrameDoesNotMakeItBusy() {
        play([
            (0, .state(served: 0, section: nil), 75), (50, .state(served: 0, section: nil), 75),
            (75, .passed(.idle), nil),
        ])
    }

    @Test func aRequestDoes() {
        play([
            (0, .state(served: 0, section: nil), 75), (50, .state(served: 1, section: nil), nil),
            (500, .state(served: 0, section: nil), 575),
            // Here and gone between two looks.
            (550, .request, nil), (550, .state(served: 0, section: nil), 625),
        ])
    }

    @Test func aHeadThatHasBegunHasItsTime() {
        play([
            (0, .state(served: 0, section: 1), 10), (9, .state(served: 0, section: 1), 10), (10, .passed(.head), 75),
        ])
        // Beside a request that waits, and one head after the other.
        play([
            (0, .state(served: 1, section: nil), nil), (5, .state(served: 1, section: 2), 15),
            (14, .state(served: 2, section: 3), 24), (23, .state(served: 3, section: nil), nil),
        ])
        // Not taking what is written buys no time for it.
        play([(0, .state(served: 1, section: 1), 10), (1, .waits(true), 10), (10, .passed(.head), 61)])
    }

    @Test func aSlowReaderIsLookedAt() {
        play([
            (0, .state(served: 0, section: nil), 75), (70, .waits(true), 130), (100, .waits(true), 130),
            (130, .passed(.write), 130), (140, .waits(false), 215),
        ])
    }

    @Test func whoLeavesIsNotIdle() {
        play([
            (0, .state(served: 0, section: nil), 75), (10, .leave(11), 11), (10, .state(served: 0, section: nil), 11),
            (10, .waits(true), 70), (30, .waits(false), 31), (31, .passed(.farewell), nil),
            (31, .state(served: 0, section: 4), 41),
        ])
    }

    // MARK: - In virtual time

    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]

    /// `GET /` of `localhost`, END_STREAM set.
    static func head(_ stream: UInt8, ends: Bool) -> [UInt8] {
        [0, 0, 14, 1, ends ? 5 : 1, 0, 0, 0, stream, 0x82, 0x86, 0x84, 0x01, 9] + Array("localhost".utf8)
    }

    @Test func aHeadWithoutAnEndEndsItsConnection() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call()
        caller.send(Self.preface + Self.head(1, ends: false))
        scene.settle()
        scene.pass(seconds: 9.5)
        #expect(!caller.isClosed)
        scene.pass(seconds: 1)
        #expect(caller.isClosed && scene.data.http2Callers.isEmpty && scene.glitches(.slowHead) == 1)
        scene.expectNothingLeft()
    }

    /// The answer that is awaited meanwhile has the time of its route.
    @Test func aSecondOneDoesToo() throws {
        let scene = try Scene(Plans.open("timeouts: {response: 1h}"))
        let caller = scene.call()
        caller.send(Self.preface + Self.head(1, ends: true))
        scene.settle()
        scene.pass(seconds: 300)
        #expect(!caller.isClosed)
        caller.send(Self.head(3, ends: false))
        scene.settle()
        scene.pass(seconds: 11)
        #expect(caller.isClosed && scene.data.http2Callers.isEmpty)
        scene.end()
    }

    /// Neither do frames that carry nothing, nor parts of a frame.
    @Test(arguments: [[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8], [0]] as [[UInt8]])
    func octetsDoNotKeepAnIdleConnection(octets: [UInt8]) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call()
        caller.send(Self.preface)
        scene.settle()
        for _ in 0..<8 where !caller.isClosed {
            caller.send(octets)
            scene.pass(seconds: 10)
        }
        #expect(caller.isClosed && scene.data.http2Callers.isEmpty)
        scene.expectNothingLeft()
    }

    /// A drain does not wait for it.
    @Test func aDrainEndsOneWithoutAnEnd() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call()
        caller.send(Self.preface + Self.head(1, ends: false))
        scene.settle()
        var drained = false
        scene.data.drain { drained = true }
        // No more than anybody has to send his last request, which is less than a head has.
        scene.pass(seconds: 1.5)
        #expect(drained && caller.isClosed)
        scene.expectNothingLeft()
    }
}
