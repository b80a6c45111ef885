@testable import HTTP1

/// Any bytes as a query, a cookie, a Forwarded value, a Location and a Set-Cookie: what is written holds our value once,
/// where a reader finds it, and no octet that could begin another line.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzEdits(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    guard let choice = bytes.first else { return 0 }
    // As the parsers of heads leave them: no line break, no NUL.
    let value = bytes.dropFirst().filter { $0 != 0x0D && $0 != 0x0A && $0 != 0 }
    switch choice % 5 {
    case 0: checkQuery(value)
    case 1: checkCookie(value)
    case 2: checkForwarded(value)
    case 3: checkMap(value, choice / 5)
    default: checkEncoding(value)
    }
    return 0
}

private func written(_ capacity: Int, _ body: (inout OutputCursor) -> Void) -> [UInt8] {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 1)
    defer { memory.deallocate() }
    var output = OutputCursor(memory)
    body(&output)
    precondition(!output.overflowed)
    return Array(memory[..<output.count])
}

private func carrierEdits(_ place: CredentialPlace) -> RequestEdits {
    var edits = RequestEdits()
    edits.place = place
    edits.placeName = Array("key_1".utf8)
    return edits
}

/// What stands before `=` in each part.
private func names(_ bytes: ArraySlice<UInt8>, _ marks: Set<UInt8>) -> [[UInt8]] {
    bytes.split(omittingEmptySubsequences: true) { marks.contains($0) }.map { part in
        Array(part.drop { $0 == 0x20 || $0 == 0x09 }.prefix { $0 != 0x3D })
    }
}

private func isOurs(_ name: [UInt8]) -> Bool {
    let ours = Array("key_1".utf8)
    return isCarrier(ByteRange(0..<name.count), name.span, named: ours.span)
}

private func checkQuery(_ value: [UInt8]) {
    let path = Array("/p?".utf8) + value.filter { $0 > 0x20 && $0 != 0x7F && $0 != 0x23 }
    let credential = Array("key_1=t".utf8)
    let edits = carrierEdits(.query)
    let text = written(path.count + 32) {
        writeQuery(ByteRange(0..<path.count), path.span, edits, credential.span, &$0)
    }
    precondition(text.count <= path.count + credential.count + 1)
    precondition(text.starts(with: Array("/p?".utf8)) && text.suffix(7).elementsEqual(credential))
    precondition(names(text.dropFirst(3), [0x26, 0x3B]).count { isOurs($0) } == 1)
    let bare = written(path.count + 32) { writeQuery(ByteRange(0..<path.count), path.span, edits, nil, &$0) }
    precondition(bare.count <= path.count && !names(bare.dropFirst(3), [0x26, 0x3B]).contains { isOurs($0) })
    // Nothing is left to delete, so nothing is deleted.
    let again = written(bare.count + 32) { writeQuery(ByteRange(0..<bare.count), bare.span, edits, nil, &$0) }
    precondition(again == bare)
}

private func checkCookie(_ value: [UInt8]) {
    let credential = Array("key_1=t".utf8)
    let text = written(value.count + 64) {
        var sink = LineSink($0)
        writeCookies(ByteRange(0..<value.count), value.span, carrierEdits(.cookie), credential.span, &sink)
        $0 = sink.output
    }
    precondition(text.starts(with: Array("Cookie: ".utf8)) && text.suffix(9).elementsEqual(credential + [13, 10]))
    precondition(names(text.dropFirst(8).dropLast(2), [0x3B, 0x2C]).count { isOurs($0) } == 1)
}

private func checkForwarded(_ value: [UInt8]) {
    let request = Array("GET / HTTP/1.1\r\nHost: h\r\nForwarded: ".utf8) + value + [13, 10, 13, 10]
    var head = RequestHead(maxFields: 8)
    guard (try? head.parse(request.span, limits: HeadLimits())) != nil else { return }
    var hop = ForwardedHop()
    hop.isTrusted = true
    hop.fields = [.standard, .legacy]
    hop.address = Array("::1".utf8)
    hop.isHidden = false
    let text = written(request.count + 512) {
        writeRequest(
            head, bytes: request.span, edits: RequestEdits(), credential: nil, hop: hop, framing: .none, into: &$0)
    }
    precondition(text.count <= request.count + 2 * hop.address.count + 160)
    var again = RequestHead(maxFields: 8)
    guard (try? again.parse(text.span, limits: HeadLimits())) == text.count, let line = again.first(.forwarded) else {
        preconditionFailure("what was written does not parse")
    }
    precondition((0..<again.fieldCount).count { again[$0].known == .forwarded } == 1)
    let list = text.span.extracting(line.indices)
    precondition(isForwardedList(list))
    // Ours is the last element, whole.
    var walk = ForwardedList()
    var last: [[UInt8]] = []
    var element = -1
    while let parameter = walk.next(in: list) {
        if walk.element != element { last = [] }
        element = walk.element
        last.append(
            Array(
                text[line.indices][(Int(line.start) + Int(parameter.name.start))...].prefix(Int(parameter.name.count))))
    }
    precondition(last == ["for", "host", "proto"].map { Array($0.utf8) })
    _ = written(request.count + 64) {
        head.writeCallerOrigin(request.span, isSecure: false, isTrusted: true, into: &$0)
    }
}

private func checkMap(_ value: [UInt8], _ choice: UInt8) {
    var map = AddressMap()
    map.isOn = true
    map.isSecure = choice & 1 == 0
    map.host = Array("u.example".utf8)
    map.port = map.isSecure ? 443 : 8080
    if choice & 2 != 0 { map.inner = Array("/base".utf8) }
    if choice & 4 != 0 { map.outer = Array("/app".utf8) }
    map.knowsCallersHost = choice & 8 != 0
    let origin = choice & 16 == 0 ? Array("http://localhost:8080".utf8) : []
    var isMapped = false
    let location = written(value.count + 64) {
        isMapped = map.write(location: value.span, origin: origin.span, into: &$0)
    }
    if isMapped {
        // Either the caller's own origin, or a path that names no host.
        let isOwn = !origin.isEmpty && location.starts(with: origin) && location[origin.count] == 0x2F
        let isPath = location[0] == 0x2F && (location.count == 1 || (location[1] != 0x2F && location[1] != 0x5C))
        precondition(isOwn || isPath)
    } else {
        precondition(location.isEmpty)
    }
    let cookie = written(2 * value.count + 64) {
        isMapped = map.write(cookie: value.span, origin: origin.span, into: &$0)
    }
    precondition(isMapped || cookie.isEmpty)
    // The pair itself is never changed.
    if isMapped { precondition(cookie.prefix { $0 != 0x3B }.elementsEqual(value.prefix { $0 != 0x3B })) }
}

private func checkEncoding(_ value: [UInt8]) {
    let parameter = written(3 * value.count + 1) { writeParameterValue(value.span, into: &$0) }
    precondition(parameter.allSatisfy { $0 == 0x25 || OctetClass.unreserved.contains($0) })
    let cookie = written(3 * value.count + 1) { writeCookieValue(value.span, into: &$0) }
    precondition(cookie.allSatisfy { OctetClass.cookie.contains($0) })
    var decoded: [UInt8] = []
    var cursor = 0
    while cursor < parameter.count {
        let (octet, width) = decodedOctet(parameter.span, at: cursor, end: parameter.count)
        decoded.append(octet)
        cursor += width
    }
    precondition(decoded == value)
}
