import Testing

@testable import Keeping

@Suite struct SubjectBookTests {
    private static let second: UInt64 = 1_000_000_000

    @Test func newOnesComeNoFasterThanTheyMay() {
        var book = SubjectBook(.init(subjects: 10, perSecond: 10))
        var admitted = 0
        // A second's worth at once, then as time goes by; 20 ask every 50 ms for ten seconds.
        for step in 0..<200 {
            for _ in 0..<20 where book.admitNew(at: Self.second + UInt64(step) * 50_000_000) == nil { admitted += 1 }
        }
        #expect((105...110).contains(admitted))
        #expect(book.refused == 4000 - UInt64(admitted))
    }

    @Test func aLongPauseIsWorthOneSecond() {
        var book = SubjectBook(.init(subjects: 10, perSecond: 3))
        for _ in 0..<3 { #expect(book.admitNew(at: Self.second) == nil) }
        let wait = book.admitNew(at: Self.second)
        #expect(wait.map { (1...Self.second / 3 + 1).contains($0) } == true)
        for _ in 0..<3 { #expect(book.admitNew(at: 9999 * Self.second) == nil) }
        #expect(book.admitNew(at: 9999 * Self.second) != nil)
        // A clock that goes back gives nothing.
        #expect(book.admitNew(at: 1) != nil)
    }
}
