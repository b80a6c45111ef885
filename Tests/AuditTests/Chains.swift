import Audit
import Octets

/// Chains for tests, of records that differ.
enum Chains {
    static let secret = [UInt8](repeating: 7, count: 31) + [9]

    static func key() -> ChainKey? { ChainKey(wiping: secret) }

    static func record(_ number: Int) -> AuditRecord {
        AuditRecord(
            time: 1_700_000_000_000_000_000 + UInt64(number) * 1_000_000, act: AuditAct.allCases[number % 13],
            fields: [
                AuditField(.identity, .name("id \"\(number % 7)\"\n")),
                AuditField(.origin, .name("https://a.example:8443")),
                AuditField(.count, .count(UInt64(number))), AuditField(.result, .word("good")),
            ])
    }

    /// Lines of a chain, each with its end.
    /// - Parameters:
    ///   - sizes: how many records the groups have.
    ///   - files: at which groups, from 0, a new file begins.
    static func lines(groups sizes: [Int], files: Set<Int> = [0]) -> (lines: [[UInt8]], head: ChainHead) {
        guard let key = Self.key() else { return ([], .none) }
        var writer = ChainWriter(key: key.next(), group: 1, head: .none)
        var lines: [[UInt8]] = []
        for (group, size) in sizes.enumerated() {
            for index in 0..<size {
                var line: [UInt8] = []
                writer.append(
                    record(lines.count), to: &line, beginsFile: index == 0 && files.contains(group),
                    endsGroup: index == size - 1)
                lines.append(line)
            }
            writer.endGroup()
        }
        return (lines, writer.head)
    }

    /// What a verification of the text finds; nil: nothing.
    static func fault(of text: [UInt8], noted: [ChainHead] = [], withKey: Bool = true) -> ChainFault? {
        var verifier = ChainVerifier(key: withKey ? key() : nil, noted: noted)
        do throws(ChainFault) {
            try verify(text, with: &verifier)
            try verifier.finish()
            return nil
        } catch { return error }
    }

    static func verify(_ text: [UInt8], with verifier: inout ChainVerifier) throws(ChainFault) {
        var fault: ChainFault?
        text.withUnsafeBytes { text in
            var cutter = LineCutter()
            do throws(ChainFault) {
                try cutter.take(text) { (line) throws(ChainFault) in try verifier.take(line) }
                try cutter.finish()
            } catch { fault = error }
        }
        if let fault { throw fault }
    }
}
