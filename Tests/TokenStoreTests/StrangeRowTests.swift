import Glibc
import TLS
import Testing
import TokenStore

/// Rows that no version of this store has written, and key files that hold no key.
@Suite struct StrangeRowTests {
    let folder = Folder()

    private func open(_ keys: SealingKeyRing, repairs: Bool = true) throws -> (TokenStore, StoreOpening) {
        var options = StoreOptions()
        options.repairs = repairs
        let store = TokenStore(path: folder.database, keys: keys, options: options)
        return (store, store.open(now: 0))
    }

    private func fill(_ rows: [StoredRow]) async throws {
        let (store, opening) = try open(try ring(1))
        try #require(opening.census != nil)
        #expect(await store.commit(rows.map { .put($0) }) == nil)
        #expect(store.close())
    }

    @Test func `a row whose value is empty is damaged, and the others are restored`() async throws {
        try await fill([row(1, "a", "1"), row(1, "b", "2"), row(2, "c", "3")])
        try sqlite("UPDATE rows SET value = x'' WHERE sequence = 1", in: folder.database)
        let (store, opening) = try open(try ring(1))
        #expect(opening.census?.damaged == [1: 1] && opening.census?.restored == 2)
        #expect(store.restore().map(\.key) == [Array("b".utf8), Array("c".utf8)])
        store.close()
        let (again, clean) = try open(try ring(1))
        #expect(clean.census?.damaged == [:] && clean.census?.restored == 2, "it is found once")
        again.close()
    }

    @Test func `a row of a kind that there cannot be is in no count`() async throws {
        try await fill([row(1, "a", "1"), row(1, "b", "2"), row(2, "c", "3")])
        try sqlite("UPDATE rows SET kind = 4711 WHERE sequence = 2", in: folder.database)
        let (store, opening) = try open(try ring(1), repairs: false)
        #expect(opening.census?.restored == 2)
        #expect(try await store.measure().rows == [1: 1, 2: 1])
        store.close()
    }

    /// Without the list nobody could say later which key is missing, and a lost key would look like damage.
    @Test func `a key is listed with the first row that it seals, also where nothing is repaired`() async throws {
        try await fill([row(1, "a", "1")])
        let (store, opening) = try open(try ring(2, 1), repairs: false)
        try #require(opening.census?.restored == 1)
        #expect(await store.put(row(1, "b", "2")) == nil)
        #expect(store.close())
        let (without, refused) = try open(try ring(1))
        #expect(refused == .unknownKey([try sealingKey(2).id]))
        #expect(without.condition.degraded?.kind == .notOwner)
        without.close()
        let (both, whole) = try open(try ring(2, 1))
        #expect(whole.census?.restored == 2)
        both.close()
    }

    // MARK: - Key files

    private var keyFile: String { KeyFile.path(beside: folder.database) }

    @Test(arguments: ["no key\n", "no key\nnor this\n"]) func `a key file without a key is told, and left as it is`(
        _ text: String
    ) throws {
        Bytes.write(Array(text.utf8), to: keyFile)
        for work in [
            { try KeyFile.load(self.keyFile) }, { try KeyFile.makeKeyFile(beside: self.folder.database).keys },
        ] {
            let fault = #expect(throws: StoreFault.self) { try work() }
            #expect(fault?.kind == .sealing && fault.map { "\($0)" }?.contains(keyFile) == true)
        }
        #expect(Bytes.read(keyFile) == Array(text.utf8))
    }

    @Test func `a link to a key that is gone is not taken for a place without one`() throws {
        try #require(symlink(folder.path + "/gone.key", keyFile) == 0)
        let fault = #expect(throws: StoreFault.self) { try KeyFile.makeKeyFile(beside: folder.database) }
        #expect(fault?.kind == .io)
        #expect(Set(folder.names) == ["tokens.db.key"], "neither a key nor what it was written to is left")
    }
}
