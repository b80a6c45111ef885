@testable import Handshakes

/// An input as the course of a flight: whose it is, what is wanted, and what it is answered.
///
/// The first octet is the place of the identity in `Cast`, the second says what is wanted, and what stands already. Behind each mark
/// (0xF5, which no UTF-8 has) comes one answer: its status by an octet, field lines up to an empty one, a body. `q` in place of the status:
/// what the browser comes back with.
struct Course {
    var place = 0
    var errand = Errand.acquire
    var hasSession = false
    var hasRefreshToken = false
    /// The errand is run twice.
    var isRepeated = false
    var answers: [Answer] = []
    var queries: [String] = []

    enum Errand: UInt8 { case acquire, inquire, tryOut, revoke, login, preview, credential, challenge }

    enum Answer {
        case answer(Int, [(name: String, value: String)], [UInt8])
        case fault(IssuerFault.Kind)
    }

    static let mark: UInt8 = 0xF5
    private static let statuses = [200, 201, 202, 204, 222, 302, 400, 401, 403, 404, 409, 410, 412, 429, 500, 503]

    init?(_ input: UnsafeBufferPointer<UInt8>) {
        guard input.count >= 3 else { return nil }
        place = Int(input[0])
        errand = Errand(rawValue: input[1] & 7) ?? .acquire
        hasSession = input[1] & 8 != 0
        hasRefreshToken = input[1] & 16 != 0
        isRepeated = input[1] & 32 != 0
        for part in input[2...].split(separator: Self.mark, maxSplits: 24, omittingEmptySubsequences: true) {
            guard let first = part.first else { continue }
            let rest = part.dropFirst()
            switch first {
            case UInt8(ascii: "q"): queries.append(String(decoding: rest, as: UTF8.self))
            case 0xFF: answers.append(.fault(.timedOut))
            case 0xFE: answers.append(.fault(.closed))
            case 0xFD: answers.append(.fault(.refused))
            default: answers.append(Self.answer(Self.statuses[Int(first) % Self.statuses.count], Array(rest)))
            }
        }
    }

    private static func answer(_ status: Int, _ text: [UInt8]) -> Answer {
        var fields: [(name: String, value: String)] = []
        var rest = text[...]
        while let end = rest.firstIndex(of: 0x0A) {
            let line = rest[..<end]
            rest = rest[(end + 1)...]
            guard let colon = line.firstIndex(of: 0x3A) else { break }
            // The parser of heads leaves none of these octets.
            let value = line[(colon + 1)...].drop { $0 == 0x20 }.filter { $0 != 0x0D && $0 != 0 }
            fields.append((String(decoding: line[..<colon], as: UTF8.self), String(decoding: value, as: UTF8.self)))
        }
        return .answer(status, fields, Array(rest))
    }
}
