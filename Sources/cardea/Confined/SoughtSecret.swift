import Octets

/// A secret that is sought in the values of other variables: as it is, and behind escapes of URLs and JSON, any of its octets in any of them.
struct SoughtSecret {
    /// The secret's octets; a line end is no part of it.
    let octets: [UInt8]

    /// A shorter secret stands in other values by chance. A value that is one as a whole is found at any length.
    private static let shortest = 6

    init(_ value: [UInt8]) {
        var octets = value
        if octets.last == 0x0A {
            octets.removeLast()
            if octets.last == 0x0D { octets.removeLast() }
        }
        self.octets = octets
    }

    func stands(in value: [UInt8]) -> Bool { replaced(in: value, by: []) != nil }

    /// - Returns: nil where it does not stand in the value.
    func replaced(in value: [UInt8], by text: [UInt8]) -> [UInt8]? {
        guard !octets.isEmpty else { return nil }
        guard octets.count >= Self.shortest else {
            let end = end(in: value, from: 0)
            return end.map { value[$0...].allSatisfy(Self.isLineEnd) } == true ? text + value[end!...] : nil
        }
        var result: [UInt8] = []
        var cursor = 0
        var isFound = false
        while cursor < value.count {
            if let end = end(in: value, from: cursor) {
                isFound = true
                result += text
                cursor = end
            } else {
                result.append(value[cursor])
                cursor += 1
            }
        }
        return isFound ? result : nil
    }

    private static func isLineEnd(_ octet: UInt8) -> Bool { octet == 0x0A || octet == 0x0D }

    /// The place behind the secret that begins at `start`; nil where none does. The secret's own octets are
    /// tried first: they may look like an escape.
    private func end(in value: [UInt8], from start: Int) -> Int? {
        if value[start...].starts(with: octets) { return start + octets.count }
        var cursor = start
        for octet in octets {
            guard let width = Self.width(of: octet, in: value, at: cursor) else { return nil }
            cursor += width
        }
        return cursor
    }

    /// How many octets of the value spell `octet` there.
    private static func width(of octet: UInt8, in value: [UInt8], at place: Int) -> Int? {
        guard place < value.count else { return nil }
        let first = value[place]
        func areDigits(_ range: Range<Int>) -> Bool {
            guard range.upperBound <= value.count, let octets = Hexadecimal.decode(value[range]) else { return false }
            return octets.last == octet && octets.dropLast().allSatisfy { $0 == 0 }
        }
        switch first {
        case UInt8(ascii: "%") where areDigits(place + 1..<place + 3): return 3
        case UInt8(ascii: "\\") where place + 1 < value.count:
            if value[place + 1] == UInt8(ascii: "u"), areDigits(place + 2..<place + 6) { return 6 }
            let short: [UInt8: UInt8] = [0x08: 0x62, 0x09: 0x74, 0x0A: 0x6E, 0x0C: 0x66, 0x0D: 0x72]
            if value[place + 1] == short[octet] { return 2 }
            if value[place + 1] == octet, [0x22, 0x2F, 0x5C].contains(octet) { return 2 }
        case UInt8(ascii: "+") where octet == 0x20: return 1
        default: break
        }
        return first == octet ? 1 : nil
    }
}
