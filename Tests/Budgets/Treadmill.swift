import CMallocCount
import ScriptedKernel
import Testing

@testable import Reactor
@testable import Scenes

/// One caller and one upstream that exchange the same two messages over and over, played from within the loop's own waits, so that
/// nothing but the loop's work lies between two of them.
final class Treadmill {
    private let scene: Scene
    private let caller: Peer
    private var request: Message
    private var answer: Message
    /// Bytes that the upstream has to see before it answers, and the caller before it asks again.
    private var forwarded = 0
    private var returned = 0
    /// Nanoseconds that pass with each exchange.
    private let pace: UInt64

    private var exchanges = 0
    private var upstream: Peer?
    private var asks = true
    private var callsBefore: UInt64 = 0

    private(set) var mallocs: UInt64 = 0
    private(set) var systemCalls: UInt64 = 0
    private(set) var counted = 0
    private(set) var stalled = false
    private var idleWaits = 0

    convenience init(_ scene: Scene, request: String, answer: String, pace: UInt64 = 100_000) {
        self.init(scene, request: Message(request), answer: Message(answer), pace: pace)
    }

    init(_ scene: Scene, request: Message, answer: Message, pace: UInt64 = 100_000) {
        self.scene = scene
        self.request = request
        self.answer = answer
        self.pace = pace
        caller = scene.call()
    }

    /// One exchange by hand, which shows how long the messages are on the other side; then the run.
    func run() {
        caller.send(request.opening)
        caller.send(request.next())
        scene.settle()
        upstream = scene.upstreams.first
        // Heads of HTTP/2 get shorter with each use of the tables; there the first byte has to do.
        forwarded = min(upstream?.receivedCount ?? 0, answer.isFramed ? 1 : .max)
        upstream?.discard()
        upstream?.send(answer.opening)
        upstream?.send(answer.next())
        scene.settle()
        returned = min(caller.receivedCount, request.isFramed ? 1 : .max)
        caller.discard()
        guard forwarded > 0, returned > 0 else {
            stalled = true
            return
        }
        scene.kernel.onWait = { [unowned self] in step() }
        scene.loop.run()
        scene.kernel.onWait = {}
    }

    private func step() {
        guard let upstream else { return }
        idleWaits += 1
        if asks, exchanges == 0 || caller.receivedCount >= returned {
            caller.discard()
            begin()
            caller.send(request.next())
            asks = false
            idleWaits = 0
        } else if !asks, upstream.receivedCount >= forwarded {
            upstream.discard()
            upstream.send(answer.next())
            asks = true
            idleWaits = 0
        }
        if idleWaits > 100 {
            stalled = true
            end()
            scene.loop.stop()
        }
    }

    private func begin() {
        exchanges += 1
        scene.kernel.advance(by: pace)
        if exchanges == Budget.warmUp {
            // This wait is the first one that counts.
            callsBefore = scene.kernel.systemCalls - 1
            cardea_malloc_count_begin()
        } else if exchanges == Budget.warmUp + Budget.exchanges {
            end()
            scene.loop.stop()
        }
    }

    private func end() {
        mallocs = cardea_malloc_count_end()
        systemCalls = scene.kernel.systemCalls - 1 - callsBefore
        counted = exchanges - Budget.warmUp
    }
}
