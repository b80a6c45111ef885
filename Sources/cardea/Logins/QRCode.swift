/// A QR code (ISO/IEC 18004) of a text in byte mode at level L, versions 1–20: up to 858 octets, more than any address that a camera is
/// to read from a terminal. Written here because the only library that Debian has for it would be loaded for this one picture.
struct QRCode {
    /// Modules of one side.
    let size: Int
    private var dark: [Bool]
    /// Belongs to a pattern that is no data.
    private var isFixed: [Bool]

    /// Error correction codewords of a block, and blocks, by version; level L.
    private static let correction = [7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28]
    private static let blocks = [1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8]

    /// Nil for a text that is too long.
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        let fitting = (1...Self.blocks.count).first { version in
            bytes.count + (version < 10 ? 2 : 3) <= Self.dataCount(version)
        }
        guard let version = fitting else { return nil }
        size = 17 + 4 * version
        dark = Array(repeating: false, count: size * size)
        isFixed = dark
        drawPatterns(version)
        place(Self.codewords(bytes, version))
        let unmasked = dark
        var best: (penalty: Int, dark: [Bool])?
        for mask in 0..<8 {
            dark = unmasked
            apply(mask)
            drawFormat(mask)
            let penalty = self.penalty
            if best.map({ penalty < $0.penalty }) ?? true { best = (penalty, dark) }
        }
        if let best { dark = best.dark }
    }

    subscript(x: Int, y: Int) -> Bool { dark[y * size + x] }
}

// MARK: - Drawing for a terminal

extension QRCode {
    /// Two rows of modules a line, with the light border of four modules that the standard asks for: on a dark ground readers do need it.
    /// - Parameter inverted: light modules are drawn and dark ones left out, for terminals whose ground is dark.
    func lines(inverted: Bool) -> [String] {
        let border = 4
        func isDrawn(_ x: Int, _ y: Int) -> Bool {
            let inside = (0..<size).contains(x) && (0..<size).contains(y)
            return (inside && self[x, y]) != inverted
        }
        return stride(from: -border, to: size + border, by: 2).map { y in
            String(
                (-border..<size + border).map { x -> Character in
                    switch (isDrawn(x, y), isDrawn(x, y + 1)) {
                    case (true, true): "█"
                    case (true, false): "▀"
                    case (false, true): "▄"
                    case (false, false): " "
                    }
                })
        }
    }
}

// MARK: - Codewords

extension QRCode {
    private static func codewordCount(_ version: Int) -> Int {
        var modules = (16 * version + 128) * version + 64
        if version >= 2 {
            let marks = version / 7 + 2
            modules -= (25 * marks - 10) * marks - 55
            if version >= 7 { modules -= 36 }
        }
        return modules / 8
    }

    private static func dataCount(_ version: Int) -> Int {
        codewordCount(version) - correction[version - 1] * blocks[version - 1]
    }

    private static func codewords(_ bytes: [UInt8], _ version: Int) -> [UInt8] {
        let room = dataCount(version)
        var bits = BitWriter()
        bits.put(0b0100, 4)
        bits.put(bytes.count, version < 10 ? 8 : 16)
        for byte in bytes { bits.put(Int(byte), 8) }
        bits.put(0, min(4, 8 * room - bits.count))
        bits.put(0, (8 - bits.count % 8) % 8)
        var data = bits.bytes
        while data.count < room { data.append((room - data.count) % 2 == (room - bits.bytes.count) % 2 ? 0xEC : 0x11) }
        let count = blocks[version - 1]
        let length = room / count
        // The last ones are longer by one.
        let longer = room % count
        var parts: [[UInt8]] = []
        var start = 0
        for index in 0..<count {
            let end = start + length + (index >= count - longer ? 1 : 0)
            parts.append(Array(data[start..<end]))
            start = end
        }
        let checks = parts.map { ReedSolomon.remainder(of: $0, degree: correction[version - 1]) }
        var result: [UInt8] = []
        for index in 0...length { for part in parts where index < part.count { result.append(part[index]) } }
        for index in 0..<correction[version - 1] { for check in checks { result.append(check[index]) } }
        return result
    }

    private struct BitWriter {
        private(set) var bytes: [UInt8] = []
        private(set) var count = 0

        mutating func put(_ value: Int, _ width: Int) {
            for bit in stride(from: width - 1, through: 0, by: -1) {
                if count % 8 == 0 { bytes.append(0) }
                if value >> bit & 1 == 1 { bytes[count / 8] |= 0x80 >> UInt8(count % 8) }
                count += 1
            }
        }
    }

    /// Over GF(2⁸) modulo x⁸+x⁴+x³+x²+1.
    private enum ReedSolomon {
        static func remainder(of data: [UInt8], degree: Int) -> [UInt8] {
            var generator = [UInt8](repeating: 0, count: degree)
            generator[degree - 1] = 1
            var root: UInt8 = 1
            for _ in 0..<degree {
                for index in 0..<degree {
                    generator[index] = product(generator[index], root) ^ (index + 1 < degree ? generator[index + 1] : 0)
                }
                root = product(root, 2)
            }
            var rest = [UInt8](repeating: 0, count: degree)
            for byte in data {
                let factor = byte ^ rest.removeFirst()
                rest.append(0)
                for index in 0..<degree { rest[index] ^= product(generator[index], factor) }
            }
            return rest
        }

        private static func product(_ left: UInt8, _ right: UInt8) -> UInt8 {
            var result: UInt8 = 0
            for bit in stride(from: 7, through: 0, by: -1) {
                result = result << 1 ^ (result & 0x80 != 0 ? 0x1D : 0)
                if right >> UInt8(bit) & 1 == 1 { result ^= left }
            }
            return result
        }
    }
}

// MARK: - Modules

extension QRCode {
    private mutating func fix(_ x: Int, _ y: Int, _ isDark: Bool) {
        guard (0..<size).contains(x), (0..<size).contains(y) else { return }
        dark[y * size + x] = isDark
        isFixed[y * size + x] = true
    }

    private mutating func drawPatterns(_ version: Int) {
        for index in 0..<size {
            fix(6, index, index % 2 == 0)
            fix(index, 6, index % 2 == 0)
        }
        for (x, y) in [(3, 3), (size - 4, 3), (3, size - 4)] {
            for dy in -4...4 {
                for dx in -4...4 {
                    let ring = max(abs(dx), abs(dy))
                    fix(x + dx, y + dy, ring != 2 && ring != 4)
                }
            }
        }
        let marks = Self.marks(version, size)
        for (row, y) in marks.enumerated() {
            for (column, x) in marks.enumerated() {
                let last = marks.count - 1
                let isCorner = (row, column) == (0, 0) || (row, column) == (0, last) || (row, column) == (last, 0)
                guard !isCorner else { continue }
                for dy in -2...2 { for dx in -2...2 { fix(x + dx, y + dy, max(abs(dx), abs(dy)) != 1) } }
            }
        }
        drawFormat(0)
        guard version >= 7 else { return }
        var rest = version
        for _ in 0..<12 { rest = rest << 1 ^ (rest >> 11) * 0x1F25 }
        let bits = version << 12 | rest
        for index in 0..<18 {
            let isDark = bits >> index & 1 == 1
            fix(size - 11 + index % 3, index / 3, isDark)
            fix(index / 3, size - 11 + index % 3, isDark)
        }
    }

    private static func marks(_ version: Int, _ size: Int) -> [Int] {
        guard version > 1 else { return [] }
        let count = version / 7 + 2
        let step = (version * 4 + count * 2 + 1) / (count * 2 - 2) * 2
        return [6] + (0..<count - 1).reversed().map { size - 7 - $0 * step }
    }

    /// Level and mask, twice.
    private mutating func drawFormat(_ mask: Int) {
        let data = 0b01 << 3 | mask
        var rest = data
        for _ in 0..<10 { rest = rest << 1 ^ (rest >> 9) * 0x537 }
        let bits = (data << 10 | rest) ^ 0x5412
        func bit(_ index: Int) -> Bool { bits >> index & 1 == 1 }
        for index in 0...5 { fix(8, index, bit(index)) }
        fix(8, 7, bit(6))
        fix(8, 8, bit(7))
        fix(7, 8, bit(8))
        for index in 9..<15 { fix(14 - index, 8, bit(index)) }
        for index in 0..<8 { fix(size - 1 - index, 8, bit(index)) }
        for index in 8..<15 { fix(8, size - 15 + index, bit(index)) }
        fix(8, size - 8, true)
    }

    /// From the lower right, in columns of two, up and down.
    private mutating func place(_ codewords: [UInt8]) {
        var index = 0
        for pair in 0..<(size - 1) / 2 {
            var right = size - 1 - 2 * pair
            // The column of the timing pattern is left out.
            if right <= 6 { right -= 1 }
            for step in 0..<size {
                let y = pair % 2 == 0 ? size - 1 - step : step
                for x in [right, right - 1] where !isFixed[y * size + x] && index < codewords.count * 8 {
                    dark[y * size + x] = codewords[index / 8] >> UInt8(7 - index % 8) & 1 == 1
                    index += 1
                }
            }
        }
    }

    private mutating func apply(_ mask: Int) {
        for y in 0..<size {
            for x in 0..<size where !isFixed[y * size + x] {
                let flips =
                    switch mask {
                    case 0: (x + y) % 2 == 0
                    case 1: y % 2 == 0
                    case 2: x % 3 == 0
                    case 3: (x + y) % 3 == 0
                    case 4: (x / 3 + y / 2) % 2 == 0
                    case 5: x * y % 2 + x * y % 3 == 0
                    case 6: (x * y % 2 + x * y % 3) % 2 == 0
                    default: ((x + y) % 2 + x * y % 3) % 2 == 0
                    }
                if flips { dark[y * size + x].toggle() }
            }
        }
    }

    /// The penalty counts what makes a picture hard to read: long runs, blocks of one colour, and too much of one. The lowest of eight masks is taken, so
    /// the exact weights matter little; what looks like a finder pattern weighs most.
    private var penalty: Int {
        var sum = 0
        for isRow in [true, false] {
            for line in 0..<size {
                var run = 0
                var history = 0
                for index in 0..<size {
                    let isDark = isRow ? self[index, line] : self[line, index]
                    let before = index > 0 ? (isRow ? self[index - 1, line] : self[line, index - 1]) : !isDark
                    run = isDark == before ? run + 1 : 1
                    if run == 5 { sum += 3 } else if run > 5 { sum += 1 }
                    history = (history << 1 | (isDark ? 1 : 0)) & 0x7FF
                    if index >= 10, history == 0b101_1101_0000 || history == 0b000_0101_1101 { sum += 40 }
                }
            }
        }
        for y in 0..<size - 1 {
            for x in 0..<size - 1 {
                let corner = self[x, y]
                if corner == self[x + 1, y], corner == self[x, y + 1], corner == self[x + 1, y + 1] { sum += 3 }
            }
        }
        let share = dark.count { $0 } * 100 / dark.count
        return sum + abs(share - 50) / 5 * 10
    }
}
