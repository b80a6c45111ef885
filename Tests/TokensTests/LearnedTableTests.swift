import HotCache
import Testing

@testable import Tokens

@Suite struct LearnedTableTests {
    static func entry(_ path: String, _ method: String = "GET") -> LearnedEntry {
        LearnedEntry(path: path.utf8, method: method.utf8)
    }

    let cache = HotCache(readers: 1, slots: 32, byteLimit: 1 << 16)

    /// One slot a realm, in order.
    func snapshot(_ table: LearnedTable, _ slots: [Slot]) -> LearnedSnapshot {
        table.snapshot(seed: 42) { realm in slots[table.realms.firstIndex(of: realm) ?? 0] }
    }

    func verdict(_ snapshot: LearnedSnapshot, _ path: String, _ method: String = "GET") -> LearnedVerdict {
        Array(path.utf8).withUnsafeBytes { path in
            Array(method.utf8).withUnsafeBytes { snapshot.verdict(path: path, method: $0) }
        }
    }

    @Test func theFirstChallengeBindsTheWholeRoute() throws {
        let slot = try #require(cache.allocateSlot())
        var table = LearnedTable()
        #expect(verdict(snapshot(table, []), "/a/b") == .cold)
        #expect(table.learnChallenge(of: "HR", at: Self.entry("/a/b")) == .learned)
        #expect(table.learnChallenge(of: "HR", at: Self.entry("/c/d", "POST")) == .unchanged)
        #expect(table.entries.isEmpty && table.boundRealm == "HR")
        for path in ["/", "/a/b", "/z/z/z", "", "*"] { #expect(verdict(snapshot(table, [slot]), path) == .slot(slot)) }
    }

    @Test func anOpenEntryHoldsForItsDirectoryAndMethod() throws {
        let slot = try #require(cache.allocateSlot())
        var table = LearnedTable()
        _ = table.learnChallenge(of: "HR", at: Self.entry("/a/b"))
        #expect(table.learnOpen(at: Self.entry("/pub/x")) == .learned)
        #expect(table.learnOpen(at: Self.entry("/pub/y")) == .unchanged)
        let now = snapshot(table, [slot])
        #expect(verdict(now, "/pub/anything") == .open)
        #expect(verdict(now, "/pub/deep/er") == .open)
        #expect(verdict(now, "/pub") == .slot(slot))
        #expect(verdict(now, "/public/x") == .slot(slot))
        #expect(verdict(now, "/pub/x", "POST") == .slot(slot))
    }

    @Test func theLongestPrefixWins() throws {
        let slots = try (0..<2).map { _ in try #require(cache.allocateSlot()) }
        var table = LearnedTable()
        _ = table.learnChallenge(of: "HR", at: Self.entry("/"))
        _ = table.learnOpen(at: Self.entry("/a/x"))
        _ = table.learnChallenge(of: "PAY", at: Self.entry("/a/b/x"))
        let now = snapshot(table, slots)
        #expect(verdict(now, "/a/q") == .open)
        #expect(verdict(now, "/a/b/q") == .slot(slots[1]))
        #expect(verdict(now, "/a/b/c/q") == .slot(slots[1]))
        #expect(verdict(now, "/q") == .slot(slots[0]))
    }

    @Test func aLaterChallengeOverwritesAnOpenEntry() throws {
        let slot = try #require(cache.allocateSlot())
        var table = LearnedTable()
        _ = table.learnOpen(at: Self.entry("/a/x"))
        #expect(verdict(snapshot(table, []), "/a/y") == .open)
        #expect(verdict(snapshot(table, []), "/b/y") == .cold)
        #expect(table.learnChallenge(of: "HR", at: Self.entry("/a/y")) == .learned)
        #expect(verdict(snapshot(table, [slot]), "/a/x") == .slot(slot))
        _ = table.learnOpen(at: Self.entry("/p/x"))
        #expect(table.learnChallenge(of: "HR", at: Self.entry("/p/q/x")) == .learned)
        #expect(verdict(snapshot(table, [slot]), "/p/q/z") == .slot(slot))
        #expect(verdict(snapshot(table, [slot]), "/p/z") == .open)
    }

    @Test func theTableIsBounded() {
        var table = LearnedTable()
        for index in 0..<16 {
            #expect(table.learnChallenge(of: Realm(ByteString("r\(index)")), at: Self.entry("/\(index)/x")) == .learned)
        }
        #expect(table.learnChallenge(of: "one more", at: Self.entry("/m/x")) == .realmsFull)
        for index in 15..<256 { #expect(table.learnOpen(at: Self.entry("/open\(index)/x")) == .learned) }
        #expect(table.entries.count == 256)
        #expect(table.learnOpen(at: Self.entry("/late/x")) == .entriesFull)
        #expect(table.learnChallenge(of: "r3", at: Self.entry("/late/x")) == .entriesFull)
        #expect(table.learnChallenge(of: "r0", at: Self.entry("/open20/x")) == .learned)
        let long = "/" + String(repeating: "a", count: 5_000) + "/x"
        #expect(table.learnOpen(at: Self.entry(long)) == .entriesFull)
    }

    @Test func whatGivesWayLeavesTheOthersAsTheyWere() throws {
        var table = LearnedTable()
        for index in 0..<16 {
            _ = table.learnChallenge(of: Realm(ByteString("r\(index)")), at: Self.entry("/\(index)/x"))
        }
        _ = table.learnOpen(at: Self.entry("/open/x"))
        #expect(table.forgetRealm(at: 5) == "r5")
        #expect(table.target(of: Self.entry("/5/x")) == .realm(0), "as any path that nothing is known of")
        for index in [1, 4, 6, 15] {
            guard case .realm(let found)? = table.target(of: Self.entry("/\(index)/x")) else {
                Issue.record("/\(index)/ is not known")
                continue
            }
            #expect(table.realms[found] == Realm(ByteString("r\(index)")))
        }
        #expect(table.target(of: Self.entry("/open/x")) == .open)
        #expect(table.learnChallenge(of: "late", at: Self.entry("/late/x")) == .learned)
        #expect(try LearnedTable(decoding: table.encode()) == table)
        #expect(table.forgetEntry(at: 77) && table.target(of: Self.entry("/open/x")) == .realm(0))
    }

    @Test func aRealmWithoutANameCostsNone() throws {
        var table = LearnedTable()
        #expect(table.learnChallenge(of: "r0", at: Self.entry("/")) == .learned)
        #expect(table.learnChallenge(of: LearnedTable.unnamed, at: Self.entry("/odd/x")) == .learned)
        for index in 1..<16 {
            #expect(table.learnChallenge(of: Realm(ByteString("r\(index)")), at: Self.entry("/\(index)/x")) == .learned)
        }
        #expect(table.learnChallenge(of: "r16", at: Self.entry("/16/x")) == .realmsFull)
        #expect(table.learnChallenge(of: LearnedTable.unnamed, at: Self.entry("/odder/x")) == .learned)
        #expect(try LearnedTable(decoding: table.encode()) == table)
    }

    /// The flat table and the plain one agree, whatever was learned.
    @Test func theSnapshotSaysWhatTheTableSays() throws {
        let slots = try (0..<16).map { _ in try #require(cache.allocateSlot()) }
        var random: UInt64 = 1
        func next(_ bound: UInt64) -> UInt64 {
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (random >> 33) % bound
        }
        func path() -> String {
            "/" + (0..<next(4)).map { _ in ["a", "b", "cc"][Int(next(3))] + "/" }.joined() + "f"
        }
        var table = LearnedTable()
        for _ in 0..<400 {
            let entry = Self.entry(path(), next(2) == 0 ? "GET" : "PUT")
            if next(3) == 0 {
                _ = table.learnOpen(at: entry)
            } else {
                _ = table.learnChallenge(of: Realm(ByteString("r\(next(5))")), at: entry)
            }
            let asked = path()
            let expected: LearnedVerdict =
                switch table.target(of: Self.entry(asked)) {
                case nil: .cold
                case .open?: .open
                case .realm(let index)?: .slot(slots[index])
                }
            #expect(verdict(snapshot(table, slots), asked) == expected)
            let decoded = try LearnedTable(decoding: table.encode())
            #expect(decoded == table)
        }
    }

    @Test func aPathWithoutASlashHasNoDirectory() {
        #expect(Self.entry("*") == Self.entry("host:443") && Self.entry("*") == Self.entry(""))
        #expect(Self.entry("*") != Self.entry("/"))
    }

    /// Directory and method are learned, and read, up to this length each.
    @Test(arguments: [(4096, true), (4097, false)])
    func aLongPathIsLearnedUpToItsLimit(_ length: Int, isLearned: Bool) throws {
        let directory = "/" + String(repeating: "a", count: length - 2) + "/"
        var table = LearnedTable()
        #expect(table.learnOpen(at: Self.entry(directory + "x")) == (isLearned ? .learned : .entriesFull))
        let method = String(repeating: "M", count: length)
        #expect(table.learnOpen(at: Self.entry("/x", method)) == (isLearned ? .learned : .entriesFull))
        #expect(try LearnedTable(decoding: table.encode()) == table)
        var writer = ByteWriter(1, 4)
        for count in [0, 1] as [UInt32] { writer.put(count) }
        writer.put(Array(directory.utf8))
        writer.put(Array("GET".utf8))
        writer.put(UInt32(0))
        if isLearned {
            #expect(try LearnedTable(decoding: writer.bytes).entries.count == 1)
        } else {
            #expect(throws: KeyCodec.Fault.tooLong) { try LearnedTable(decoding: writer.bytes) }
        }
    }

    /// Many of 256 entries in 512 cells meet in one cell, and each must be found all the same.
    @Test func aFullTableIsReadAndFoundAsAWhole() throws {
        var table = LearnedTable()
        for index in 0..<256 { #expect(table.learnOpen(at: Self.entry("/\(index)/x")) == .learned) }
        #expect(try LearnedTable(decoding: table.encode()) == table)
        let now = snapshot(table, [])
        #expect((0..<256).filter { verdict(now, "/\($0)/y") != .open } == [])
        #expect((256..<512).filter { verdict(now, "/\($0)/y") != .cold } == [])
    }

    /// An entry of `token_scope: url` is a whole path with a slash behind it, and says nothing of the paths below.
    @Test func anEntryOfAUrlHoldsForNoOther() {
        var table = LearnedTable(binding: .url)
        #expect(table.learnOpen(at: Self.entry("/a/b/")) == .learned)
        let now = snapshot(table, [])
        #expect(verdict(now, "/a/b/") == .open)
        for other in ["/a/", "/a/b/c/", "/a/b", "/a/c/", "/", ""] { #expect(verdict(now, other) == .cold, "\(other)") }
        #expect(verdict(now, "/a/b/", "POST") == .cold)
    }

    @Test func aMethodOfNoOctetsIsAMethod() {
        var table = LearnedTable()
        #expect(table.learnOpen(at: Self.entry("/a/x", "")) == .learned)
        let now = snapshot(table, [])
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        let found = Array("/a/y".utf8).withUnsafeBytes { now.verdict(path: $0, method: none) }
        #expect(found == .open && verdict(now, "/a/y") == .cold)
    }

    /// Rows of before have up to 250 URLs, and the realm without a name.
    @Test(arguments: [(251, .truncated), (252, .tooLong)] as [(UInt32, KeyCodec.Fault)])
    func aRowOfBeforeHasItsOwnLimit(_ count: UInt32, _ fault: KeyCodec.Fault) {
        var writer = ByteWriter(1, 4)
        writer.put(count)
        #expect(throws: fault) { try LearnedTable(decoding: writer.bytes, binding: .url) }
    }

    @Test func hostileRowsAreRefused() throws {
        var table = LearnedTable()
        _ = table.learnChallenge(of: "HR", at: Self.entry("/"))
        _ = table.learnOpen(at: Self.entry("/a/x"))
        let bytes = table.encode()
        for end in 0..<bytes.count {
            #expect(throws: KeyCodec.Fault.self) { try LearnedTable(decoding: Array(bytes[..<end])) }
        }
        #expect(throws: KeyCodec.Fault.trailingBytes) { try LearnedTable(decoding: bytes + [1]) }
        var writer = ByteWriter(1, 4)
        writer.put(UInt32(18))
        #expect(throws: KeyCodec.Fault.tooLong) { try LearnedTable(decoding: writer.bytes) }
    }
}
