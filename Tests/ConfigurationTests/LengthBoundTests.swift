import Testing

@testable import Configuration

/// The longest text of each form is taken, and one byte more is not.
@Suite struct LengthBoundTests {
    /// The longest length of a text that grows by the byte is expected.
    typealias Bound = FormCase<Int>

    private static let label = String(repeating: "b", count: 62) + "."

    static let bounds: [Bound] = [
        Bound(.name, "", "", 64), Bound(.word, "", "", 64), Bound(.headerName, "", "", 256),
        Bound(.method, "", "", 256),
        Bound(.headerValue, "", "", 4096), Bound(.userAgent, "", "", 4096), Bound(.template, "{token}", "", 4096),
        Bound(.scope, "", "", 1024), Bound(.hostName, "", "", 63), Bound(.hostName, "", ".b", 65),
        Bound(.hostName, "b.", ".b", 67), Bound(.hostName, label + label + label + "b.", "", 254 - 1),
        Bound(.hostName, label + label + label + "b.", ".", 254), Bound(.hostPattern, "*.", "", 65),
        Bound(.path, "", "", 4095), Bound(.path, "file:", "", 4100), Bound(.authority, "", "", 4095),
        Bound(.servicePath, "", "", 4096), Bound(.servicePath, "/", "", 4097), Bound(.absolutePath, "/", "", 4096),
        Bound(.absolutePath, "/?", "", 4096), Bound(.pathPattern, "/", "", 4096),
        Bound(.httpURL, "http://h/", "", 4103),
        Bound(.httpURL, "https://h?", "", 4104), Bound(.upstream, "https://h/", "", 4104),
        Bound(.listenAddress, "unix:/", "", 112), Bound(.endpoint, "unix:/", "", 112),
        Bound(.redisURL, "unix:/", "", 112), Bound(.recipe, "", "", 16384), Bound(.pointer, "/", "", 512),
        Bound(.pattern, "([", "])", 512),
    ]

    @Test(arguments: bounds)
    func theLongestIsTakenAndOneByteMoreIsNot(bound: Bound) {
        func text(_ length: Int) -> String {
            let filling = length - bound.before.utf8.count - bound.after.utf8.count
            return bound.before + String(repeating: "a", count: filling) + bound.after
        }
        #expect(bound.form.fault(text(bound.expected - 1)) == nil)
        #expect(bound.form.fault(text(bound.expected)) == nil)
        #expect(bound.form.fault(text(bound.expected + 1)) != nil)
    }

    @Test(
        arguments: [
            (.line, false), (.anyLine, true), (.name, false), (.headerName, false), (.headerValue, true),
            (.method, false),
            (.scope, false), (.hostName, false), (.hostPattern, false), (.pathPattern, false), (.hostHeader, false),
            (.upstream, false), (.httpURL, false), (.redisURL, false), (.proxy, false), (.listen, false),
            (.listenAddress, false), (.endpoint, false), (.network, false), (.ipAddress, false), (.path, false),
            (.authority, false), (.servicePath, false), (.servicePathOrOff, false), (.absolutePath, false),
            (.template, false), (.refreshAhead, false), (.share, false), (.userAgent, false), (.word, false),
            (.recipe, true), (.pointer, true), (.pattern, false),
        ] as [(TextForm, Bool)])
    func onlySomeFormsTakeNothing(form: TextForm, isTaken: Bool) {
        #expect((form.fault("") == nil) == isTaken)
    }

    /// Bytes are counted, not characters.
    @Test(arguments: [(.path, 2047, 1), (.listenAddress, 52, 3), (.pointer, 255, 1)] as [(TextForm, Int, Int)])
    func aLongCharacterCountsAsItsBytes(form: TextForm, count: Int, rest: Int) {
        let before = form == .listenAddress ? "unix:/" : "/"
        let text = before + String(repeating: "é", count: count)
        #expect(form.fault(text + String(repeating: "a", count: rest - 1)) == nil)
        #expect(form.fault(text + "éé") != nil)
    }
}
