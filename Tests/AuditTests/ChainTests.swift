import Audit
import Octets
import ScriptedWorld
import Testing
import World

/// Whatever is done to a log but to its end is found; its end, by a head.
@Suite struct ChainTests {
    @Test func whatWasWrittenIsFound() {
        let chain = Chains.lines(groups: [3, 1, 4])
        #expect(Chains.fault(of: chain.lines.flatMap(\.self), noted: [chain.head, .none]) == nil)
        #expect(Chains.fault(of: chain.lines.flatMap(\.self), withKey: false) == nil)
        #expect(Chains.fault(of: []) == nil)
    }

    @Test func aRecordIsOneLineOfJSON() throws {
        let line = String(decoding: Chains.lines(groups: [1]).lines[0], as: UTF8.self)
        #expect(
            line.hasPrefix(
                #"{"number":1,"group":1,"after":"\#(String(repeating: "0", count: 64))","time":"2023-11-14T22:13:20.000Z","act":"start","identity":"id \"0\"\n","origin":"https://a.example:8443","count":0,"result":"good","group_end":true,"mac":""#
            ))
        #expect(line.hasSuffix("\"}\n"))
    }

    @Test func everyChangedOctetIsFound() {
        let chain = Chains.lines(groups: [1, 2], files: [0, 1])
        let text = chain.lines.flatMap(\.self)
        for position in text.indices {
            for change: UInt8 in [0x01, 0x20, 0x80] {
                var changed = text
                changed[position] ^= change
                #expect(Chains.fault(of: changed) != nil, "octet \(position) with \(change)")
            }
        }
    }

    @Test func everyRemovalIsFound() {
        let chain = Chains.lines(groups: [1, 2, 3, 1, 2], files: [0, 3])
        for first in chain.lines.indices {
            for end in chain.lines.indices where end >= first {
                var left = chain.lines
                left.removeSubrange(first...end)
                // What is left behind a file that is gone as a whole begins a file, and says so by its number.
                let isWholeFile = first == 0 && end == 5
                // Whole groups at the end.
                let isEnd = end == chain.lines.count - 1 && [0, 1, 3, 6, 7].contains(first)
                let withHead = Chains.fault(of: left.flatMap(\.self), noted: [chain.head])
                #expect((withHead == nil) == isWholeFile, "\(first)...\(end)")
                #expect((Chains.fault(of: left.flatMap(\.self)) == nil) == (isWholeFile || isEnd), "\(first)...\(end)")
            }
        }
    }

    @Test func everySwapAndEveryRepetitionIsFound() {
        let chain = Chains.lines(groups: [2, 1, 2, 2], files: [0, 2])
        for one in chain.lines.indices {
            for other in chain.lines.indices where other > one {
                var swapped = chain.lines
                swapped.swapAt(one, other)
                #expect(Chains.fault(of: swapped.flatMap(\.self)) != nil, "\(one) and \(other)")
            }
            for place in 0...chain.lines.count {
                var repeated = chain.lines
                repeated.insert(chain.lines[one], at: place)
                #expect(Chains.fault(of: repeated.flatMap(\.self)) != nil, "\(one) at \(place)")
            }
        }
    }

    @Test func everyCutWithinAGroupIsFoundAndBetweenTwoByAHead() {
        let chain = Chains.lines(groups: [2, 2])
        let text = chain.lines.flatMap(\.self)
        let ends: Set<Int> = [0, chain.lines[0].count + chain.lines[1].count]
        for count in 0..<text.count {
            let left = Array(text.prefix(count))
            #expect((Chains.fault(of: left) == nil) == ends.contains(count))
            #expect(Chains.fault(of: left, noted: [chain.head]) != nil)
        }
    }

    @Test func aChainOfAnotherKeyIsNone() {
        let text = Chains.lines(groups: [2]).lines.flatMap(\.self)
        var verifier = ChainVerifier(key: ChainKey(wiping: Array(1...32)))
        #expect(throws: ChainFault.changed(1)) { try Chains.verify(text, with: &verifier) }
    }

    /// Whoever takes the key of a group can go on, and cannot have written an earlier group.
    @Test func theKeyOfTodayMakesNoRecordOfYesterday() throws {
        let chain = Chains.lines(groups: [2, 2, 2])
        var stolen = try #require(Chains.key())
        for _ in 0..<3 { stolen = stolen.next() }
        var forger = ChainWriter(key: stolen, group: 2, head: try #require(Self.head(of: chain.lines[1])))
        var forged: [UInt8] = []
        forger.append(Chains.record(2), to: &forged, beginsFile: false, endsGroup: true)
        #expect(Chains.fault(of: chain.lines[0] + chain.lines[1] + forged) == .changed(3))
    }

    /// Nor can he leave out what the last group before ends with, although no key of his was used for it.
    @Test func theKeyOfTodayCutsNothingOffYesterday() throws {
        let chain = Chains.lines(groups: [1, 3])
        let stolen = try #require(Chains.key()).next().next().next()
        for left in 1...3 {
            let kept = chain.lines[...left]
            var forger = ChainWriter(key: stolen, group: 3, head: try #require(Self.head(of: chain.lines[left])))
            var forged: [UInt8] = []
            forger.append(Chains.record(left + 1), to: &forged, beginsFile: false, endsGroup: true)
            let expected: ChainFault? = left == 3 ? nil : .openGroup(2, after: UInt64(left + 1))
            #expect(Chains.fault(of: kept.flatMap(\.self) + forged) == expected, "\(left)")
            #expect(Chains.fault(of: Array(kept.joined())) == expected, "\(left)")
        }
    }

    /// What stands behind the end of a group is of the next one.
    @Test func aGroupEndsOnce() throws {
        var writer = ChainWriter(key: try #require(Chains.key()).next(), group: 1, head: .none)
        var text: [UInt8] = []
        for number in 0..<2 {
            writer.append(Chains.record(number), to: &text, beginsFile: number == 0, endsGroup: true)
        }
        #expect(Chains.fault(of: text) == .group(1, of: 2, expected: 2))
    }

    @Test func aHeadOfAnEarlierTimeHolds() throws {
        let chain = Chains.lines(groups: [2, 2, 2], files: [0, 1])
        let text = chain.lines.flatMap(\.self)
        for (index, line) in chain.lines.enumerated() {
            let head = try #require(Self.head(of: line))
            #expect(Chains.fault(of: text, noted: [head]) == nil)
            let other = ChainHead(count: UInt64(index + 1), code: chain.head.code)
            #expect((Chains.fault(of: text, noted: [other]) == nil) == (index == 5))
        }
        let rest = chain.lines[2...].flatMap(\.self)
        #expect(Chains.fault(of: rest, noted: [chain.head]) == nil)
        #expect(
            Chains.fault(of: rest, noted: [try #require(Self.head(of: chain.lines[0]))]) == .headBefore(1, first: 3))
    }

    @Test func aHeadIsReadAsItIsWritten() {
        let head = ChainHead(count: 12, code: Array(0..<32))
        #expect(ChainHead(head.description) == head)
        for text in [
            "", "12", "12:", ":00", "12:\(head.hash)0", "-1:\(head.hash)", "12:\(head.hash):", "x:\(head.hash)",
        ] {
            #expect(ChainHead(text) == nil, "\(text)")
        }
    }

    @Test func hostileNumbersDoNotTrap() {
        let zeros = String(repeating: "0", count: 64)
        let numbers = ["0", "-1", "9223372036854775807", "9223372036854775808", "99999999999999999999999", "", "1e3"]
        for number in numbers {
            for group in numbers + ["1"] {
                for after in ["", ",\"after\":\"\(zeros)\"", ",\"after\":\"\(zeros.dropLast())g\""] {
                    let line = "{\"number\":\(number),\"group\":\(group)\(after),\"act\":\"x\",\"mac\":\"\(zeros)\"}\n"
                    #expect(Chains.fault(of: Array(line.utf8)) != nil)
                }
            }
        }
    }

    @Test(arguments: 1...8) func aStreamMayComeInPiecesOfAnySize(seed: UInt64) throws {
        let random = SeededRandom(seed: seed)
        let text = Chains.lines(groups: [5, 3]).lines.flatMap(\.self)
        var verifier = ChainVerifier(key: Chains.key())
        var cutter = LineCutter()
        var rest = text[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(1 + Int(random.number(below: 200))))
            rest = rest.dropFirst(piece.count)
            try piece.withUnsafeBytes { piece in
                try cutter.take(piece) { (line) throws(ChainFault) in try verifier.take(line) }
            }
        }
        try cutter.finish()
        #expect(verifier.head.count == 8)
        #expect(cutter.line == 8)
    }

    static func head(of line: [UInt8]) -> ChainHead? {
        let text = String(decoding: line, as: UTF8.self)
        let number = text.dropFirst(10).prefix { $0.isNumber }
        return ChainHead("\(number):\(text.dropLast(3).suffix(64))")
    }
}
