import Fleet
import Numbers
import Testing

@Suite struct SessionVersionTests {
    @Test(arguments: [0, 1, 1 << 20, 1 << 53] as [Int64])
    func whatIsCountedToIsAVersion(number: Int64) throws {
        let version = try #require(SessionVersion(ReceivedNumber(number)))
        #expect(version.description == String(number))
        #expect(SessionVersion(octets: version.octets) == version)
        #expect(version.next >= version && version.beyondTheUnseen >= version.next)
    }

    /// A row that a gateway kept from a server that others could write to.
    @Test(arguments: [.min, -1, 1 << 53 + 1, .max] as [Int64])
    func nothingElseIs(number: Int64) {
        #expect(SessionVersion(ReceivedNumber(number)) == nil)
        #expect(
            SessionVersion(octets: (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * Int64($0))) }) == nil)
    }

    @Test func itStopsAtItsEnd() throws {
        let last = try #require(SessionVersion(ReceivedNumber(1 << 53)))
        #expect(last.next == last && last.beyondTheUnseen == last)
        #expect(SessionVersion.none < .none.next && SessionVersion.none.next < .none.beyondTheUnseen)
    }

    @Test(arguments: [0, 7, 9]) func otherLengthsAreNone(count: Int) {
        #expect(SessionVersion(octets: [UInt8](repeating: 0, count: count)) == nil)
    }
}
