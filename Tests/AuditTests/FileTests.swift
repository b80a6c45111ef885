import Audit
import Glibc
import Octets
import ScriptedWorld
import TemporaryFolder
import Testing

/// What stands on disk after every group, after a kill between any two steps of one, and after somebody has renamed the log.
@Suite struct AuditFileTests {
    /// A log in a folder of its own, and the first key of it.
    final class Log {
        let folder = TemporaryFolder("audit")
        let path: String
        let files: AuditFiles
        let first: [UInt8]

        init() throws {
            path = folder.path + "/audit.log"
            files = AuditFiles(path)
            first = try ChainKeyFile.begin(beside: path, random: SeededRandom())
        }

        @discardableResult
        func write(_ numbers: ClosedRange<Int>) throws -> AuditFiles.Turn {
            try files.append { _ in numbers.map { Chains.record($0) } }
        }

        func verify(_ paths: [String]? = nil, noted: [ChainHead] = []) throws -> LogFiles.Result {
            try LogFiles.verify(paths ?? [path], key: ChainKey(text: first[...]), noted: noted, time: ScriptedTime())
        }

        func fault(_ paths: [String]? = nil, noted: [ChainHead] = []) -> ChainFault? {
            do {
                _ = try verify(paths, noted: noted)
                return nil
            } catch { return (error as? LogFiles.Finding)?.fault }
        }

        func contents(_ name: String = "audit.log") -> [UInt8] {
            let descriptor = open(folder.path + "/" + name, O_RDONLY)
            defer { close(descriptor) }
            var octets = [UInt8](repeating: 0, count: 4 << 20)
            let count = read(descriptor, &octets, octets.count)
            return Array(octets.prefix(max(0, count)))
        }

        func put(_ octets: [UInt8], _ name: String = "audit.log") {
            let descriptor = open(folder.path + "/" + name, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
            #expect(Glibc.write(descriptor, octets, octets.count) == octets.count)
            close(descriptor)
        }
    }

    @Test func groupsFollowEachOther() throws {
        let log = try Log()
        for group in 0..<5 { try log.write(group * 2...group * 2 + 1) }
        let result = try log.verify()
        #expect(result.head.count == 10)
        #expect(result.first == 1)
        #expect(result.isEndKnown)
        #expect(try log.files.head() == result.head)
        #expect(log.folder.names == ["audit.log", "audit.log.key", "audit.log.lock"])
    }

    @Test func onlyTheOwnerReadsKeyAndLog() throws {
        let log = try Log()
        try log.write(0...0)
        for name in log.folder.names {
            var status = stat()
            #expect(stat(log.folder.path + "/" + name, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600, "\(name)")
        }
        chmod(log.path + ".key", 0o640)
        #expect(throws: AuditFault.self) { try log.write(1...1) }
    }

    @Test func theFirstKeyIsNowhereOnDisk() throws {
        let log = try Log()
        let first = String(decoding: log.first, as: UTF8.self)
        #expect(first.count == 64)
        #expect(!String(decoding: log.contents("audit.log.key"), as: UTF8.self).contains(first))
        let before = log.contents("audit.log.key")
        try log.write(0...0)
        let digits = before.split(separator: 0x20).last ?? []
        #expect(
            !String(decoding: log.contents("audit.log.key"), as: UTF8.self).contains(
                String(decoding: digits, as: UTF8.self)))
        #expect(throws: AuditFault.self) { _ = try ChainKeyFile.begin(beside: log.path, random: SeededRandom(seed: 2)) }
    }

    /// A kill before the group is whole: any piece of it may be on disk, and the key is the old one.
    @Test func aKillWhileAGroupIsWrittenIsHealed() throws {
        let log = try Log()
        try log.write(0...1)
        let key = log.contents("audit.log.key")
        let before = log.contents()
        try log.write(2...4)
        let after = log.contents()
        let text = after[before.count...]
        for count in 0...text.count {
            log.put(key, "audit.log.key")
            log.put(Array(after.prefix(before.count + count)))
            let whole = text.prefix(count).count { $0 == 0x0A }
            let turn = try log.write(5...5)
            #expect(turn.healed == UInt64(whole), "\(count)")
            #expect(
                turn.cut
                    == UInt64(count - (text.prefix(count).lastIndex(of: 0x0A).map { $0 + 1 - text.startIndex } ?? 0)))
            #expect(turn.head.count == UInt64(3 + whole))
            let result = try log.verify()
            #expect(result.head.count == UInt64(3 + whole), "\(count)")
        }
    }

    /// A key file that somebody put back is led forward; nothing that was written behind it is lost.
    @Test func aKeyFileOfAnEarlierTimeIsLedForward() throws {
        let log = try Log()
        try log.write(0...1)
        let key = log.contents("audit.log.key")
        for group in 1...4 { try log.write(group * 2...group * 2 + 1) }
        let whole = log.contents()
        for cut in [0, 30] {
            log.put(key, "audit.log.key")
            log.put(whole.dropLast(cut))
            let turn = try log.write(10...10)
            #expect(turn.healed == (cut == 0 ? 8 : 7))
            #expect(turn.cut > 0 || cut == 0)
            #expect(try log.verify().head.count == (cut == 0 ? 11 : 10))
        }
    }

    /// A power failure may leave the length of what was written without its octets.
    @Test func zerosBehindTheLastGroupAreCutOff() throws {
        let log = try Log()
        try log.write(0...1)
        log.put(log.contents() + [UInt8](repeating: 0, count: 700))
        let turn = try log.write(2...2)
        #expect(turn.cut == 700)
        #expect(try log.verify().head.count == 3)
    }

    @Test func aKillBeforeTheFirstGroupIsHealed() throws {
        let log = try Log()
        let key = log.contents("audit.log.key")
        try log.write(0...1)
        let text = log.contents()
        for count in 0...text.count {
            log.put(key, "audit.log.key")
            log.put(Array(text.prefix(count)))
            try log.write(2...2)
            #expect(log.fault() == nil, "\(count)")
        }
    }

    @Test func aRenamedLogIsContinuedInANewOne() throws {
        let log = try Log()
        try log.write(0...2)
        rename(log.path, log.path + ".1")
        try log.write(3...4)
        rename(log.path, log.path + ".2")
        // As `create` of logrotate leaves it.
        log.put([])
        try log.write(5...5)
        try log.write(6...6)
        let all = [log.path + ".1", log.path + ".2", log.path]
        #expect(try log.verify(all).head.count == 7)
        #expect(try log.verify().first == 6)
        #expect(try log.verify(Array(all[1...])).first == 4)
        #expect(log.fault([all[0], all[2]]) == .missing(from: 4, through: 5))
        #expect(log.fault([all[1], all[0]]) == .outOfPlace(1, expected: 6))
    }

    @Test func aKillInTheFirstGroupOfANewFileIsHealed() throws {
        let log = try Log()
        try log.write(0...2)
        rename(log.path, log.path + ".1")
        let key = log.contents("audit.log.key")
        try log.write(3...4)
        let text = log.contents()
        for count in 0...text.count {
            log.put(key, "audit.log.key")
            log.put(Array(text.prefix(count)))
            try log.write(5...5)
            #expect(log.fault([log.path + ".1", log.path]) == nil, "\(count)")
        }
    }

    @Test func aCutEndIsFoundByTheKeyFileAndByAHead() throws {
        let log = try Log()
        try log.write(0...2)
        let short = log.contents()
        let early = try log.files.head()
        try log.write(3...4)
        let late = try log.files.head()
        log.put(short)
        #expect(log.fault() == .cut(at: 3, head: 5))
        unlink(log.path + ".key")
        #expect(log.fault() == nil)
        #expect(log.fault(noted: [early]) == nil)
        #expect(log.fault(noted: [late]) == .cut(at: 3, head: 5))
    }

    /// The key file tells of the end of the group before, and root can write another end there.
    @Test func aCutEndOfAGroupIsFoundWhateverTheKeyFileSays() throws {
        let log = try Log()
        try log.write(0...2)
        let lines = log.contents().split(separator: 0x0A, omittingEmptySubsequences: true)
        let head = try #require(ChainTests.head(of: Array(lines[1]) + [0x0A]))
        var words = String(decoding: log.contents("audit.log.key"), as: UTF8.self)
            .split(separator: " ").map(String.init)
        (words[3], words[4]) = ("2", head.hash)
        log.put(Array(words.joined(separator: " ").utf8), "audit.log.key")
        log.put(Array(lines[..<2].joined(separator: [0x0A])) + [0x0A])
        #expect(log.fault() == .openGroup(1, after: 2))
    }

    /// A head that was noted says nothing of what came behind it.
    @Test func theEndIsKnownByAHeadOfTheLastRecordAlone() throws {
        let log = try Log()
        try log.write(0...2)
        let early = try log.files.head()
        try log.write(3...4)
        let late = try log.files.head()
        unlink(log.path + ".key")
        #expect(try !log.verify(noted: [.none]).isEndKnown)
        #expect(try !log.verify(noted: [early]).isEndKnown)
        #expect(try log.verify(noted: [early]).notedCount == 3)
        #expect(try log.verify(noted: [early, late]).isEndKnown)
        log.put([])
        #expect(try !log.verify(noted: [.none]).isEndKnown)
    }

    /// It was renamed, and no record has come since; a log that was removed has an end that is missing.
    @Test func aLogThatHasNotBegunAnewMayBeNamed() throws {
        let log = try Log()
        try log.write(0...2)
        rename(log.path, log.path + ".1")
        #expect(try log.verify([log.path + ".1", log.path]).head.count == 3)
        #expect(try log.verify([log.path + ".1", log.path]).isEndKnown)
        #expect(log.fault() == .cut(at: 0, head: 3))
        unlink(log.path + ".key")
        #expect(throws: LogFiles.Finding.self) { try log.verify([log.path + ".1", log.path]) }
    }

    @Test func aKeyFileOfAnotherChainIsFound() throws {
        let log = try Log()
        try log.write(0...2)
        let words = String(decoding: log.contents("audit.log.key"), as: UTF8.self).split(separator: " ")
        let digits = String(repeating: "ab", count: 31) + "ac\n"
        log.put(Array((words.dropLast().joined(separator: " ") + " " + digits).utf8), "audit.log.key")
        #expect(log.fault() == .otherKey)
    }

    /// Whoever may write into the folder, the gateway's user where root writes, leads nobody to another file.
    @Test(arguments: ["", ".key", ".key.new", ".lock"])
    func aLinkIsNotFollowed(suffix: String) throws {
        let log = try Log()
        try log.write(0...0)
        let victim = Array("somebody's else".utf8)
        log.put(victim, "victim")
        unlink(log.path + suffix)
        #expect(symlink("victim", log.path + suffix) == 0)
        // The fresh key's name is freed before it is taken; every other link is refused.
        if suffix == ".key.new" {
            try log.write(1...1)
        } else {
            #expect(throws: AuditFault.self) { try log.write(1...1) }
        }
        #expect(log.contents("victim") == victim)
        var status = stat()
        #expect(stat(log.folder.path + "/victim", &status) == 0)
        #expect(status.st_size == victim.count)
    }

    /// Root appends to no file that has a second name, and gives none away: it may be one of root's, linked into the folder.
    @Test(arguments: ["", ".key", ".lock"])
    func rootWritesToNoFileThatHasTwoNames(suffix: String) throws {
        let log = try Log()
        try log.write(0...0)
        #expect(link(log.path + suffix, log.folder.path + "/second") == 0)
        let before = log.contents("second")
        if suffix != ".lock", geteuid() == 0 {
            #expect(throws: AuditFault.self) { try log.write(1...1) }
            #expect(log.contents("second") == before)
        } else {
            try log.write(1...1)
        }
    }

    @Test func whatRootMakesBelongsToTheFoldersOwnerAndWhatStoodThereKeepsItsOwn() throws {
        let log = try Log()
        let owner: uid_t = geteuid() == 0 ? 4711 : geteuid()
        #expect(chown(log.folder.path, owner, getegid()) == 0)
        log.put([], "audit.log.lock")
        try log.write(0...0)
        for (name, expected) in [("audit.log", owner), ("audit.log.key", owner), ("audit.log.lock", geteuid())] {
            var status = stat()
            #expect(stat(log.folder.path + "/" + name, &status) == 0)
            #expect(status.st_uid == expected, "\(name)")
            #expect(status.st_mode & 0o777 == 0o600, "\(name)")
        }
    }

    /// A path that leads to somebody's else file costs that file nothing.
    @Test(arguments: ["a file without a line end", "a line\n", "{\"number\":1,\"group\":7"])
    func aFileOfOthersIsNotCut(text: String) throws {
        let log = try Log()
        try log.write(0...0)
        unlink(log.path)
        log.put(Array(text.utf8))
        #expect(try log.write(1...1).cut == 0)
        #expect(log.contents().starts(with: Array(text.utf8)))
        #expect(log.fault() != nil)
    }

    @Test func whatStandsInThePlaceOfTheKeyFileIsFound() throws {
        let log = try Log()
        try log.write(0...2)
        log.put(Array("x".utf8), "audit.log.key")
        #expect(log.fault() == .noKeyFile)
        unlink(log.path + ".key")
        #expect(log.fault() == nil)
        #expect(try !log.verify().isEndKnown)
    }

    /// A line that claims a far group costs no time: the key file says how far the log can have got.
    @Test func aGroupBeyondTheKeyFilesIsNotReachedFor() throws {
        let log = try Log()
        try log.write(0...2)
        let zeros = String(repeating: "0", count: 64)
        let line = #"{"number":9000000000,"group":4000000000,"after":"\#(zeros)","act":"use","mac":"\#(zeros)"}"#
        log.put(Array((line + "\n" + line + "\n").utf8))
        #expect(log.fault() == .tooManyGroups(4_000_000_000))
    }

    /// A writer that never ends keeps no verification waiting.
    @Test func aVerificationWaitsForAGroupAndNotForever() throws {
        let log = try Log()
        try log.write(0...2)
        let lock = open(log.path + ".lock", O_RDWR)
        #expect(flock(lock, LOCK_EX) == 0)
        let time = ScriptedTime()
        let start = time.awake()
        let result = try LogFiles.verify([log.path], key: ChainKey(text: log.first[...]), noted: [], time: time)
        #expect(result.head.count == 3)
        #expect(time.awake() - start == 2_000_000_000)
        close(lock)
    }

    @Test(arguments: ["", "x", "cardea-audit 1", "cardea-audit 1 0 0 \(String(repeating: "0", count: 64)) 0 0 ab\n"])
    func aFileThatIsNoKeyIsRefused(text: String) throws {
        let log = try Log()
        log.put(Array(text.utf8), "audit.log.key")
        #expect(throws: AuditFault.self) { try log.write(0...0) }
        #expect(log.contents().isEmpty)
    }

    @Test func twoWritersTakeTurns() throws {
        let log = try Log()
        let lock = open(log.path + ".lock", O_RDWR | O_CREAT, 0o600)
        #expect(flock(lock, LOCK_EX) == 0)
        do {
            try log.write(0...0)
            Issue.record("written beside another writer")
        } catch { #expect((error as? AuditFault)?.kind == .busy) }
        close(lock)
        try log.write(0...0)
        _ = try AuditFiles(log.path).append { _ in [Chains.record(1)] }
        #expect(try log.verify().head.count == 2)
    }
}
