import HTTP2
import Testing

@testable import DataPath

/// How callers of HTTP/2 share what a loop has.
@Suite struct BlockShareTests {
    private let pool = Endless()
    private let budget = BlockBudget(pool: 1280)

    private func share() -> BlockShare { BlockShare(of: budget, from: pool) }

    private func fill(_ share: BlockShare) -> [UnsafeMutableRawBufferPointer] {
        var blocks: [UnsafeMutableRawBufferPointer] = []
        while let block = share.take() { blocks.append(block) }
        return blocks
    }

    @Test func aLoneCallerGetsTheWholeBudget() {
        let one = share()
        let blocks = fill(one)
        #expect(blocks.count == 640 && one.isShort)
        for block in blocks { one.give(block) }
        #expect(!one.isShort && budget.held == 0 && budget.holders == 0)
    }

    /// Whoever comes late finds a floor, and an equal share when those before give something back.
    @Test func lateOnesFindAFloor() throws {
        let greedy = share()
        var blocks = fill(greedy)
        let late = share()
        #expect(fill(late).count == budget.floor && budget.floor == 10)
        #expect(budget.held == 650)
        while blocks.count > 320, let block = blocks.popLast() { greedy.give(block) }
        // Above an equal share there is nothing more for it.
        #expect(greedy.isShort)
        #expect(fill(late).count == 640 - 320 - 10)
        #expect(late.held == 320)
    }

    @Test func dozensLeaveTheOtherHalf() {
        let crowd = (0..<48).map { _ in share() }
        for one in crowd { _ = fill(one) }
        #expect(budget.held <= budget.limit + 48 * budget.floor)
        #expect(crowd.allSatisfy { $0.held >= budget.floor })
    }

    @Test func requestsCountBeforeTheirBodies() {
        let one = share()
        var streams = 0
        while one.beginStream() { streams += 1 }
        #expect(streams == 640 / BlockShare.perStream)
        for _ in 0..<streams { one.endStream() }
        #expect(budget.held == 0 && budget.holders == 0)
    }

    private final class Endless: BlockSource {
        func take() -> UnsafeMutableRawBufferPointer? { .init(start: nil, count: 0) }
        func give(_ block: UnsafeMutableRawBufferPointer) {}
    }
}
