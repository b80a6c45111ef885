import Audit
import Glibc
import ScriptedWorld
import Telemetry
import Testing
import World

/// Uses are counted where they are made, and no use is lost between two minutes, two turns or two searches of a full table.
@Suite struct UseTests {
    static let minute: UInt64 = 60_000_000_000
    let time = ScriptedTime()
    let log: AuditFileTests.Log
    let trail: AuditTrail

    init() throws {
        log = try AuditFileTests.Log()
        trail = try AuditTrail(
            log.files, subjectKey: nil, events: try EventLog(time: time), time: time, opening: [])
    }

    private func counter(each: Bool = false, blocks: Bool = false) -> UseCounter {
        UseCounter(trail, UsePolicy(recordsEach: each, blocks: blocks))
    }

    private func caller(_ number: UInt64) -> LogAddress {
        LogAddress(family: .ipv4, low: 0x0a00_0000 | number, port: UInt16(number & 0xff))
    }

    /// The records of uses on disk: caller, origin and count.
    private func written(_ act: String = "uses") throws -> [String: Int] {
        _ = trail.turn(at: time.awake(), isLast: true)
        _ = try log.verify()
        var found: [String: Int] = [:]
        for line in String(decoding: log.contents(), as: UTF8.self).split(separator: "\n")
        where line.contains(#""act":"\#(act)""#) {
            let caller = try #require(line.firstMatch(of: /"caller":"([^"]*)"/)).1
            let count = line.firstMatch(of: /"count":([0-9]+)/).flatMap { Int($0.1) } ?? 1
            found[String(caller), default: 0] += count
        }
        return found
    }

    @Test func usesOfAMinuteAreOneRecord() throws {
        let counter = counter()
        let place = trail.places.number(identity: "hr", origin: "https://hr.example.com")
        for port in UInt64(0)..<100 {
            var one = caller(7)
            one.port = UInt16(port)
            #expect(counter.note(caller: one, place: place, route: 3, generation: 5, at: Self.minute + port))
        }
        counter.flush(sparing: Self.minute)
        #expect(!counter.isEmpty, "the minute is not over")
        counter.flush(sparing: 2 * Self.minute)
        #expect(counter.isEmpty)
        #expect(try written() == ["10.0.0.7": 100])
        let text = String(decoding: log.contents(), as: UTF8.self)
        #expect(
            text.contains(
                #""identity":"hr","origin":"https://hr.example.com","generation":5,"minute":"1970-01-01T00:01:00.000Z","count":100,"#
            ))
    }

    @Test(arguments: 1...6) func noUseIsLostInAFullTable(seed: UInt64) throws {
        let random = SeededRandom(seed: seed)
        let counter = counter()
        var expected: [String: Int] = [:]
        for step in UInt64(0)..<6000 {
            let number = random.number(below: 900)
            let wall = Self.minute * (1 + step / 2000)
            #expect(counter.note(caller: caller(number), place: 0, route: 0, generation: number % 3, at: wall))
            expected["10.0.\(number >> 8).\(number & 0xff)", default: 0] += 1
            if random.number(below: 500) == 0 { counter.flush(sparing: wall) }
            if random.number(below: 300) == 0 { _ = trail.turn(at: .max - 1_000_000_000_000, isLast: false) }
        }
        counter.finish()
        #expect(trail.dropped == 0)
        #expect(try written() == expected)
    }

    /// A clock that is set back leaves no counts of a minute that is an hour away.
    @Test func aClockMayBeSetBack() throws {
        let counter = counter()
        #expect(counter.note(caller: caller(7), place: 0, route: 0, generation: 1, at: 60 * Self.minute))
        #expect(counter.note(caller: caller(7), place: 0, route: 0, generation: 1, at: 2 * Self.minute))
        counter.flush(sparing: 2 * Self.minute)
        #expect(try written() == ["10.0.0.7": 1])
        counter.flush(sparing: 3 * Self.minute)
        #expect(counter.isEmpty)
    }

    /// At 90 000 requests a second a pause of a fifth of a second would be longer than the ring.
    @Test func thePauseIsShorterWhereUsesComeFast() throws {
        let counter = counter(each: true, blocks: true)
        var due: UInt64? = 0
        var refused = 0
        for step in 0..<44 {
            for number in UInt64(0)..<907
            where !counter.note(caller: caller(number), place: 0, route: 1, generation: 1, at: number) && step >= 30 {
                // The pause before is one of a quiet log.
                refused += 1
            }
            time.pass(nanoseconds: 10_000_000)
            // Nothing is due where all was taken; the next use wakes the thread.
            while due ?? 0 <= time.awake() {
                due = trail.turn(at: time.awake(), isLast: false)
                if due == nil { break }
            }
        }
        #expect(refused == 0)
    }

    @Test func eachUseMayBeARecord() throws {
        let counter = counter(each: true)
        for number in UInt64(0)..<50 {
            #expect(counter.note(caller: caller(number % 2), place: 0, route: 1, generation: 1, at: number))
        }
        #expect(counter.isEmpty)
        #expect(try written("use") == ["10.0.0.0": 25, "10.0.0.1": 25])
    }

    /// 16 384 uses fill the ring.
    @Test(arguments: [false, true]) func aFullRingRefusesOrCounts(blocks: Bool) {
        let counter = counter(each: true, blocks: blocks)
        var taken = 0
        for number in UInt64(0)..<16_400
        where counter.note(
            caller: caller(number), place: 0, route: 1, generation: 1, at: number)
        { taken += 1 }
        #expect(taken == (blocks ? 16_384 : 16_400))
        #expect(trail.dropped == (blocks ? 0 : 16))
    }

    @Test func aDiskThatTakesNothingRefusesAtOnceWhereThePolicyBlocks() throws {
        _ = trail.turn(at: time.awake(), isLast: false)
        let way = log.path + ".key.new"
        #expect(mkdir(way, 0o700) == 0)
        trail.note(.reset, [])
        time.pass(nanoseconds: 1_000_000_000)
        _ = trail.turn(at: time.awake(), isLast: false)
        #expect(trail.isFailing)
        #expect(!counter(blocks: true).note(caller: caller(1), place: 0, route: 1, generation: 1, at: 0))
        #expect(counter().note(caller: caller(1), place: 0, route: 1, generation: 1, at: 0))
        #expect(rmdir(way) == 0)
        time.pass(nanoseconds: 1_000_000_000)
        _ = trail.turn(at: time.awake(), isLast: false)
        #expect(counter(blocks: true).note(caller: caller(1), place: 0, route: 1, generation: 1, at: 0))
    }
}
