import Testing

@testable import HTTP1

/// A head by its index is what a parse of its text finds, whatever the parts are that it was put together from.
@Suite struct HeadIndexTests {
    /// A head put together with its index, as a field section of HTTP/2 is.
    struct Parts: CustomTestStringConvertible {
        var method = "GET"
        var target = "/"
        var status = 0
        var reason = ""
        var fields: [(String, String)] = []

        var testDescription: String { "\(method) \(target) \(status) \(fields)" }

        var text: [UInt8] {
            let first = status > 0 ? "HTTP/1.1 \(status) \(reason)" : "\(method) \(target) HTTP/1.1"
            return octets(first + "\r\n" + fields.map { "\($0.0): \($0.1)\r\n" }.joined() + "\r\n")
        }

        func write(_ index: inout HeadIndex, isEnded: Bool = true) {
            if status > 0 {
                index.begin(status: status, reason: octets(reason).span)
            } else {
                index.begin(method: octets(method).span, target: octets(target).span)
            }
            for (name, value) in fields {
                let name = octets(name)
                index.add(name: name.span, known: KnownField.named(name.span), value: octets(value).span)
            }
            if isEnded { index.end() }
        }

        /// The parts of a text, cut without any regard to what they hold.
        init(cutting text: String) {
            var lines = text.components(by: "\r\n")
            let first = lines.removeFirst().components(by: " ")
            if first[0].hasPrefix("HTTP/1.1"), first.count > 1, let code = Int(first[1]) {
                status = code
                reason = first[2...].joined(separator: " ")
            } else {
                method = first[0]
                target = first.dropFirst().dropLast(first.count > 2 ? 1 : 0).joined(separator: " ")
            }
            while lines.last == "" { lines.removeLast() }
            fields = lines.map { line in
                let cut = line.components(by: ": ")
                return (cut[0], cut.dropFirst().joined(separator: ": "))
            }
        }

        init(method: String = "GET", target: String = "/", fields: [(String, String)]) {
            (self.method, self.target, self.fields) = (method, target, fields)
        }

        init(status: Int, reason: String = "OK", fields: [(String, String)]) {
            (self.status, self.reason, self.fields) = (status, reason, fields)
        }
    }

    /// Everything that a head says, and the fault where it has one.
    struct Findings: Equatable {
        var fault: HeadFault?
        var length: Int?
        var parts: [ByteRange?] = []
        var decisions = ""
        var fields: [Field] = []
        var seen: UInt64 = 0
        var position = 0
    }

    static func request(_ bytes: [UInt8], _ index: borrowing HeadIndex, limits: HeadLimits) -> Findings {
        var head = RequestHead(maxFields: 40)
        var found = Findings()
        do throws(HeadFault) {
            found.length = try head.parse(bytes.span, index: index, limits: limits)
            // A second time it is the same.
            let again = try head.parse(bytes.span, index: index, limits: limits)
            #expect(again == found.length)
        } catch {
            found.fault = error
            var again: HeadFault?
            do throws(HeadFault) { _ = try head.parse(bytes.span, limits: limits) } catch { again = error }
            #expect(again == error)
            return found
        }
        found.parts = [head.method, head.target, head.authority, head.path, head.host]
        found.decisions =
            "\(head.knownMethod) \(head.targetForm) \(head.minorVersion) \(head.framing) \(head.keepAlive) "
            + "\(head.expectsContinue) \(head.upgrade) \(head.length)"
        found.fields = (0..<head.fieldCount).map { head[$0] }
        found.seen = head.section.seen
        found.position = head.section.position
        return found
    }

    static func response(_ bytes: [UInt8], _ index: borrowing HeadIndex, limits: HeadLimits) -> Findings {
        var head = ResponseHead(maxFields: 40)
        var found = Findings()
        do throws(HeadFault) {
            found.length = try head.parse(bytes.span, index: index, limits: limits)
            let again = try head.parse(bytes.span, index: index, limits: limits)
            #expect(again == found.length)
        } catch {
            found.fault = error
            var again: HeadFault?
            do throws(HeadFault) { _ = try head.parse(bytes.span, limits: limits) } catch { again = error }
            #expect(again == error)
            return found
        }
        found.parts = [head.reason]
        found.decisions =
            "\(head.status) \(head.minorVersion) \(String(describing: head.declaredLength)) \(head.keepAlive) "
            + "\(head.length) \(head.framing(forMethodHEAD: false, connect: false))"
        found.fields = (0..<head.fieldCount).map { head[$0] }
        found.seen = head.section.seen
        found.position = head.section.position
        return found
    }

    /// - Returns: whether there was an index.
    @discardableResult
    static func agree(_ parts: Parts, limits: HeadLimits = HeadLimits()) -> Bool {
        var index = HeadIndex()
        parts.write(&index)
        let none = HeadIndex()
        let text = parts.text
        // A body behind it belongs to nobody here.
        for bytes in [text, text + octets("body\r\n\r\n")] {
            let byIndex = request(bytes, index, limits: limits)
            let byText = request(bytes, none, limits: limits)
            #expect(byIndex == byText)
            let answerByIndex = response(bytes, index, limits: limits)
            let answerByText = response(bytes, none, limits: limits)
            #expect(answerByIndex == answerByText)
        }
        let length = index.length
        if length > 0 { #expect(length == text.count) }
        return length > 0
    }

    static let texts =
        RequestHeadTests.refused.map(\.0) + RequestHeadTests.framings.map(\.0) + RequestHeadTests.persistence.map(\.0)
        + RequestHeadTests.targets.map(\.0) + ResponseHeadTests.refused.map(\.0) + ResponseHeadTests.framings.map(\.0)

    @Test(arguments: texts)
    func everyHeadOfTheParsersTests(text: String) { Self.agree(Parts(cutting: text)) }

    @Test func plainHeadsHaveOne() {
        let request = Parts(
            method: "POST", target: "/a?b=c",
            fields: [
                ("host", "a.example:8443"), ("user-agent", "some caller/1.0 (a; b)"), ("accept", "*/*"),
                ("x-empty", ""),
                ("x_forwarded_for", "::1"), ("content-length", "12"), ("X-Mixed", "a\tb \u{E9}"),
                ("cookie", "a=b; c=d"),
            ])
        #expect(Self.agree(request))
        #expect(Self.agree(Parts(method: "CONNECT", target: "a:443", fields: [("host", "a:443")])))
        #expect(
            Self.agree(
                Parts(status: 200, fields: [("content-length", "5"), ("server", "x"), ("date", "Sun, 22 Nov 2026")])))
        #expect(Self.agree(Parts(status: 299, reason: "", fields: [("set-cookie", "a=b"), ("set-cookie", "c=d")])))
    }

    /// Each of these is for the parser to judge.
    @Test(
        arguments: [
            Parts(target: "/a#b", fields: [("host", "a")]), Parts(target: "", fields: [("host", "a")]),
            Parts(target: "/a b", fields: [("host", "a")]),
            Parts(target: "/aaaaaaaaaaaaaaaaaaaa\u{7F}bbb", fields: [("host", "a")]),
            Parts(target: "/\r\nx: y", fields: [("host", "a")]), Parts(method: "", fields: [("host", "a")]),
            Parts(method: "G T", fields: [("host", "a")]), Parts(fields: [("host", "a"), ("", "b")]),
            Parts(fields: [("host", "a"), ("x y", "b")]), Parts(fields: [("host", "a"), (" x", "b")]),
            Parts(fields: [("host", "a"), ("x", " b")]), Parts(fields: [("host", "a"), ("x", "b ")]),
            Parts(fields: [("host", "a"), ("x", "\tb")]), Parts(fields: [("host", "a"), ("x", "b\0")]),
            Parts(fields: [("host", "a"), ("x", "b\r\nx: c")]),
            Parts(fields: [("host", "a"), ("x", "bbbbbbbbbbb\nbbbbbbbbbb")]),
            Parts(fields: [("host", "a"), ("x", "bbbbbbbbbbb\rbbbbbbbbbb")]),
            Parts(fields: [("host", "a"), ("x:", "b")]),
            Parts(status: 99, fields: []), Parts(status: 1000, fields: []),
        ])
    func otherHeadsHaveNone(parts: Parts) { #expect(!Self.agree(parts)) }

    @Test func everyOctetEverywhere() {
        for octet in UInt8.min...UInt8.max {
            let character = String(Unicode.Scalar(octet))
            for length in [0, 3, 7, 8, 20] {
                let rest = String(repeating: "a", count: length)
                for part in [character + rest, rest + character, rest + character + rest] {
                    Self.agree(Parts(method: part, fields: [("host", "a")]))
                    Self.agree(Parts(target: "/" + part, fields: [("host", "a")]))
                    Self.agree(Parts(target: part, fields: [("host", "a")]))
                    Self.agree(Parts(fields: [("host", part)]))
                    Self.agree(Parts(fields: [("host", "a"), (part, "b")]))
                    Self.agree(Parts(fields: [("host", "a"), ("x", part)]))
                    Self.agree(Parts(status: 200, fields: [(part, part)]))
                }
            }
        }
    }

    @Test func heapsOfPieces() {
        let names = [
            "host", "Host", "content-length", "Content_Length", "transfer-encoding", "connection", "upgrade", "expect",
            "te", "via", "x", "",
            "x_forwarded_for", "cookie", "set-cookie", "X-A", "x y", "a:b", "date", "dpop", "dpop-nonce",
            "www-authenticate",
        ]
        let values = [
            "", "a", "5", "5, 5", "007", "chunked", "gzip, chunked", "close", "close, x-a, x", "upgrade",
            "100-continue", "a:80", "[::1]:8",
            " a", "a ", "a\tb", "\t", "a\r\nb: c", "a\n", "\0", "9223372036854775808", "websocket", "u@a",
            String(repeating: "v", count: 100),
        ]
        let methods = [
            "GET", "POST", "CONNECT", "OPTIONS", "get", "", "G T", "M-SEARCH", String(repeating: "M", count: 80),
        ]
        let targets = [
            "/", "/a?b", "*", "a:443", "a", "http://b/c", "https://b", "http://u@b/", "", "/ ", "/#", "/\u{E9}",
            "/" + String(repeating: "t", count: 300),
        ]
        var random = Xorshift(state: 0x9E37_79B9_7F4A_7C15)
        var indexed = 0
        for _ in 0..<6_000 {
            let fields = (0..<random.below(6)).map { _ in (random.of(names), random.of(values)) }
            let isPlain = random.below(2) == 0
            let parts =
                random.below(3) == 0
                ? Parts(
                    status: 90 + random.below(950), reason: random.of(["OK", "", "Not Found", "O\nK", "O\rK", " OK "]),
                    fields: fields)
                : Parts(
                    method: isPlain ? "GET" : random.of(methods), target: isPlain ? "/" : random.of(targets),
                    fields: random.below(2) == 0 ? fields : [("host", "a")] + fields)
            let limits = random.of([
                HeadLimits(), HeadLimits(), HeadLimits(headSize: 64), HeadLimits(fields: 3),
                HeadLimits(target: 100, method: 7),
                HeadLimits(connectionOptions: 1),
            ])
            if Self.agree(parts, limits: limits) { indexed += 1 }
        }
        #expect(indexed > 500)
    }

    @Test func manyFieldsHaveNone() {
        for count in [31, 32, 33, 40, 41] {
            let fields = [("host", "a")] + (1..<count).map { ("x-\($0)", "\($0)") }
            #expect(Self.agree(Parts(fields: fields)) == (count <= 32))
        }
    }

    /// The index of another text is not believed, and one that is left of an earlier head is of no use.
    @Test func anothersIndexIsNotBelieved() {
        let mine = Parts(fields: [("host", "a"), ("content-length", "5")])
        var index = HeadIndex()
        Parts(fields: [("host", "abc"), ("content-length", "567")]).write(&index)
        var length = index.length
        #expect(length > 0)
        let none = HeadIndex()
        let believed = Self.request(mine.text, index, limits: HeadLimits())
        let parsed = Self.request(mine.text, none, limits: HeadLimits())
        #expect(believed == parsed)
        index.clear()
        length = index.length
        #expect(length == 0)
    }
}

private struct Xorshift {
    var state: UInt64

    mutating func below(_ bound: Int) -> Int {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return Int(state % UInt64(bound))
    }

    mutating func of<Element>(_ list: [Element]) -> Element { list[below(list.count)] }
}

extension String {
    /// By a separator, without Foundation; scalars and not characters, as CR and LF are one character.
    fileprivate func components(by separator: String) -> [String] {
        let mark = Array(separator.unicodeScalars)
        var parts: [String.UnicodeScalarView] = [String.UnicodeScalarView()]
        let all = Array(unicodeScalars)
        var at = 0
        while at < all.count {
            if at + mark.count <= all.count, all[at..<at + mark.count].elementsEqual(mark) {
                parts.append(String.UnicodeScalarView())
                at += mark.count
            } else {
                parts[parts.count - 1].append(all[at])
                at += 1
            }
        }
        return parts.map(String.init)
    }
}
