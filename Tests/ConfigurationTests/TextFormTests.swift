import Testing

@testable import Configuration

/// Each form of a text in the configuration takes what it should, and says why it refuses the rest.
@Suite struct TextFormTests {
    static let refused: [(form: TextForm, text: String, reason: String)] = [
        (.line, "", "must not be empty"), (.line, "a\nb", "must not have control characters or line breaks"),
        (.anyLine, "\u{85}", "must not have control characters or line breaks"), (.userAgent, "", "must not be empty"),
        (.listen, "127.0.0.1", "needs a port: 127.0.0.1:8080"), (.endpoint, "[::1:80", "has a '[' without ']'"),
        (.network, "::ffff:10.0.0.0/8", "must be written as IPv4"),
        (.network, "10.0.0.0/33", "must have from 0 to 32 bits after '/'"),
        (.network, "2001:db8::/129", "must have from 0 to 128 bits after '/'"),
        (.network, "10.0.0.1/8", "has bits set beyond its 8; write the block's first address"),
        (.pathPattern, "/a?b", "must not have a query or fragment"),
        (.pathPattern, "/a#b", "must not have a query or fragment"),
        (.pathPattern, "/a b", "must be of visible ASCII characters, without spaces and '\\'"),
        (.pathPattern, "/a\\b", "must be of visible ASCII characters, without spaces and '\\'"),
        (.redisURL, "unix:x", "must have an absolute path after unix:"),
        (
            .redisURL, "unix:/" + String(repeating: "x", count: 107),
            "must have a path of at most 107 bytes after unix:"
        ),
        (.redisURL, "redis://h/65536", "must have nothing but a database's number behind the host"),
        (.redisURL, "redis://h/0?x", "must have nothing but a database's number behind the host"),
        (.word, "1a", "must start with a letter and have only letters, digits, '_' and '-'"),
        (.word, "a b", "must start with a letter and have only letters, digits, '_' and '-'"),
        (.word, "", "must start with a letter and have only letters, digits, '_' and '-'"),
        (.recipe, "a\u{7F}", "must not have the control character DEL (0x7F)"),
        (.pointer, "a", "must be a JSON pointer such as /token or /data/0/token"),
        (.pointer, "/a~2", "must have '~' only as '~0' or '~1' (RFC 6901)"),
        (.pointer, String(repeating: "/a", count: 17), "must have at most 16 parts"),
        (.refreshAhead, "91%", "must be from 1% to 90%"), (.refreshAhead, "0%", "must be from 1% to 90%"),
    ]

    @Test(arguments: refused)
    func aTextThatDoesNotFitSaysWhy(form: TextForm, text: String, reason: String) {
        do throws(TextFault) {
            _ = try form.canonical(text)
            Issue.record("\(text) is taken as \(form)")
        } catch { #expect(error.reason == reason) }
    }

    static let taken: [(form: TextForm, text: String, canonical: String)] = [
        (.network, "10.0.0.0/8", "10.0.0.0/8"), (.network, "::1", "::1/128"),
        (.redisURL, "unix:/run/redis.sock", "unix:/run/redis.sock"),
        (.redisURL, "rediss://h:1/65535", "rediss://h:1/65535"), (.pathPattern, "/a/b.c", "/a/b.c"),
        (.headerName, "X-Key", "x-key"), (.hostHeader, "[::1]:80", "[::1]:80"), (.proxy, "no", "off"),
        (.servicePath, "/a/b", "a/b"), (.servicePathOrOff, "off", "off"), (.path, "file:/a", "file:/a"),
        (.pointer, String(repeating: "/a", count: 16), String(repeating: "/a", count: 16)),
        (.refreshAhead, "90%", "90%"), (.word, "a-1_", "a-1_"),
    ]

    @Test(arguments: taken)
    func aTextThatFitsHasOneSpelling(form: TextForm, text: String, canonical: String) throws {
        #expect(try form.canonical(text) == canonical)
    }

    @Test func addressesAreToldAsTheyCanBeWritten() throws {
        let unix = try AddressParser.shared("unix:/run/r.sock")
        #expect(unix.address == .unix(path: "/run/r.sock") && unix.database == 0)
        let server = try AddressParser.shared("redis://h/7")
        #expect(server.database == 7)
        #expect(try AddressParser.shared("redis://h").database == 0)
        #expect(try AddressParser.hostHeader("caller") == .caller)
        #expect(try AddressParser.hostHeader("H.example.com") == .name("h.example.com"))
        #expect(try AddressParser.hostHeader("h:81") == .name("h:81"))
        #expect(try AddressParser.hostHeader("[::1]:81") == .name("[::1]:81"))
        #expect(try AddressParser.path("file:/a b") == "/a b")
        #expect(throws: TextFault.self) { try AddressParser.path("file:") }
    }

    @Test(
        arguments: [
            ("1024GiB", 1 << 40), ("3KiB", 3072), ("2MiB", 2 << 20), ("7B", 7),
        ])
    func sizesHaveUnitsOf1024(text: String, octets: Int) throws {
        #expect(try Units.size(text) == octets)
    }

    static let sizes: [(text: String, reason: String)] = [
        ("5", "needs a unit: 5KiB, 5B"), ("5k", "needs a unit of 1024: 5KiB"), ("5M", "needs a unit of 1024: 5MiB"),
        ("5GB", "needs a unit of 1024: 5GiB"), ("5x", "must be \(ValueType.size.expectation)"),
        ("1025GiB", "must be at most 1024GiB"), ("9223372036854775807GiB", "must be at most 1024GiB"),
    ]

    @Test(arguments: sizes)
    func aSizeWithoutItsUnitSaysWhichOnesThereAre(text: String, reason: String) {
        do throws(TextFault) {
            _ = try Units.size(text)
            Issue.record("\(text) is taken")
        } catch { #expect(error.reason == reason) }
    }

    @Test func spansHaveUnitsAndBounds() throws {
        #expect(try Units.duration("1500ms") == .milliseconds(1500))
        #expect(try Units.duration("366d") == .seconds(366 * 86400))
        #expect(throws: TextFault("must be at most 366d")) { try Units.duration("367d") }
        #expect(throws: TextFault("must be at least 1s")) { try Units.duration("999ms", atLeast: .seconds(1)) }
        #expect(try Units.duration("1000ms", atLeast: .seconds(1)) == .seconds(1))
    }

    @Test(arguments: [
        (#"\n"#, "\n"), (#"\v"#, "\u{0B}"), (#"\f"#, "\u{0C}"), (#"\r"#, "\r"), (#"\t"#, "\t"), (#"\x41"#, "A"),
        (#"[\x7f]"#, "\u{7F}"),
    ])
    func aPatternNamesOctetsThatCannotBeSeen(text: String, sign: String) throws {
        let pattern = try Pattern("^(\(text))$")
        #expect(pattern.firstGroup(in: Array(sign.utf8)) == 0..<1)
        #expect(pattern.firstGroup(in: Array("x".utf8)) == nil)
    }

    @Test(arguments: [#"(\x4)"#, #"(\x4g)"#, "(\\\u{1})", "([[a]])"])
    func aPatternThatMeansNothingIsRefused(text: String) {
        #expect(throws: Pattern.Fault.self) { try Pattern(text) }
    }
}
