import Audit
import Octets
import Testing

/// A long log is followed in one pass, and one changed octet in its middle is found. Tests/Release does it with a million records.
@Suite struct LongLogTests {
    @Test func oneChangeAmongManyRecordsIsFound() throws {
        let key = try #require(Chains.key())
        var writer = ChainWriter(key: key.next(), group: 1, head: .none)
        let count = 20_000
        let record = AuditRecord(time: 1, act: .use, fields: [AuditField(.identity, .name("a"))])
        var text: [UInt8] = []
        text.reserveCapacity(count * 200)
        var middle = 0
        for number in 0..<count {
            if number == count / 2 { middle = text.count }
            let isLast = number % 100 == 99
            writer.append(record, to: &text, beginsFile: number == 0, endsGroup: isLast)
            if isLast { writer.endGroup() }
        }
        #expect(Chains.fault(of: text, noted: [writer.head]) == nil)
        text[middle + 60] ^= 1
        #expect(Chains.fault(of: text) == .changed(10_001))
    }
}
