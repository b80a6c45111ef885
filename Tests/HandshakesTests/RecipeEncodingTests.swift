import Configuration
import TLS
import Testing

@testable import Handshakes

@Suite struct RecipeEncodingTests {
    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test(arguments: [
        (0, "1970-01-01T00:00:00Z", "19700101T000000Z"), (951_782_400, "2000-02-29T00:00:00Z", "20000229T000000Z"),
        (951_868_799, "2000-02-29T23:59:59Z", "20000229T235959Z"),
        (1_709_251_199, "2024-02-29T23:59:59Z", "20240229T235959Z"),
        (1_763_712_007, "2025-11-21T08:00:07Z", "20251121T080007Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z", "21000301T000000Z"),
    ])
    func instants(seconds: Int64, extended: String, basic: String) {
        let clock = WallClockText(seconds)
        #expect(clock.extended == extended)
        #expect(clock.basic == basic)
        #expect(clock.basicDate == String(basic.prefix(8)))
    }

    @Test func aUUIDIsMarkedAsRandom() {
        #expect(text(UUIDText.version4(Array(repeating: 0xFF, count: 16))) == "ffffffff-ffff-4fff-bfff-ffffffffffff")
        #expect(text(UUIDText.version4(Array(0..<16))) == "00010203-0405-4607-8809-0a0b0c0d0e0f")
    }

    @Test(arguments: [
        ("", ""), ("b=2&a=1", "a=1&b=2"), ("a", "a="), ("a=2&a=1", "a=1&a=2"), ("a=%2f~%7E", "a=%2F~~"),
        ("x=a+b", "x=a%2Bb"),
        ("a=%zz&&b", "a=%25zz&b="), ("k=1=2", "k=1%3D2"), ("B=1&a=1&A=1", "A=1&B=1&a=1"),
    ])
    func queriesHaveOneForm(query: String, canonical: String) {
        #expect(text(bytes(query).canonicalQuery) == canonical)
    }

    @Test func textIsMadeSafeForItsPlace() {
        #expect(text(bytes("<a b='1'>&\"").xmlEscaped) == "&lt;a b=&#39;1&#39;&gt;&amp;&quot;")
    }

    /// RFC 7515, appendix A.1, has blanks in its header; jwt.io's form is the one without.
    @Test func aSignatureIsReadByItsKeyOnly() throws {
        let key = bytes("your-256-bit-secret-of-32-bytes!")
        let token = try RecipeJWS.compact(
            payload: bytes(#"{"sub":"1"}"#), key: Secret(key), named: "a", .hs256, keyID: nil, known: nil)
        let parts = text(token).split(separator: ".")
        #expect(parts.count == 3)
        #expect(parts[0] == "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9")
        #expect(parts[1] == "eyJzdWIiOiIxIn0")
        #expect(throws: RecipeValues.Fault.self) {
            try RecipeJWS.compact(payload: [], key: Secret("short"), named: "a", .hs256, keyID: nil, known: nil)
        }
    }

    // MARK: - JSON

    @Test(arguments: [
        (#"{"a":[1,{"b~/":"x"}]}"#, ["a", "1", "b~/"], "x"), (#"{"a":-1.5e+3}"#, ["a"], "-1.5e+3"),
        (#"{"a":true}"#, ["a"], "true"), (#"{"a":false}"#, ["a"], "false"), (#"{"a":2E-7}"#, ["a"], "2E-7"),
        (#"{"a":"\u00e9\ud83d\ude00\/\b\f\n\r\t"}"#, ["a"], "é😀/\u{8}\u{c}\n\r\t"), (#"["x"]"#, ["0"], "x"),
        (#" "s" "#, [], "s"),
    ])
    func pointersFindValues(body: String, pointer: [String], value: String) throws {
        #expect(try JSONTree(bytes(body)).value(at: pointer)?.scalar.map(text) == value)
    }

    @Test(arguments: [["b"], ["a", "2"], ["a", "01"], ["a", "-"], ["a", "0", "x"]])
    func pointersFindNothing(pointer: [String]) throws {
        #expect(try JSONTree(bytes(#"{"a":[1,2]}"#)).value(at: pointer) == nil)
    }

    @Test(arguments: [
        "", " ", "<html>", "{", "{\"a\"}", "[1,]", "{\"a\":1,}", "01", "1.", "+1", "nul", "\"\\x\"", "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"a", "\"a\\", "{\"a\":", "{\"a\":1", "{\"a\":1 2}", "[1 2]", "[1", "-", "1e", "1e+", "\"\\ud800",
        "\"\\u00g0\"",
        "\"a\nb\"", "1 2", "{\"a\":1}}", "{a:1}", "'a'", "\"\\u12\"",
    ])
    func whatIsNoJSONIsRefused(body: String) { #expect(throws: JSONTree.Fault.self) { try JSONTree(bytes(body)) } }

    @Test func boundsOfJSON() throws {
        let deep = String(repeating: "[", count: 17) + String(repeating: "]", count: 17)
        #expect(throws: JSONTree.Fault.tooDeep) { try JSONTree(bytes(deep)) }
        #expect(throws: JSONTree.Fault.tooManyValues) {
            try JSONTree(bytes("[" + Array(repeating: "1", count: 5000).joined(separator: ",") + "]"))
        }
        #expect(throws: JSONTree.Fault.tooLarge) { try JSONTree(Array(repeating: 0x20, count: 70_000)) }
        #expect(throws: JSONTree.Fault.notJSON) { try JSONTree([0x22, 0xFF, 0x22]) }
        #expect(throws: JSONTree.Fault.duplicate) { try JSONTree(bytes(#"{"a":1,"a":2}"#)).value(at: ["a"]) }
        #expect(try JSONTree(bytes(#"{"a":1,"a":2,"b":3}"#)).value(at: ["b"])?.scalar == bytes("3"))
    }

    // MARK: - Material

    @Test func materialComesBackWhole() {
        let values: RecipeMaterial.Values = ["a": ["x": Secret("1"), "y": Secret([0, 255])], "b": ["x": Secret("")]]
        #expect(RecipeMaterial.decode(RecipeMaterial.encode(values)) == values)
        let encoded = RecipeMaterial.encode(values).withBytes { Array($0) }
        for cut in 1..<encoded.count where RecipeMaterial.decode(Secret(Array(encoded[..<cut]))) == values {
            Issue.record("\(cut) bytes were enough")
        }
        #expect(RecipeMaterial.decode(Secret([2])) == nil)
        #expect(RecipeMaterial.decode(Secret([1, 0xFF, 0xFF, 0xFF, 0xFF, 0])) == nil)
        #expect(RecipeMaterial.decode(Secret([])) == nil)
    }
}
