/// gzip (RFC 1952, RFC 1951), read and written without a library, so that no fault of the gateway's can hide in a shared one.
enum Gzip {
    private static let largest = 1 << 20

    /// Stored blocks only: nobody measures the lab by its sizes.
    static func store(_ bytes: [UInt8]) -> [UInt8] {
        var output: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]
        var rest = bytes[...]
        repeat {
            let block = rest.prefix(65_535)
            rest = rest.dropFirst(block.count)
            output.append(rest.isEmpty ? 1 : 0)
            for number in [UInt16(block.count), ~UInt16(block.count)] {
                output += [UInt8(truncatingIfNeeded: number), UInt8(number >> 8)]
            }
            output += block
        } while !rest.isEmpty
        for number in [checksum(bytes), UInt32(bytes.count)] {
            output += (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * UInt32($0))) }
        }
        return output
    }

    /// Nil for anything that is not one whole gzip member without extra fields.
    static func expand(_ bytes: [UInt8]) -> [UInt8]? {
        guard bytes.count >= 18, bytes[..<4].elementsEqual([0x1F, 0x8B, 8, 0]) else { return nil }
        var reader = Bits(bytes: bytes[10..<(bytes.count - 8)])
        guard let output = reader.inflate(limit: largest), reader.isAtEnd else { return nil }
        func number(at index: Int) -> UInt32 {
            (0..<4).reduce(0) { $0 | UInt32(bytes[index + $1]) << (8 * UInt32($1)) }
        }
        guard number(at: bytes.count - 8) == checksum(output), number(at: bytes.count - 4) == UInt32(output.count)
        else {
            return nil
        }
        return output
    }

    private static func checksum(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(~UInt32(0)) { sum, byte in
            (0..<8).reduce(sum ^ UInt32(byte)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
        }
    }
}

/// Codes of one alphabet (RFC 1951 §3.2.2): by length, how many there are, and their symbols in order.
private struct Codes {
    private var counts = [Int](repeating: 0, count: 16)
    private var symbols: [Int] = []

    init(lengths: [Int]) {
        for length in 1...15 {
            let ours = lengths.indices.filter { lengths[$0] == length }
            counts[length] = ours.count
            symbols += ours
        }
    }

    func next(_ bits: inout Bits) -> Int? {
        var code = 0
        var first = 0
        var index = 0
        for length in 1...15 {
            guard let bit = bits.take(1) else { return nil }
            code |= bit
            if code - first < counts[length] { return symbols[index + code - first] }
            index += counts[length]
            first = (first + counts[length]) << 1
            code <<= 1
        }
        return nil
    }
}

private struct Bits {
    let bytes: ArraySlice<UInt8>
    private var position = 0

    init(bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    var isAtEnd: Bool { (position + 7) / 8 == bytes.count }

    mutating func take(_ count: Int) -> Int? {
        guard position + count <= 8 * bytes.count else { return nil }
        var value = 0
        for index in 0..<count {
            let byte = bytes[bytes.startIndex + (position + index) / 8]
            value |= Int(byte >> UInt8((position + index) % 8) & 1) << index
        }
        position += count
        return value
    }

    mutating func inflate(limit: Int) -> [UInt8]? {
        var output: [UInt8] = []
        while let isLast = take(1), let kind = take(2) {
            let isRead =
                switch kind {
                case 0: stored(&output, limit)
                case 1:
                    compressed(&output, limit, Codes(lengths: Self.fixedLengths), Codes(lengths: Self.fixedDistances))
                case 2: dynamic(&output, limit)
                default: false
                }
            guard isRead else { return nil }
            if isLast == 1 { return output }
        }
        return nil
    }

    private mutating func stored(_ output: inout [UInt8], _ limit: Int) -> Bool {
        position = (position + 7) / 8 * 8
        guard let count = take(16), let complement = take(16), count == ~complement & 0xFFFF,
            output.count + count <= limit, position / 8 + count <= bytes.count
        else { return false }
        let start = bytes.startIndex + position / 8
        output += bytes[start..<(start + count)]
        position += 8 * count
        return true
    }

    private mutating func dynamic(_ output: inout [UInt8], _ limit: Int) -> Bool {
        guard let literals = take(5), let distances = take(5), let count = take(4) else { return false }
        var first = [Int](repeating: 0, count: 19)
        for index in 0..<(count + 4) {
            guard let length = take(3) else { return false }
            first[[16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15][index]] = length
        }
        let codes = Codes(lengths: first)
        var lengths: [Int] = []
        while lengths.count < literals + 257 + distances + 1 {
            guard let symbol = codes.next(&self) else { return false }
            switch symbol {
            case 16:
                guard let last = lengths.last, let more = take(2) else { return false }
                lengths += [Int](repeating: last, count: more + 3)
            case 17, 18:
                guard let more = take(symbol == 17 ? 3 : 7) else { return false }
                lengths += [Int](repeating: 0, count: more + (symbol == 17 ? 3 : 11))
            default: lengths.append(symbol)
            }
        }
        guard lengths.count == literals + 257 + distances + 1 else { return false }
        let border = literals + 257
        return compressed(
            &output, limit, Codes(lengths: Array(lengths[..<border])), Codes(lengths: Array(lengths[border...])))
    }

    private mutating func compressed(_ output: inout [UInt8], _ limit: Int, _ literals: Codes, _ distances: Codes)
        -> Bool
    {
        while let symbol = literals.next(&self), output.count < limit {
            if symbol < 256 {
                output.append(UInt8(symbol))
                continue
            }
            if symbol == 256 { return true }
            guard symbol <= 285, let extra = take(Self.lengthBits[symbol - 257]), let code = distances.next(&self),
                code < 30, let more = take(code < 4 ? 0 : code / 2 - 1)
            else { return false }
            let distance = (code < 4 ? code + 1 : (2 + code % 2) << (code / 2 - 1) + 1) + more
            guard distance <= output.count else { return false }
            for _ in 0..<(Self.lengthBases[symbol - 257] + extra) { output.append(output[output.count - distance]) }
        }
        return false
    }

    private static let lengthBits = [
        0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
    ]
    private static let lengthBases = [
        3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227,
        258,
    ]
    private static let fixedLengths = (0..<288).map { $0 < 144 ? 8 : $0 < 256 ? 9 : $0 < 280 ? 7 : 8 }
    private static let fixedDistances = [Int](repeating: 5, count: 30)
}
