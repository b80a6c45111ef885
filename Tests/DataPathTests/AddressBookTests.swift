import Reactor
import Testing

@testable import DataPath

/// Choice, ejection and recovery over a virtual clock.
@Suite struct AddressBookTests {
    private let second: UInt64 = 1_000_000_000

    private func v4(_ last: Int) -> SocketAddress { address("192.0.2.\(last)") }
    private func v6(_ last: Int) -> SocketAddress { address("2001:db8::\(last)") }

    private func address(_ literal: String) -> SocketAddress {
        guard let address = SocketAddress(host: literal, port: 80) else { preconditionFailure(literal) }
        return address
    }

    private func book(_ addresses: [SocketAddress]) -> AddressBook {
        var book = AddressBook()
        _ = book.list(addresses, endpoint: 0)
        return book
    }

    /// The addresses that connections go to when none of them ends.
    private func take(_ count: Int, from book: inout AddressBook, at now: UInt64 = 0) -> [SocketAddress] {
        (0..<count).map { _ in
            let entry = book.order(at: now)[0]
            entry.inFlight += 1
            return entry.address
        }
    }

    // MARK: - Choice

    @Test func theLeastLoadedIsChosenAndEqualsTakeTurns() {
        var book = book([v4(1), v4(2), v4(3)])
        #expect(take(6, from: &book) == [v4(1), v4(2), v4(3), v4(1), v4(2), v4(3)])
        book.addresses[1].inFlight = 0
        #expect(take(2, from: &book) == [v4(2), v4(2)])
    }

    @Test func theResolversFirstFamilyIsUsedAndTheOtherStandsBy() {
        var book = book([v6(1), v6(2), v4(1), v4(2)])
        #expect(book.order(at: 0).map(\.address) == [v6(1), v4(1), v6(2), v4(2)])
        #expect(Set(take(8, from: &book)) == [v6(1), v6(2)])
    }

    @Test func endpointsOfDifferentFamiliesAreEquals() {
        var book = AddressBook()
        _ = book.list([v6(1)], endpoint: 0)
        _ = book.list([v4(1)], endpoint: 1)
        #expect(take(4, from: &book) == [v6(1), v4(1), v6(1), v4(1)])
    }

    @Test func moreAddressesThanTheBoundAreLeftOut() {
        var book = AddressBook()
        _ = book.list((1...40).map { v4($0) }, endpoint: 0)
        _ = book.list((30...200).map { v4($0) }, endpoint: 1)
        #expect(book.addresses.count <= AddressBook.mostAddresses)
        #expect(Set(book.addresses.map(\.address)).count == book.addresses.count)
    }

    // MARK: - Names that move

    @Test func whatStaysKeepsItsStateAndWhatGoesIsNoLongerListed() {
        var book = book([v4(1), v4(2)])
        let first = book.addresses[0]
        let second = book.addresses[1]
        second.inFlight = 7
        #expect(book.list([v4(2), v4(3)], endpoint: 0).map(\.address) == [v4(1)])
        #expect(!first.isListed && second.isListed)
        #expect(book.addresses[0] === second && second.inFlight == 7)
        #expect(book.choose(at: 0)?.address == v4(3))
    }

    // MARK: - Ejection

    @Test func aFailedConnectEjectsAtOnce() {
        var book = book([v4(1), v4(2)])
        let bad = book.addresses[0]
        let wasEjected = book.failed(bad, .connect, at: 0)
        #expect(wasEjected)
        #expect(take(3, from: &book) == [v4(2), v4(2), v4(2)])
        // Still there as the last resort.
        #expect(book.order(at: 0).map(\.address) == [v4(2), v4(1)])
    }

    @Test func threeResetsInARowEject() {
        let book = book([v4(1), v4(2)])
        let bad = book.addresses[0]
        #expect(!book.failed(bad, .reset, at: 0))
        #expect(!book.failed(bad, .reset, at: 0))
        bad.answered()
        #expect(!book.failed(bad, .reset, at: 0))
        #expect(!book.failed(bad, .reset, at: 0))
        #expect(book.failed(bad, .reset, at: 0))
        #expect(bad.ejectedUntil == second)
    }

    @Test func eachEjectionWithoutAnAnswerDoublesTheTimeUpToAMinute() {
        let book = book([v4(1), v4(2)])
        let bad = book.addresses[0]
        var now: UInt64 = 0
        var pauses: [UInt64] = []
        for _ in 0..<9 {
            let wasEjected = book.failed(bad, .connect, at: now)
            #expect(wasEjected)
            pauses.append((bad.ejectedUntil - now) / second)
            now = bad.ejectedUntil
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60])
        bad.answered()
        _ = book.failed(bad, .connect, at: now)
        #expect(bad.ejectedUntil - now == second)
    }

    @Test func afterItsTimeOneConnectionTriesIt() {
        var book = book([v4(1), v4(2)])
        let bad = book.addresses[0]
        _ = book.failed(bad, .connect, at: 0)
        _ = take(4, from: &book, at: 0)
        // The idle one gets the trial, and no second one before the answer.
        #expect(take(3, from: &book, at: second) == [v4(1), v4(2), v4(2)])
        bad.answered()
        #expect(take(1, from: &book, at: second) == [v4(1)])
    }

    @Test func theLastOneIsNeverEjected() {
        let book = book([v4(1), v4(2), v4(3)])
        let results = book.addresses.map { book.failed($0, .connect, at: 0) }
        #expect(results == [true, true, false])
        #expect(book.choose(at: 0)?.address == v4(3))
        let alone = self.book([v4(1)])
        let wasEjected = alone.failed(alone.addresses[0], .connect, at: 0)
        #expect(!wasEjected)
    }

    @Test func whatActiveChecksRefuseIsAvoidedUnlessNothingElseIsLeft() {
        var book = book([v4(1), v4(2)])
        book.noteUnhealthy([v4(1)])
        #expect(take(2, from: &book) == [v4(2), v4(2)])
        book.noteUnhealthy([v4(1), v4(2)])
        #expect(book.order(at: 0).count == 2)
        book.noteUnhealthy([])
        #expect(take(1, from: &book) == [v4(1)])
    }
}

@Suite struct NameScheduleTests {
    private let second: UInt64 = 1_000_000_000

    @Test func anAnswerServesForItsLife() {
        var schedule = NameSchedule(endpoints: [0, 2])
        #expect(schedule.due(at: 5) == [0, 2])
        #expect(schedule.due(at: 6) == [])
        #expect(schedule.isAsking)
        schedule.answered(endpoint: 0, found: true, isKnown: true, at: second)
        schedule.answered(endpoint: 2, found: true, isKnown: true, at: 2 * second)
        #expect(!schedule.isAsking)
        #expect(schedule.due(at: 30 * second) == [])
        #expect(schedule.due(at: 31 * second) == [0])
        #expect(schedule.due(at: 32 * second) == [2])
    }

    @Test func literalsAreNeverAskedFor() {
        var schedule = NameSchedule(endpoints: [])
        #expect(schedule.nextDue == .max)
        #expect(schedule.due(at: .max - 1) == [])
    }

    @Test func aFailedConnectionAsksAtOnceButNotMoreThanOnceInASecond() {
        var schedule = NameSchedule(endpoints: [0])
        _ = schedule.due(at: 0)
        schedule.answered(endpoint: 0, found: true, isKnown: true, at: 0)
        schedule.suspect(endpoint: 0, at: second / 2)
        #expect(schedule.due(at: second / 2) == [])
        #expect(schedule.due(at: second) == [0])
        schedule.answered(endpoint: 0, found: true, isKnown: true, at: second)
        schedule.suspect(endpoint: 0, at: 5 * second)
        #expect(schedule.due(at: 5 * second) == [0])
    }

    @Test func aNameServerInTroubleIsAskedLessAndLess() {
        var schedule = NameSchedule(endpoints: [0])
        var now: UInt64 = 0
        var pauses: [UInt64] = []
        for _ in 0..<7 {
            #expect(schedule.due(at: now) == [0])
            schedule.answered(endpoint: 0, found: false, isKnown: true, at: now)
            // A connection that fails meanwhile changes nothing: the name server is the trouble.
            schedule.suspect(endpoint: 0, at: now)
            pauses.append((schedule.nextDue - now) / second)
            now = schedule.nextDue
        }
        #expect(pauses == [1, 2, 4, 8, 16, 30, 30])
    }

    @Test func withoutAnyAddressTheNameIsAskedForEverySecond() {
        var schedule = NameSchedule(endpoints: [0])
        for round in 0..<10 {
            #expect(schedule.due(at: UInt64(round) * second) == [0])
            schedule.answered(endpoint: 0, found: false, isKnown: false, at: UInt64(round) * second)
        }
    }

    @Test func aLostAnswerIsAskedForAgain() {
        var schedule = NameSchedule(endpoints: [0])
        _ = schedule.due(at: 0)
        #expect(schedule.due(at: 9 * second) == [])
        #expect(schedule.due(at: 10 * second) == [0])
    }
}
