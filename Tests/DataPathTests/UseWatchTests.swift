import Audit
import Glibc
import ScriptedKernel
import ScriptedWorld
import Telemetry
import TemporaryFolder
import Testing

@testable import DataPath
@testable import Scenes

/// Uses of a credential, from the request that it was added to down to the audit log's file.
@Suite struct UseWatchTests {
    /// A scene of one route with a credential, and the log that its uses go to.
    private final class Play {
        let scene: Scene
        let trail: AuditTrail
        private let folder = TemporaryFolder("uses")
        private let time = ScriptedTime()

        init(each: Bool = false, blocks: Bool = false) throws {
            let path = folder.path + "/audit.log"
            _ = try ChainKeyFile.begin(beside: path, random: SeededRandom())
            trail = try AuditTrail(
                AuditFiles(path), subjectKey: nil, events: try EventLog(time: time), time: time, opening: [])
            scene = try Scene(Plans.fixed(), uses: UseCounter(trail, UsePolicy(recordsEach: each, blocks: blocks)))
            try scene.publish("t", generation: 7)
            // A minute begins.
            scene.kernel.wallOffset = 1_700_000_040_000 - Int64(scene.kernel.clock / 1_000_000)
            scene.settle()
        }

        /// A request that is answered, unless it is refused before it is sent.
        @discardableResult
        func request(from address: String = "127.0.0.1") -> Int? {
            let caller = scene.call(from: address)
            caller.send(Wire.get())
            scene.settle()
            scene.upstreams.last?.send(Wire.ok("x"))
            scene.settle()
            return caller.status
        }

        /// Nobody takes anything out of the trail's ring.
        func fill() {
            let other = UseRecord(
                time: 0, place: 0, route: 0, count: 1, generation: 0,
                caller: LogAddress(family: .ipv4, low: 1, port: 0))
            while trail.leave(other) {}
        }

        /// The log thread writes what it finds.
        func write(isLast: Bool = false) { _ = trail.turn(at: time.awake(), isLast: isLast) }

        /// Requests on disk, by their callers.
        var written: [String: Int] {
            var found: [String: Int] = [:]
            let file = open(folder.path + "/audit.log", O_RDONLY)
            defer { close(file) }
            var octets = [UInt8](repeating: 0, count: 16 << 20)
            let count = read(file, &octets, octets.count)
            for line in String(decoding: octets.prefix(max(0, count)), as: UTF8.self).split(separator: "\n")
            where line.contains(#""act":"use"#) && line.contains(#""generation":7"#) {
                guard let caller = line.firstMatch(of: /"caller":"([^"]*)"/)?.1 else { continue }
                found[String(caller), default: 0] += line.firstMatch(of: /"count":([0-9]+)/).flatMap { Int($0.1) } ?? 1
            }
            return found
        }
    }

    @Test func usesAreLeftWhenTheirMinuteIsOver() throws {
        let play = try Play()
        for address in ["127.0.0.1", "127.0.0.2", "127.0.0.1"] { #expect(play.request(from: address) == 200) }
        play.scene.pass(seconds: 59)
        play.write()
        #expect(play.written == [:])
        play.scene.pass(seconds: 1.5)
        play.write(isLast: true)
        #expect(play.written == ["127.0.0.1": 2, "127.0.0.2": 1])
        play.scene.end()
    }

    /// The timer that the first use of a minute has set serves the others, and the next minute has its own.
    @Test func everyMinuteIsLeftForItself() throws {
        let play = try Play()
        play.request()
        play.scene.pass(seconds: 61)
        play.request()
        play.scene.pass(seconds: 30)
        play.write()
        #expect(play.written == ["127.0.0.1": 1])
        play.scene.pass(seconds: 31)
        play.write(isLast: true)
        #expect(play.written == ["127.0.0.1": 2])
        play.scene.end()
    }

    /// The end of a gateway does not wait for the end of a minute.
    @Test func theEndOfTheLoopLeavesWhatItHas() throws {
        let play = try Play()
        play.request()
        play.request()
        play.scene.data.closeEverything()
        play.write(isLast: true)
        #expect(play.written == ["127.0.0.1": 2])
        // No timer of the minute is left, and none is set anew.
        play.scene.pass(seconds: 120)
        #expect(play.trail.dropped == 0)
        play.scene.end()
    }

    /// A ring that is full at a minute's end takes the counts a moment later.
    @Test func countsThatFoundNoPlaceAreTriedAgain() throws {
        let play = try Play()
        play.request()
        play.fill()
        play.scene.pass(seconds: 61)
        play.scene.pass(seconds: 2)
        #expect(play.trail.dropped == 0)
        play.write()
        play.scene.pass(seconds: 1.5)
        play.write(isLast: true)
        #expect(play.written == ["127.0.0.1": 1] && play.trail.dropped == 0)
        play.scene.end()
    }

    /// Where every use is to be on record, one that would not be is refused before its credential leaves.
    @Test(arguments: [true, false]) func aUseWithoutAPlaceIsRefusedOrCounted(blocks: Bool) throws {
        let play = try Play(each: true, blocks: blocks)
        play.fill()
        let status = play.request()
        #expect(status == (blocks ? 503 : 200))
        #expect(play.scene.upstreams.allSatisfy { $0.receivedText.contains("Authorization: t") == !blocks })
        #expect(play.trail.dropped == (blocks ? 0 : 1))
        play.write()
        #expect(play.request() == 200)
        play.write(isLast: true)
        #expect(play.written == ["127.0.0.1": 1])
        play.scene.end()
    }
}
