import Audit
import Glibc
import ScriptedWorld
import Telemetry
import Testing
import World

/// Records go to disk in groups, and come back after a disk that took nothing.
@Suite struct TrailTests {
    let time = ScriptedTime()
    let log: AuditFileTests.Log
    let trail: AuditTrail

    init() throws {
        log = try AuditFileTests.Log()
        trail = try AuditTrail(
            log.files, subjectKey: Array("a key of sixteen".utf8).withUnsafeBytes { SubjectKey($0) },
            events: try EventLog(time: time), time: time, opening: [AuditField(.version, .name("1"))])
    }

    private func note(_ count: Int) {
        for number in 0..<count { trail.note(.reset, [AuditField(.count, .count(UInt64(number)))]) }
    }

    private var records: Int { log.contents().count { $0 == 0x0A } }

    @Test func theFirstIsWrittenAtOnceAndTheRestTogether() throws {
        note(1)
        let due = try #require(trail.turn(at: time.awake(), isLast: false))
        #expect(records == 2)
        #expect(due == time.awake() + 200_000_000)
        note(5)
        #expect(trail.turn(at: time.awake(), isLast: false) == due)
        #expect(records == 2)
        #expect(trail.arm(), "what waits for its moment keeps nobody awake")
        time.pass(nanoseconds: 200_000_000)
        #expect(trail.turn(at: time.awake(), isLast: false) != nil)
        #expect(records == 7)
        #expect(trail.head.count == 7)
        time.pass(nanoseconds: 200_000_000)
        #expect(trail.turn(at: time.awake(), isLast: false) == nil)
        #expect(try log.verify().head == trail.head)
    }

    @Test func aSleeperIsToldOfWork() {
        _ = trail.turn(at: time.awake(), isLast: false)
        time.pass(nanoseconds: 200_000_000)
        #expect(trail.turn(at: time.awake(), isLast: false) == nil)
        #expect(trail.arm())
        trail.disarm()
        note(1)
        #expect(!trail.arm())
    }

    @Test func theEndWritesAllThatWasLeft() throws {
        note(1500)
        #expect(trail.turn(at: time.awake(), isLast: true) == nil)
        // With the first record and the last.
        #expect(try log.verify().head.count == 1502)
    }

    @Test func whatADiskRefusesIsTriedAgain() throws {
        note(1)
        _ = trail.turn(at: time.awake(), isLast: false)
        let before = records
        // A folder in the way of the next key: no group gets to disk, whoever runs the test.
        let way = log.path + ".key.new"
        #expect(mkdir(way, 0o700) == 0)
        note(3)
        time.pass(nanoseconds: 1_000_000_000)
        let due = trail.turn(at: time.awake(), isLast: false)
        #expect(trail.isFailing)
        #expect(records == before)
        #expect(due == time.awake() + 1_000_000_000)
        note(2)
        #expect(rmdir(way) == 0)
        time.pass(nanoseconds: 1_000_000_000)
        _ = trail.turn(at: time.awake(), isLast: false)
        #expect(!trail.isFailing)
        time.pass(nanoseconds: 1_000_000_000)
        _ = trail.turn(at: time.awake(), isLast: false)
        #expect(records == before + 5)
        #expect(try log.verify().head == trail.head)
    }

    /// Processes take turns; one that does not end its own is a failure like a full disk.
    @Test func aWriterThatNeverEndsIsAFailure() throws {
        note(1)
        _ = trail.turn(at: time.awake(), isLast: false)
        let lock = open(log.path + ".lock", O_RDWR)
        #expect(flock(lock, LOCK_EX) == 0)
        note(1)
        for step in 0..<300 {
            time.pass(nanoseconds: 20_000_000)
            _ = trail.turn(at: time.awake(), isLast: false)
            if step < 200 { #expect(!trail.isFailing, "\(step)") }
        }
        #expect(trail.isFailing)
        close(lock)
        time.pass(nanoseconds: 1_000_000_000)
        _ = trail.turn(at: time.awake(), isLast: false)
        #expect(!trail.isFailing)
        #expect(try log.verify().head == trail.head)
    }

    @Test func whatFindsNoPlaceIsCountedAndTold() throws {
        note(8192 + 17)
        #expect(trail.dropped == 17)
        _ = trail.turn(at: time.awake(), isLast: true)
        #expect(try log.verify().head.count == 8192 + 3)
        #expect(String(decoding: log.contents(), as: UTF8.self).contains(#""act":"dropped","count":17,"#))
    }

    @Test func aUserIsATag() throws {
        let tag = try #require(trail.tag(of: "anna".utf8))
        #expect(tag == trail.tag(of: "anna".utf8))
        #expect(tag != trail.tag(of: "bert".utf8))
        trail.note(.grant, [AuditField(.subject, .subject(tag))])
        _ = trail.turn(at: time.awake(), isLast: true)
        let text = String(decoding: log.contents(), as: UTF8.self)
        #expect(text.contains(#""subject":"\#(String(decoding: tag.digits, as: UTF8.self))""#))
        #expect(!text.contains("anna"))
        #expect([1, 2].withUnsafeBytes { SubjectKey(UnsafeRawBufferPointer(rebasing: $0.prefix(15))) } == nil)
    }

    /// A name may be as hostile as it likes: the record is one line, and one that a verification reads.
    @Test(arguments: [
        "\n", "\"", "\u{2028}", String(repeating: "\u{1}", count: 4096), String(repeating: "é", count: 100),
    ])
    func aHostileNameMakesNoSecondLine(name: String) throws {
        trail.note(.grant, AuditField.Key.allCases.prefix(8).map { AuditField($0, .name(name)) })
        _ = trail.turn(at: time.awake(), isLast: true)
        #expect(try log.verify().head.count == 3)
    }
}
