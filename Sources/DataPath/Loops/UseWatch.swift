internal import Audit
internal import Reactor
internal import Telemetry

/// Leaves a loop's counts of uses to the audit log when their minute is over. A loop that adds no credential has no timer.
final class UseWatch: Watched {
    private let counter: UseCounter
    private var timer: TimerID?

    /// Nanoseconds until counts that found no place are tried again.
    private static let pause: UInt64 = 1_000_000_000

    init(_ counter: UseCounter, loop: Loop) {
        self.counter = counter
        super.init(loop: loop)
    }

    /// Takes a place for the record of a request.
    /// - Returns: false where the request is to be refused.
    func note(_ caller: CallerConnection, of route: RoutePlan, generation: UInt64) -> Bool {
        let isNoted = counter.note(
            caller: caller.peer.address?.logAddress ?? LogAddress(), place: route.usePlace, route: route.logName,
            generation: generation, at: wall)
        if timer == nil, !counter.isEmpty { wait(UseCounter.minute - wall % UseCounter.minute) }
        return isNoted
    }

    /// The loop ends.
    func finish() {
        counter.finish()
        guard let timer else { return }
        loop.disarm(timer)
        self.timer = nil
        loop.close(self)
    }

    override func timerFired(_ kind: UInt8) {
        timer = nil
        loop.close(self)
        let now = wall
        counter.flush(sparing: now - now % UseCounter.minute)
        // Uses of this minute, or a ring that was full.
        if !counter.isEmpty { wait(Self.pause) }
    }

    private func wait(_ span: UInt64) {
        loop.adopt(self)
        timer = loop.arm(self, at: loop.now + span, kind: 0)
        if timer == nil { loop.close(self) }
    }

    private var wall: UInt64 { UInt64(max(0, loop.kernel.wallMilliseconds())) * 1_000_000 }
}
