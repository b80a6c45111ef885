internal import Octets

/// Writes into memory that someone else owns, never past its end.
///
/// Output that does not fit is dropped and `overflowed` stays true: a writer runs to its end without a check per line, and
/// its caller looks once.
public struct OutputCursor {
    private let memory: UnsafeMutableRawBufferPointer
    /// Bytes written.
    public private(set) var count = 0
    /// Something did not fit; what was written is incomplete and must not be sent.
    public private(set) var overflowed = false

    /// - Parameter memory: outlives the cursor.
    public init(_ memory: UnsafeMutableRawBufferPointer) {
        self.memory = memory
    }
}

// MARK: -

extension OutputCursor {
    /// Copies the octets; too many set `overflowed` and write nothing.
    public mutating func append(_ bytes: Span<UInt8>) {
        bytes.withUnsafeBytes { append(raw: $0) }
    }

    /// - Precondition: `range` lies in `bytes`.
    public mutating func append(_ bytes: Span<UInt8>, _ range: ByteRange) {
        guard range.count > 0 else { return }
        precondition(range.start >= 0 && Int(range.end) <= bytes.count)
        bytes.withUnsafeBytes { append(raw: UnsafeRawBufferPointer(rebasing: $0[range.indices])) }
    }

    /// Copies the text; too much sets `overflowed` and writes nothing.
    public mutating func append(_ text: StaticString) {
        append(raw: UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// The text behind its first octets.
    mutating func append(_ text: StaticString, from first: Int) {
        append(raw: UnsafeRawBufferPointer(start: text.utf8Start + first, count: text.utf8CodeUnitCount - first))
    }

    /// Appends an octet; without room sets `overflowed`.
    public mutating func append(byte: UInt8) {
        guard !overflowed, count < memory.count else {
            overflowed = true
            return
        }
        memory[count] = byte
        count += 1
    }

    /// Decimal digits without leading zeros.
    public mutating func append(decimal value: UInt64) {
        var size = 1
        var bound = value
        while bound > 9 {
            bound /= 10
            size &+= 1
        }
        guard !overflowed, size <= memory.count &- count, let start = memory.baseAddress else {
            overflowed = true
            return
        }
        // The digits come last first.
        var digit = start + count + size
        var rest = value
        repeat {
            digit -= 1
            digit.storeBytes(of: UInt8(truncatingIfNeeded: rest % 10) &+ 0x30, as: UInt8.self)
            rest /= 10
        } while rest > 0
        count &+= size
    }

    /// Hexadecimal digits in lower case, without leading zeros: a chunk size (RFC 9112 §7.1).
    public mutating func append(hexadecimal value: UInt64) {
        var shift = value == 0 ? 0 : (63 - value.leadingZeroBitCount) & ~3
        while shift >= 0 {
            let digit = UInt8(truncatingIfNeeded: (value >> UInt64(shift)) & 0xF)
            append(byte: digit < 10 ? digit + 0x30 : digit + 0x57)
            shift -= 4
        }
    }

    /// All sixteen hexadecimal digits in lower case, leading zeros too: half of a trace id (W3C Trace Context, section 3.2.2.3).
    public mutating func append(allHexadecimal value: UInt64) {
        append(eightDigits: UInt32(truncatingIfNeeded: value >> 32))
        append(eightDigits: UInt32(truncatingIfNeeded: value))
    }

    private mutating func append(eightDigits value: UInt32) {
        extend(by: 8)?.storeBytes(of: Hexadecimal.digits(of: value).bigEndian, as: UInt64.self)
    }

    /// Puts whole field lines before the empty line that ends a head.
    /// - Precondition: a head has been written.
    public mutating func addFields(_ lines: Span<UInt8>) {
        guard !overflowed else { return }
        rewind(to: count - 2)
        append(lines)
        append("\r\n")
    }

    /// Takes back the empty line that ends a head: whole field lines may follow, then `endHead`.
    /// - Precondition: a head has been written.
    public mutating func reopenHead() {
        guard !overflowed else { return }
        rewind(to: count - 2)
    }

    /// The empty line that ends a head.
    public mutating func endHead() {
        extend(by: 2)?.storeBytes(of: UInt16(0x0D0A).bigEndian, as: UInt16.self)
    }

    /// The next `size` octets, which the caller writes, all of them; nil without room, and `overflowed` is set.
    mutating func extend(by size: Int) -> UnsafeMutableRawPointer? {
        guard !overflowed, memory.count &- count >= size, let start = memory.baseAddress else {
            overflowed = true
            return nil
        }
        defer { count &+= size }
        return start + count
    }

    /// An octet that was written.
    subscript(index: Int) -> UInt8 {
        precondition(index < count)
        return memory[index]
    }

    /// Takes back what was written since `count` was `mark`. An overflow stays one.
    mutating func rewind(to mark: Int) {
        precondition(mark <= count)
        count = mark
    }

    @inline(__always)
    private mutating func append(raw: UnsafeRawBufferPointer) {
        let size = raw.count
        guard !overflowed, size <= memory.count &- count else {
            overflowed = true
            return
        }
        guard let source = raw.baseAddress, let target = memory.baseAddress else { return }
        copyPiece(source, to: target + count, size)
        count &+= size
    }
}

/// Heads are made of short pieces, and a call costs more than to copy one: its first octets and its last, which may be the same ones.
@inline(__always)
private func copyPiece(_ source: UnsafeRawPointer, to target: UnsafeMutableRawPointer, _ size: Int) {
    if size > 32 {
        target.copyMemory(from: source, byteCount: size)
    } else if size >= 16 {
        copyEnds(source, target, size, SIMD16<UInt8>.self)
    } else if size >= 8 {
        copyEnds(source, target, size, UInt64.self)
    } else if size >= 4 {
        copyEnds(source, target, size, UInt32.self)
    } else if size >= 2 {
        copyEnds(source, target, size, UInt16.self)
    } else if size == 1 {
        target.storeBytes(of: source.load(as: UInt8.self), as: UInt8.self)
    }
}

@inline(__always)
private func copyEnds<Word: BitwiseCopyable>(
    _ source: UnsafeRawPointer, _ target: UnsafeMutableRawPointer, _ size: Int, _ word: Word.Type
) {
    let last = size &- MemoryLayout<Word>.size
    let head = source.loadUnaligned(as: word)
    let tail = source.loadUnaligned(fromByteOffset: last, as: word)
    target.storeBytes(of: head, as: word)
    target.storeBytes(of: tail, toByteOffset: last, as: word)
}
