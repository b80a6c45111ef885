import Testing

@testable import Configuration

/// Each form takes exactly the characters that it should, at each place where it looks at them.
@Suite struct CharacterClassTests {
    /// The characters that may stand at a place of a text are expected.
    typealias Place = FormCase<String>

    static let digits = "0123456789"
    static let letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    static let alphanumeric = letters + digits
    static let token = alphanumeric + "!#$%&'*+-.^_`|~"
    static let visible = alphanumeric + "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    static let header = visible + " \t"
    /// Everything but controls.
    static let line = visible + " \u{A0}é日"
    static let controls = String(
        String.UnicodeScalarView(
            (0x00...0x1F).map { Unicode.Scalar($0) } + [0x80, 0x85, 0x9F].map { Unicode.Scalar(UInt8($0)) }))

    static func visible(without signs: String) -> String { visible.filter { !signs.contains($0) } }

    static let places: [Place] = [
        Place(.line, "a", "b", line), Place(.anyLine, "", "", line), Place(.path, "a", "b", line),
        Place(.authority, "a", "b", line), Place(.listenAddress, "unix:/a", "b", line),
        Place(.name, "", "", alphanumeric), Place(.name, "a", "", alphanumeric + "-_."),
        Place(.headerName, "", "", token), Place(.headerName, "a", "b", token),
        Place(.method, "", "", token), Place(.method, "X", "X", token),
        Place(.headerValue, "", "", header), Place(.headerValue, "a", "b", header), Place(.userAgent, "a", "b", header),
        Place(.template, "a{token}", "b", header), Place(.template, "a", "{token}", header),
        Place(.scope, "", "", visible(without: "\"\\")), Place(.scope, "a", "b", visible(without: "\"\\")),
        Place(.hostName, "a", "b", alphanumeric + "-_."), Place(.hostName, "", "a", alphanumeric + "_"),
        Place(.hostName, "a", "", alphanumeric + "_."), Place(.hostName, "a.", "a", alphanumeric + "_"),
        Place(.hostName, "a", ".a", alphanumeric + "_"),
        Place(.pathPattern, "/a", "b", visible(without: "*?#\\")), Place(.pathPattern, "", "a", "/"),
        Place(.servicePath, "a", "b", visible(without: "?#\\")),
        Place(.servicePathOrOff, "a", "b", visible(without: "?#\\")),
        Place(.absolutePath, "/a", "b", visible(without: "#\\")), Place(.absolutePath, "", "a", "/"),
        Place(.absolutePath, "/a?", "b", visible(without: "#\\")),
        Place(.upstream, "https://h/a", "b", visible(without: "?#\\")),
        Place(.httpURL, "https://h/a", "b", visible(without: "#\\")),
        Place(.httpURL, "https://h?", "b", visible(without: "#\\")),
        Place(.httpURL, "https://a", "b", alphanumeric + "-_./?"),
        Place(.httpURL, "https://a:1", "", digits + "/?"),
        Place(.redisURL, "redis://h/", "", digits), Place(.redisURL, "redis://h/1", "2", digits),
        Place(.redisURL, "redis://h:1", "", digits + "/"),
        Place(.word, "", "", letters), Place(.word, "a", "", alphanumeric + "_-"),
        Place(.recipe, "a", "b", line + controls),
        Place(.pointer, "/a", "b", line.filter { $0 != "~" } + controls + "\u{7F}"),
        Place(.pointer, "/a~", "", "01"), Place(.pointer, "", "", "/"), Place(.hostHeader, "a:1", "", digits),
        Place(.refreshAhead, "1", "", "%smhd"), Place(.refreshAhead, "1", "%", digits), Place(.share, "1", "", "%"),
        Place(.share, "1", "%", digits), Place(.share, "1.0", "%", digits), Place(.share, "", ".5%", digits),
    ]

    @Test(arguments: places)
    func aCharacterIsTakenWhereItMayStand(place: Place) {
        let others = [0x80, 0x85, 0x9F, 0xA0, 0xE9, 0x65E5].compactMap(Unicode.Scalar.init)
        let all = (0...0x7F).map { Unicode.Scalar(UInt8($0)) } + others
        let taken = all.filter { place.form.fault(place.before + String(Character($0)) + place.after) == nil }
        let wanted = all.filter { place.expected.unicodeScalars.contains($0) }
        #expect(taken == wanted)
    }
}
