internal import Numbers
internal import Octets

/// Where a chain ends: how many records it has, and the code of the last of them. Whoever has noted a head notices when the log's end is
/// cut off.
package struct ChainHead: Sendable, Equatable, CustomStringConvertible {
    /// Records from the first one on, in whatever files.
    package var count: UInt64
    /// The code of the last record: 32 octets; zeros where there is none.
    package var code: [UInt8]

    /// A chain without a record.
    package static let none = ChainHead(count: 0, code: [UInt8](repeating: 0, count: 32))

    /// - Parameter code: 32 octets.
    package init(count: UInt64, code: [UInt8]) {
        self.count = count
        self.code = code
    }

    /// `COUNT:HASH`, as `description` writes it; nil for anything else.
    package init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == 2, let count = ReceivedNumber(decimal: parts[0])?.within(0...RecordForm.mostRecords),
            let code = Hexadecimal.decode(parts[1]), code.count == 32
        else { return nil }
        self.init(count: count, code: code)
    }

    /// `COUNT:HASH`, the hash in hexadecimal digits.
    package var description: String { "\(count):\(hash)" }

    /// The code in hexadecimal digits.
    package var hash: String { Hexadecimal.encode(code) }
}
