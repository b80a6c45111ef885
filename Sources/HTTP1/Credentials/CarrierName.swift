internal import Octets

/// Whether an upstream may read a received parameter or cookie name as the one that carries our credential.
///
/// Wider than equality, because what survives is read beside ours, and some servers take the first of two: names are
/// compared without case (IIS), percent-decoded, `+` as a blank, without blanks before them, up to a NUL or an array's
/// `[`, and with `.`, blank and `[` as `_` (PHP).
///
/// - Parameter name: as configured.
func isCarrier(_ received: ByteRange, _ bytes: Span<UInt8>, named name: Span<UInt8>) -> Bool {
    var cursor = Int(received.start)
    let end = Int(received.end)
    var offset = 0
    while cursor < end {
        let (octet, width) = carrierOctet(bytes, at: cursor, end: end)
        if octet == 0 { break }
        if offset == 0, octet == 0x20 {
            cursor &+= width
            continue
        }
        // Behind the whole name only an array's index may follow.
        if offset == name.count { return octet == 0x5B }
        guard foldedCarrierOctet(octet) == foldedCarrierOctet(name[offset]) else { return false }
        offset &+= 1
        cursor &+= width
    }
    return offset == name.count
}

@inline(__always)
private func carrierOctet(_ bytes: Span<UInt8>, at cursor: Int, end: Int) -> (octet: UInt8, width: Int) {
    if bytes[cursor] == 0x2B { return (0x20, 1) }
    return decodedOctet(bytes, at: cursor, end: end)
}

@inline(__always)
private func foldedCarrierOctet(_ octet: UInt8) -> UInt8 {
    switch octet {
    case 0x20, 0x2E, 0x5B: 0x5F
    default: lowercased(octet)
    }
}

// MARK: - Encoding

/// Writes a value of a query parameter: everything but unreserved characters is percent-encoded (RFC 3986 §2.3), so it
/// reads the same as a URI component and as form data.
public func writeParameterValue(_ value: Span<UInt8>, into output: inout OutputCursor) {
    writeEncoded(value, keeping: .unreserved, &output)
}

/// Writes a cookie's value: octets that RFC 6265 §4.1.1 has no place for are percent-encoded, the others stay, so that
/// servers which do not decode cookies, as most do not, get an ordinary token as it is.
public func writeCookieValue(_ value: Span<UInt8>, into output: inout OutputCursor) {
    writeEncoded(value, keeping: .cookie, &output)
}

private func writeEncoded(_ value: Span<UInt8>, keeping kept: OctetClass, _ output: inout OutputCursor) {
    var start = 0
    for index in value.indices {
        let octet = value[index]
        if kept.contains(octet) { continue }
        output.append(value, ByteRange(start..<index))
        output.append(byte: 0x25)
        output.append(byte: Hexadecimal.digit(octet >> 4, isCapital: true))
        output.append(byte: Hexadecimal.digit(octet & 0xF, isCapital: true))
        start = index &+ 1
    }
    output.append(value, ByteRange(start..<value.count))
}
