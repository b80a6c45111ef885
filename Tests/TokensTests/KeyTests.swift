import Testing

@testable import Tokens

@Suite struct KeyTests {
    static let key = AccessKey(
        digest: digest(1), origin: Origin(scheme: "https", host: "API.example.com", port: 443), realm: "HR_WG",
        scopes: ["b", "a", "b"], audience: "aud", resource: nil, subject: "")

    /// The same key with one member changed.
    static let variants: [AccessKey] = {
        var keys: [AccessKey] = []
        func vary(_ change: (inout AccessKey) -> Void) {
            var variant = key
            change(&variant)
            keys.append(variant)
        }
        vary { $0.digest = digest(2) }
        vary { $0.origin = Origin(scheme: "http", host: "api.example.com", port: 443) }
        vary { $0.origin = Origin(scheme: "https", host: "api.example.org", port: 443) }
        vary { $0.origin = Origin(scheme: "https", host: "api.example.com", port: 8443) }
        vary { $0.realm = "" }
        vary { $0.scopes = ["a"] }
        vary { $0.scopes = ["a b"] }
        vary { $0.audience = nil }
        vary { $0.resource = "aud" }
        vary { $0.subject = nil }
        vary { $0.subject = "jane" }
        return keys
    }()

    @Test func aScopeSetIsSortedAndHasEachOnce() {
        #expect(ScopeSet(["b", "a", "b"]) == ["a", "b"])
        #expect(ScopeSet(spaceSeparated: " b  a ".utf8) == ["a", "b"])
        #expect(ScopeSet(["a", "b"]).isSuperset(of: ["b"]))
        #expect(!ScopeSet(["a"]).isSuperset(of: ["b"]))
        #expect(ScopeSet(["a"]).union(["b"]).description == "a b")
    }

    @Test func textIsComparedAsBytes() {
        #expect("e\u{301}" as String == "\u{e9}")
        #expect(ByteString("e\u{301}") != ByteString("\u{e9}"))
        #expect(ByteString([0x41, 0x0A, 0xE9, 0x25]).description == "A%0A%E9%25")
    }

    @Test func everyMemberOfTheAccessKeyCounts() throws {
        let encodings = Set([Self.key] + Self.variants).map(KeyCodec.encode)
        #expect(Set(encodings).count == Self.variants.count + 1)
        for key in [Self.key] + Self.variants { #expect(try KeyCodec.accessKey(KeyCodec.encode(key)) == key) }
    }

    @Test func wish40_OnlyTheScopeMayDifferAndOnlyToLess() {
        var narrow = Self.key
        narrow.scopes = ["a"]
        #expect(Self.key.serves(narrow, granted: ["a", "b"]))
        #expect(!narrow.serves(Self.key, granted: ["a"]))
        for variant in Self.variants where variant.scopes == Self.key.scopes {
            #expect(!variant.serves(Self.key, granted: ["a", "b"]))
        }
    }

    @Test func sessionAndDurableKeysSurviveTheCodec() throws {
        let session = SessionKey(digest: digest(3), issuer: issuer, subject: "jane")
        #expect(try KeyCodec.sessionKey(KeyCodec.encode(session)) == session)
        let durable = DurableKey(digest: digest(3), issuer: issuer, part: "device")
        #expect(try KeyCodec.durableKey(KeyCodec.encode(durable)) == durable)
        #expect(throws: KeyCodec.Fault.otherLayer) { try KeyCodec.accessKey(KeyCodec.encode(session)) }
    }

    @Test func everyTruncationAndEveryLongerRowIsRefused() {
        let bytes = KeyCodec.encode(Self.key)
        for end in 0..<bytes.count {
            #expect(throws: KeyCodec.Fault.self) { try KeyCodec.accessKey(Array(bytes[..<end])) }
        }
        #expect(throws: KeyCodec.Fault.trailingBytes) { try KeyCodec.accessKey(bytes + [0]) }
    }

    @Test func whatFollowsAShorterKeyIsRefused() {
        let session = KeyCodec.encode(SessionKey(digest: digest(3), issuer: issuer, subject: "jane"))
        let durable = KeyCodec.encode(DurableKey(digest: digest(3), issuer: issuer, part: "device"))
        for more in [[0], [1, 2, 3, 4]] as [[UInt8]] {
            #expect(throws: KeyCodec.Fault.trailingBytes) { try KeyCodec.sessionKey(session + more) }
            #expect(throws: KeyCodec.Fault.trailingBytes) { try KeyCodec.durableKey(durable + more) }
        }
    }

    /// Two octets say of which version and layer a row is.
    @Test(
        arguments: [
            ([], .truncated), ([1], .truncated), ([2], .truncated), ([2, 1], .unknownVersion), ([1, 2], .otherLayer),
            ([1, 1], .truncated),
        ] as [([UInt8], KeyCodec.Fault)])
    func aRowOfAHeadAloneIsRefusedByItsHead(_ bytes: [UInt8], _ fault: KeyCodec.Fault) {
        #expect(throws: fault) { try KeyCodec.durableKey(bytes) }
    }

    @Test func asManyScopesAreReadAsTheRowHasRoomFor() throws {
        var writer = ByteWriter(1, 3)
        writer.put([""] as ScopeSet)
        var reader = try ByteReader(writer.bytes, 1, 3)
        #expect(try reader.scopes() == [""], "a scope of no octets takes the four of its length")
        // Two scopes are announced where there is room for one, which would be too long besides.
        var hostile = ByteWriter(1, 3)
        hostile.put(UInt32(2))
        hostile.put(UInt32.max)
        var refusing = try ByteReader(hostile.bytes, 1, 3)
        #expect(throws: KeyCodec.Fault.truncated) { try refusing.scopes() }
    }

    @Test func aChangedByteNeverDecodesToTheSameKey() {
        let bytes = KeyCodec.encode(Self.key)
        for index in bytes.indices {
            for bit in 0..<8 {
                var changed = bytes
                changed[index] ^= 1 << bit
                if let key = try? KeyCodec.accessKey(changed) {
                    #expect(key != Self.key)
                    #expect(KeyCodec.encode(key) == changed)
                }
            }
        }
    }

    @Test func scopesOutOfOrderAreNotCanonical() {
        var writer = ByteWriter(KeyCodec.version, KeyCodec.access)
        writer.put(digest(1).bytes)
        writer.put(issuer)
        writer.put([])
        writer.put(UInt32(2))
        writer.put(Array("b".utf8))
        writer.put(Array("a".utf8))
        for _ in 0..<3 { writer.put(optional: nil) }
        #expect(throws: KeyCodec.Fault.notCanonical) { try KeyCodec.accessKey(writer.bytes) }
    }

    @Test func theDigestIsThirtyTwoBytes() {
        #expect(IdentityDigest([1, 2]) == nil)
        #expect(digest(0xAB).description == "abababababababab")
    }
}
