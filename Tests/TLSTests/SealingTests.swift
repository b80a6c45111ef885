import Octets
import TLS
import Testing

@Suite struct SealingTests {
    private func key(_ seed: UInt8) throws -> SealingKey {
        try SealingKey(bytes: (0..<32).map { UInt8($0) ^ seed })
    }

    @Test(arguments: [0, 1, 15, 16, 17, 1000, 100_000])
    func `opens what it sealed`(count: Int) throws {
        let ring = try SealingKeyRing([key(1)])
        let plaintext = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        let sealed = try ring.seal(plaintext, boundTo: [1, 2])
        #expect(sealed.count == count + SealingKeyRing.overhead)
        #expect(try ring.open(sealed, boundTo: [1, 2]) == plaintext)
        #expect(try ring.seal(plaintext, boundTo: [1, 2]) != sealed)
    }

    @Test func `any changed bit is damage`() throws {
        let ring = try SealingKeyRing([key(1)])
        let sealed = try ring.seal(Array("secret".utf8), boundTo: [7])
        for position in sealed.indices {
            var changed = sealed
            changed[position] ^= 1
            #expect(throws: SealingFault.self) { try ring.open(changed, boundTo: [7]) }
        }
        for count in sealed.indices {
            #expect(throws: SealingFault.damaged) { try ring.open(Array(sealed.prefix(count)), boundTo: [7]) }
        }
        #expect(throws: SealingFault.damaged) { try ring.open(sealed, boundTo: [8]) }
        #expect(throws: SealingFault.damaged) { try ring.open(sealed, boundTo: []) }
    }

    @Test func `the first key seals, all open, an unknown one is named`() throws {
        let old = try key(1)
        let new = try key(2)
        let sealed = try SealingKeyRing([old]).seal([1, 2, 3], boundTo: [])
        let both = try SealingKeyRing([new, old])
        #expect(try both.open(sealed, boundTo: []) == [1, 2, 3])
        #expect(SealingKeyRing.keyID(of: try both.seal([], boundTo: [])) == new.id)
        let alone = try SealingKeyRing([new])
        #expect(throws: SealingFault.unknownKey(old.id)) { try alone.open(sealed, boundTo: []) }
        #expect("\(old)" == "SealingKey(\(SealingKey.name(of: old.id)))")
    }

    @Test func `reads keys in three forms`() throws {
        let bytes = (0..<32).map { UInt8(200 &- $0) }
        let id = try SealingKey(bytes: bytes).id
        let hexadecimal = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        for text in [Base64.encode(bytes), Base64.encodeURL(bytes), hexadecimal, hexadecimal.uppercased()] {
            for end in ["", "\n", "\r\n"] {
                #expect(try SealingKey(fileContents: Array((text + end).utf8)).id == id)
            }
        }
        #expect(try SealingKey(fileContents: bytes).id == id)
        #expect(try SealingKey(fileContents: bytes + [10]).id == id)
        for bad in [
            [], [UInt8](repeating: 0, count: 32), Array(bytes.prefix(31)), Array("password".utf8), bytes + bytes,
        ] {
            #expect(throws: SealingFault.badKey) { try SealingKey(fileContents: bad) }
        }
        #expect(throws: SealingFault.badKey) { try SealingKeyRing([]) }
    }

    // FIPS 180-4 example "abc"; RFC 4231 test case 2.
    @Test func `digests agree with the standards`() {
        func text(_ bytes: [UInt8]) -> String { bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
        #expect(
            text(sha256(Array("abc".utf8))) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(
            text(keyedHash(key: Array("Jefe".utf8), Array("what do ya want for nothing?".utf8)))
                == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        #expect(
            text(keyedHash(key: [], [])) == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
        let random = SystemRandom()
        #expect(random.bytes(0) == [] && random.bytes(32) != random.bytes(32) && random.bytes(33).count == 33)
    }
}
