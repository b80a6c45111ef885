import Testing

@testable import HTTP1

/// The index of a head is believed where it is right and within every bound, and else changes nothing.
@Suite struct TakenIndexTests {
    typealias Parts = HeadIndexTests.Parts

    static let mine = Parts(fields: [("host", "a"), ("bb", "c"), ("x-empty", "")])
    static let answer = Parts(status: 200, fields: [("date", "d"), ("server", "s")])

    /// The state of a section that was offered an index.
    struct Outcome: Equatable {
        var isTaken = false
        var fields: [Field] = []
        var seen: UInt64 = 0
        var position = 0
        var scanned = 0
    }

    static func outcome(
        _ parts: Parts, of bytes: [UInt8], form: HeadIndex.Form = .request, limits: HeadLimits = HeadLimits(),
        capacity: Int = 8, isEnded: Bool = true
    ) -> Outcome {
        var index = HeadIndex()
        parts.write(&index, isEnded: isEnded)
        var section = FieldSection(capacity: capacity)
        var outcome = Outcome()
        outcome.isTaken = section.take(index, form, of: bytes.span, limits)
        outcome.fields = (0..<section.table.count).map { section.table[$0] }
        (outcome.seen, outcome.position, outcome.scanned) = (section.seen, section.position, section.scanned)
        return outcome
    }

    @Test(arguments: [mine, answer, Parts(fields: []), Parts(status: 999, reason: "", fields: [])])
    func aRightIndexIsTaken(parts: Parts) throws {
        let bytes = parts.text + octets("a: body\r\n\r\n")
        var parsed = FieldSection(capacity: 8)
        _ = try parsed.nextLine(bytes.span, limit: bytes.count)
        #expect(try parsed.index(bytes.span, limits: HeadLimits(), tolerance: .strict))
        let outcome = Self.outcome(parts, of: bytes, form: parts.status > 0 ? .response : .request)
        #expect(outcome.isTaken)
        #expect(outcome.fields == (0..<parsed.table.count).map { parsed.table[$0] })
        let (seen, position, scanned) = (parsed.seen, parsed.position, parsed.scanned)
        #expect((outcome.seen, outcome.position, outcome.scanned) == (seen, position, scanned))
        #expect(position == parts.text.count)
    }

    /// A head of exactly the size and of exactly the number of lines that are allowed is within the bound.
    @Test func anIndexIsTakenUpToEveryBound() {
        let bytes = Self.mine.text
        for (limits, capacity, isTaken) in [
            (HeadLimits(headSize: bytes.count), 3, true), (HeadLimits(headSize: bytes.count - 1), 3, false),
            (HeadLimits(fields: 3), 3, true), (HeadLimits(fields: 2), 3, false), (HeadLimits(), 2, false),
        ] {
            let outcome = Self.outcome(Self.mine, of: bytes, limits: limits, capacity: capacity)
            #expect(outcome.isTaken == isTaken)
            if !isTaken { #expect(outcome == Outcome()) }
        }
        #expect(!Self.outcome(Self.mine, of: Array(bytes.dropLast())).isTaken)
    }

    @Test func anIndexWithoutAnEndOrOfTheOtherKindIsNone() {
        #expect(Self.outcome(Self.mine, of: Self.mine.text, form: .response) == Outcome())
        #expect(Self.outcome(Self.answer, of: Self.answer.text, form: .request) == Outcome())
        #expect(Self.outcome(Self.mine, of: Self.mine.text, isEnded: false) == Outcome())
    }

    /// Texts that are as long as the head of the index is, and have a line's end, a colon or a blank at another place.
    @Test(arguments: [
        "GET / HTTP/1.1\r\nhost: ab\r\nb: c\r\nx-empty: \r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nb: cc\r\nx-empty: \r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nbb: c\r\nx-emptyy:\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nbb:cc\r\nx-empty: \r\n\r\n",
        "GET / HTTP/1.1\r\nhost:aaa\nbb: c\r\nx-empty: \r\n\r\n",
        "GET / HTTP/1.1\nhostt: a\r\nbb: c\r\nx-empty: \r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nbb: c\r\nx-empty: \r\nab",
        "GET / HTTP/1.1\r\nhost: a\r\nbb: c\r\nx-empty: ab\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nbb; c\r\nx-empty: \r\n\r\n",
    ])
    func theIndexOfAnotherTextChangesNothing(text: String) {
        #expect(text.utf8.count == Self.mine.text.count)
        #expect(Self.outcome(Self.mine, of: octets(text)) == Outcome())
    }

    @Test func aSectionThatHasBegunTakesNone() throws {
        var index = HeadIndex()
        Self.mine.write(&index)
        var section = FieldSection(capacity: 8)
        let bytes = Self.mine.text
        _ = try section.nextLine(bytes.span, limit: bytes.count)
        let position = section.position
        let isTaken = section.take(index, .request, of: bytes.span, HeadLimits())
        let (after, count) = (section.position, section.table.count)
        #expect(!isTaken && after == position && count == 0)
    }

    /// The version is that of the text, whatever the index is of.
    @Test(
        arguments: [
            ("HTTP/1.1", UInt8(1), nil), ("HTTP/1.0", 0, nil), ("HTTP/1.9", 1, nil),
            ("HTTP/2.0", 1, .versionUnsupported),
            ("HTTX/1.1", 1, .versionMalformed),
        ] as [(String, UInt8, HeadFault?)])
    func theVersionIsReadFromTheText(version: String, minorVersion: UInt8, fault: HeadFault?) {
        let request = octets("GET / \(version)\r\nhost: a\r\nbb: c\r\nx-empty: \r\n\r\n")
        let answer = octets("\(version) 200 OK\r\ndate: d\r\nserver: s\r\n\r\n")
        var index = HeadIndex()
        var asked = RequestHead(maxFields: 8)
        var answered = ResponseHead(maxFields: 8)
        var faults: [HeadFault?] = [nil, nil]
        Self.mine.write(&index)
        do { _ = try asked.parse(request.span, index: index, limits: HeadLimits()) } catch { faults[0] = error }
        Self.answer.write(&index)
        do { _ = try answered.parse(answer.span, index: index, limits: HeadLimits()) } catch { faults[1] = error }
        #expect(faults == [fault, fault])
        #expect(asked.minorVersion == minorVersion && answered.minorVersion == minorVersion)
    }

    /// A loop has one index, which every head of it is written to in turn.
    @Test func anIndexIsUsedAgain() {
        var index = HeadIndex()
        for parts in [
            Self.mine, Self.answer, Parts(status: 204, fields: []), Parts(method: "", fields: []), Self.mine,
            Parts(status: 99, fields: [("date", "d")]), Parts(fields: [("host", "b"), ("x y", "")]), Self.answer,
        ] {
            var fresh = HeadIndex()
            parts.write(&fresh)
            parts.write(&index)
            let (isKnown, count, seen, length) = (index.isKnown, index.count, index.seen, index.length)
            let (isFreshKnown, freshCount, freshSeen) = (fresh.isKnown, fresh.count, fresh.seen)
            #expect((isKnown, count, seen) == (isFreshKnown, freshCount, freshSeen), "\(parts)")
            #expect(length == (isKnown ? parts.text.count : 0))
        }
        index.clear()
        let isKnown = index.isKnown
        index.end()
        let (isKnownWithoutABeginning, count, seen) = (index.isKnown, index.count, index.seen)
        #expect(!isKnown && !isKnownWithoutABeginning && count == 0 && seen == 0)
    }

    /// Sums of a head's parts cannot overflow, as no head of 16 MiB has an index.
    @Test(arguments: [(-1, true), (0, false)])
    func theLongestHeadWithAnIndex(more: Int, isKnown: Bool) {
        let longest = 1 << 24
        var index = HeadIndex()
        index.begin(status: 200, reason: octets("OK").span)
        // The empty line at the end is not counted.
        let before = "HTTP/1.1 200 OK\r\nx: \r\n".utf8.count
        let value = [UInt8](repeating: UInt8(ascii: "v"), count: longest - before + more)
        index.add(name: octets("x").span, known: .other, value: value.span)
        index.end()
        let (isOne, length) = (index.isKnown, index.length)
        #expect(isOne == isKnown && length == (isKnown ? longest + 1 : 0))
        let target = [UInt8](repeating: UInt8(ascii: "/"), count: longest - 3 + more)
        let isBegun = index.begin(method: octets("GET").span, target: target.span)
        #expect(isBegun == isKnown)
    }
}
