/// An RSA public key that verifies RS256 (RFC 8017 §8.2.2 with SHA-256). Of our own, like the digest: the product's cryptography
/// must not vouch for itself.
struct RSAPublicKey: Sendable {
    /// Limbs of 64 bits, the lowest first.
    private let modulus: [UInt64]
    private let size: Int
    /// -1/n modulo 2^64, for Montgomery's multiplication.
    private let inverse: UInt64
    /// R² modulo n, R being the power of two above the limbs.
    private let square: [UInt64]

    /// - Returns: nil unless the modulus has 2048 to 4096 bits, without a leading zero, and is odd.
    init?(modulus bytes: [UInt8]) {
        guard (256...512).contains(bytes.count), bytes.count % 8 == 0, bytes[0] >= 0x80, bytes[bytes.count - 1] & 1 == 1
        else { return nil }
        let n = RSAPublicKey.limbs(bytes)
        var inverse: UInt64 = 1
        // Newton: each step doubles the bits that are right.
        for _ in 0..<6 { inverse = inverse &* (2 &- n[0] &* inverse) }
        var square = [UInt64](repeating: 0, count: n.count)
        square[0] = 1
        for _ in 0..<(128 * n.count) {
            let carry = RSAPublicKey.double(&square)
            if carry || !RSAPublicKey.isLess(square, n) { RSAPublicKey.subtract(n, from: &square) }
        }
        modulus = n
        size = bytes.count
        self.inverse = 0 &- inverse
        self.square = square
    }

    /// The exponent is 65537.
    func verifies(_ signature: [UInt8], of message: String) -> Bool {
        guard signature.count == size else { return false }
        let number = RSAPublicKey.limbs(signature)
        guard RSAPublicKey.isLess(number, modulus) else { return false }
        let base = product(number, square)
        var power = base
        for _ in 0..<16 { power = product(power, power) }
        power = product(power, base)
        var one = [UInt64](repeating: 0, count: modulus.count)
        one[0] = 1
        return RSAPublicKey.bytes(product(power, one)) == padded(message)
    }

    /// EMSA-PKCS1-v1_5 of its digest.
    private func padded(_ message: String) -> [UInt8] {
        let prefix: [UInt8] = [
            0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00, 0x04,
            0x20,
        ]
        let hex = Array(SHA256.hex(message).utf8)
        let digest = stride(from: 0, to: hex.count, by: 2).map { at -> UInt8 in
            UInt8(String(decoding: hex[at..<(at + 2)], as: UTF8.self), radix: 16) ?? 0
        }
        let filler = [UInt8](repeating: 0xff, count: size - 3 - prefix.count - digest.count)
        return [0x00, 0x01] + filler + [0x00] + prefix + digest
    }

    // MARK: - Numbers

    /// a·b/R modulo n.
    private func product(_ a: [UInt64], _ b: [UInt64]) -> [UInt64] {
        let count = modulus.count
        var sum = [UInt64](repeating: 0, count: count + 2)
        for word in a {
            add(b, times: word, to: &sum)
            add(modulus, times: sum[0] &* inverse, to: &sum)
            sum.removeFirst()
            sum.append(0)
        }
        var result = Array(sum[..<count])
        if sum[count] != 0 || !RSAPublicKey.isLess(result, modulus) { RSAPublicKey.subtract(modulus, from: &result) }
        return result
    }

    private func add(_ number: [UInt64], times word: UInt64, to sum: inout [UInt64]) {
        var carry: UInt64 = 0
        for index in number.indices {
            let (high, low) = number[index].multipliedFullWidth(by: word)
            let (first, over) = sum[index].addingReportingOverflow(low)
            let (second, again) = first.addingReportingOverflow(carry)
            sum[index] = second
            carry = high &+ (over ? 1 : 0) &+ (again ? 1 : 0)
        }
        var index = number.count
        while carry != 0 {
            let (next, over) = sum[index].addingReportingOverflow(carry)
            sum[index] = next
            carry = over ? 1 : 0
            index += 1
        }
    }

    private static func double(_ number: inout [UInt64]) -> Bool {
        var carry: UInt64 = 0
        for index in number.indices {
            let top = number[index] >> 63
            number[index] = number[index] << 1 | carry
            carry = top
        }
        return carry == 1
    }

    private static func isLess(_ left: [UInt64], _ right: [UInt64]) -> Bool {
        for index in left.indices.reversed() where left[index] != right[index] { return left[index] < right[index] }
        return false
    }

    private static func subtract(_ right: [UInt64], from left: inout [UInt64]) {
        var borrow: UInt64 = 0
        for index in left.indices {
            let (first, under) = left[index].subtractingReportingOverflow(right[index])
            let (second, again) = first.subtractingReportingOverflow(borrow)
            left[index] = second
            borrow = under || again ? 1 : 0
        }
    }

    private static func limbs(_ bytes: [UInt8]) -> [UInt64] {
        stride(from: bytes.count - 8, through: 0, by: -8).map { at in
            bytes[at..<(at + 8)].reduce(0) { $0 << 8 | UInt64($1) }
        }
    }

    private static func bytes(_ limbs: [UInt64]) -> [UInt8] {
        limbs.reversed().flatMap { limb in
            stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: limb >> UInt64($0)) }
        }
    }
}
