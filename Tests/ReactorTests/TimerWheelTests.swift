import Reactor
import Testing

@Suite struct TimerWheelTests {
    private let tick = TimerWheel.tick

    private func fired(_ wheel: TimerWheel, at now: UInt64) -> [UInt64] {
        var payloads: [UInt64] = []
        wheel.expire(now: now) { payloads.append($0) }
        return payloads
    }

    @Test func anEmptyWheelNeverWakes() throws {
        let wheel = TimerWheel(now: 123)
        #expect(wheel.nextDeadline(now: 123) == nil)
        let timer = try #require(wheel.arm(at: 500 * tick, payload: 1))
        #expect(wheel.nextDeadline(now: 123) != nil)
        #expect(wheel.cancel(timer))
        #expect(!wheel.cancel(timer))
        #expect(wheel.nextDeadline(now: 123) == nil && wheel.count == 0)
    }

    @Test(
        arguments: [
            1, 9_999_999, 10_000_000, 10_000_001, 640_000_000, 650_000_000, 41_000_000_000, 3_600_000_000_000,
            86_400_000_000_000, 40 * 86_400_000_000_000, 400 * 86_400_000_000_000,
        ] as [UInt64])
    func firesNeverEarlyAndAtMostATickLate(delay: UInt64) throws {
        for start in [0, 5_000_000, 639_999_999, 40_960_000_000 - 1, 7_777_777_777_777] as [UInt64] {
            let wheel = TimerWheel(now: start)
            _ = try #require(wheel.arm(at: start + delay, payload: 7))
            var now = start
            var wakes = 0
            while let deadline = wheel.nextDeadline(now: now), wakes < 20 {
                wakes += 1
                now = deadline
                let payloads = fired(wheel, at: now)
                if !payloads.isEmpty {
                    #expect(payloads == [7])
                    break
                }
            }
            #expect(now >= start + delay && now <= start + delay + tick)
            #expect(wakes <= 7)
            #expect(wheel.count == 0)
        }
    }

    @Test func theFarthestTimeIsHeld() throws {
        let wheel = TimerWheel(now: 0)
        let timer = try #require(wheel.arm(at: .max, payload: 1))
        #expect(fired(wheel, at: .max - 10 * tick) == [])
        #expect(wheel.nextDeadline(now: .max - 10 * tick) != nil)
        #expect(wheel.cancel(timer))
    }

    @Test func thePastFiresAtTheNextTick() throws {
        let wheel = TimerWheel(now: 1000 * tick)
        _ = wheel.arm(at: 0, payload: 1)
        #expect(fired(wheel, at: 1000 * tick) == [])
        #expect(fired(wheel, at: 1001 * tick) == [1])
    }

    @Test func isBoundedAndIdsGoStale() throws {
        let wheel = TimerWheel(now: 0, capacity: 2)
        let first = try #require(wheel.arm(at: tick, payload: 1))
        let second = try #require(wheel.arm(at: tick, payload: 2))
        #expect(wheel.arm(at: tick, payload: 3) == nil)
        #expect(wheel.cancel(first))
        let third = try #require(wheel.arm(at: tick, payload: 3))
        #expect(third != first && third.rawValue != 0)
        #expect(!wheel.cancel(first))
        #expect(Set(fired(wheel, at: tick)) == [2, 3])
        #expect(!wheel.cancel(second))
    }

    @Test func aTimerThatRearmsItselfEndsTheTurn() {
        let wheel = TimerWheel(now: 0)
        _ = wheel.arm(at: tick, payload: 0)
        var count = 0
        wheel.expire(now: 50 * tick) { _ in
            count += 1
            _ = wheel.arm(at: 50 * tick, payload: 0)
        }
        #expect(count <= 3)
        #expect(wheel.nextDeadline(now: 50 * tick) == 51 * tick)
    }

    @Test func aTimerMayCancelAnotherOfItsTick() throws {
        let wheel = TimerWheel(now: 0)
        let timers = [wheel.arm(at: tick, payload: 0), wheel.arm(at: tick, payload: 1)]
        var fired: [UInt64] = []
        wheel.expire(now: tick) { payload in
            fired.append(payload)
            if let other = timers[1 - Int(payload)] { #expect(wheel.cancel(other)) }
        }
        #expect(fired.count == 1)
    }

    @Test(arguments: 0..<8)
    func agreesWithASortedList(seed: Int) {
        var random = Numbers(seed: UInt64(seed) + 1)
        var now = random.next() % (1 << 50)
        let wheel = TimerWheel(now: now)
        var model: [UInt64: UInt64] = [:]
        var ids: [UInt64: TimerID] = [:]
        var position = now / tick
        for step in 0..<3000 as Range<UInt64> {
            switch random.next() % 4 {
            case 0, 1:
                let at = now &+ random.next() % (1 << (random.next() % 48))
                model[step] = max((at + tick - 1) / tick, position + 1)
                ids[step] = wheel.arm(at: at, payload: step)
            case 2:
                guard let victim = ids.keys.min(by: { $0 &* 0x9e37_79b9 < $1 &* 0x9e37_79b9 }), let id = ids[victim]
                else {
                    continue
                }
                if random.next() % 2 == 0 {
                    #expect(wheel.cancel(id))
                    ids[victim] = nil
                    model[victim] = nil
                } else {
                    let at = now &+ random.next() % (1 << 40)
                    #expect(wheel.cancel(id))
                    ids[victim] = wheel.arm(at: at, payload: victim)
                    model[victim] = max((at + tick - 1) / tick, position + 1)
                }
            default:
                now += random.next() % (1 << (random.next() % 40))
                position = max(position, now / tick)
                var order: [UInt64] = []
                wheel.expire(now: now) { payload in
                    order.append(model[payload] ?? 0)
                    ids[payload] = nil
                }
                let due = model.filter { $0.value <= position }
                #expect(order == due.values.sorted())
                for payload in due.keys { model[payload] = nil }
                let earliest = model.values.min().map { $0 * tick }
                let deadline = wheel.nextDeadline(now: 0)
                #expect((deadline == nil) == (earliest == nil))
                if let deadline, let earliest { #expect(deadline <= earliest && deadline > position * tick) }
            }
            #expect(wheel.count == model.count)
        }
    }
}

/// A fixed sequence (splitmix64): the same run every time.
struct Numbers {
    var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = (state ^ state >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }
}
