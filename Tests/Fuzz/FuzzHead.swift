@testable import HTTP1

private let limits = HeadLimits(headSize: 4096, fields: 24, target: 512, method: 24, connectionOptions: 6)

/// Any bytes as a request and as a response: ranges stay inside, two pieces give what one gives, and what is written
/// parses again to the same framing.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHead(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    checkRequest(bytes)
    checkResponse(bytes)
    return 0
}

private enum Outcome: Equatable {
    case length(Int?)
    case fault(HeadFault)
}

private func outcome(_ head: inout RequestHead, _ bytes: Span<UInt8>) -> Outcome {
    do { return .length(try head.parse(bytes, limits: limits)) } catch { return .fault(error) }
}

private func outcome(_ head: inout ResponseHead, _ bytes: Span<UInt8>) -> Outcome {
    do { return .length(try head.parse(bytes, limits: limits)) } catch { return .fault(error) }
}

private func inside(_ range: ByteRange, _ length: Int) {
    precondition(range.start >= 0 && range.count >= 0 && Int(range.end) <= length)
}

private func check(_ field: Field, _ length: Int) {
    inside(field.line, length)
    precondition(field.name.start >= field.line.start && field.value.end <= field.line.end)
    precondition(field.name.count > 0 && field.name.end <= field.value.start && field.value.count >= 0)
}

/// A cut that depends on the input, so that the fuzzer explores cuts as it explores bytes.
private func cut(_ bytes: [UInt8]) -> Int {
    bytes.isEmpty ? 0 : Int(bytes.reduce(UInt32(7)) { $0 &* 31 &+ UInt32($1) }) % bytes.count
}

private func written(_ body: (inout OutputCursor) -> Void) -> [UInt8] {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 << 10, alignment: 1)
    defer { memory.deallocate() }
    var output = OutputCursor(memory)
    body(&output)
    precondition(!output.overflowed)
    let result = Array(memory[..<output.count])
    // The same into too little memory: ASan sees a byte past the end.
    let tight = UnsafeMutableRawBufferPointer.allocate(byteCount: output.count / 2, alignment: 1)
    defer { tight.deallocate() }
    var small = OutputCursor(tight)
    body(&small)
    precondition(small.overflowed && small.count <= tight.count)
    return result
}

private func requestEdits() -> RequestEdits {
    var edits = RequestEdits()
    if let name = FieldName("authorization") { edits.drop.insert(name) }
    if let name = FieldName("x-set") { precondition(edits.set(name, value: Array("1".utf8))) }
    edits.userAgentMode = .prepend
    edits.userAgent = Array("Gate/1.0 ".utf8)
    edits.targetPrefix = Array("/base".utf8)
    edits.stripPrefix = Array("/a/".utf8)
    edits.via = Array("gate".utf8)
    return edits
}

private func checkRequest(_ bytes: [UInt8]) {
    var head = RequestHead(maxFields: 24)
    let whole = outcome(&head, bytes.span)
    var pieces = RequestHead(maxFields: 24)
    let split = cut(bytes)
    var joined = outcome(&pieces, bytes.span.extracting(0..<split))
    if joined == .length(nil) { joined = outcome(&pieces, bytes.span) }
    precondition(joined == whole)
    guard case .length(let found) = whole, let length = found else { return }
    precondition(length <= bytes.count && length <= limits.headSize)
    inside(head.method, length)
    inside(head.target, length)
    inside(head.path, length)
    if let host = head.host { inside(host, length) }
    precondition(pieces.framing == head.framing && pieces.fieldCount == head.fieldCount)
    for index in 0..<head.fieldCount {
        check(head[index], length)
        precondition(head[index] == pieces[index])
    }
    _ = validateStrictPath(bytes.span.extracting(head.path.indices))
    _ = head.viaNames("gate".utf8.span, in: bytes.span)
    guard head.targetForm != .authority else { return }
    checkRewrite(head, bytes)
}

private func checkRewrite(_ head: borrowing RequestHead, _ bytes: [UInt8]) {
    let framing: BodyFraming =
        switch head.framing {
        case .none: .none
        case .length(let length): .length(length)
        case .chunked: .chunked
        }
    for place in [CredentialPlace.header, .query, .cookie] {
        var edits = requestEdits()
        edits.place = place
        edits.placeName = Array("token".utf8)
        // HTTP/1.0 may come without any host, and an empty one would not be accepted again.
        if head.host == nil { edits.host = Array("upstream".utf8) }
        let credential = Array((place == .header ? "Authorization: Bearer s\r\n" : "token=s").utf8)
        let text = written { output in
            writeRequest(
                head, bytes: bytes.span, edits: edits, credential: credential.span, framing: framing,
                expectContinue: head.expectsContinue, upgrade: head.upgrade, into: &output)
        }
        var again = RequestHead(maxFields: 64)
        guard let length = try? again.parse(text.span, limits: HeadLimits()) else {
            preconditionFailure("what was written does not parse")
        }
        precondition(length == text.count)
        precondition(again.framing == head.framing && fields(again, .host) == 1 && again.minorVersion == 1)
        precondition(again.upgrade == head.upgrade && again.expectsContinue == head.expectsContinue)
        if place == .header {
            precondition(fields(again, .authorization) == 1)
            for index in 0..<again.fieldCount where again[index].resembles == .authorization {
                precondition(again[index].known == .authorization)
            }
        }
        precondition(fields(again, .userAgent) == 1)
    }
}

private func fields(_ head: borrowing RequestHead, _ known: KnownField) -> Int {
    (0..<head.fieldCount).count { head[$0].known == known }
}

private func checkResponse(_ bytes: [UInt8]) {
    var head = ResponseHead(maxFields: 24)
    let whole = outcome(&head, bytes.span)
    var pieces = ResponseHead(maxFields: 24)
    var joined = outcome(&pieces, bytes.span.extracting(0..<cut(bytes)))
    if joined == .length(nil) { joined = outcome(&pieces, bytes.span) }
    precondition(joined == whole)
    guard case .length(let found) = whole, let length = found else { return }
    precondition(length <= bytes.count)
    inside(head.reason, length)
    for index in 0..<head.fieldCount {
        check(head[index], length)
        precondition(head[index] == pieces[index])
    }
    _ = head.bindsConnection(in: bytes.span)

    var edits = ResponseEdits()
    edits.dropCookies = PrefixSet([Array("ObSSO".utf8)])
    edits.via = Array("gate".utf8)
    for isHead in [false, true] {
        for minor: UInt8 in [0, 1] {
            let framing = head.outgoingFraming(forMethodHEAD: isHead, connect: false, callerMinorVersion: minor)
            let text = written { output in
                writeResponse(
                    head, bytes: bytes.span, edits: edits, framing: framing, callerMinorVersion: minor, close: false,
                    into: &output)
            }
            precondition(text.count <= head.length + edits.via.count + 256)
            var again = ResponseHead(maxFields: 64)
            guard let length = try? again.parse(text.span, limits: HeadLimits()) else {
                preconditionFailure("what was written does not parse")
            }
            precondition(length == text.count && again.status == head.status)
            let expected: BodyFraming =
                switch framing {
                case .none: .none
                case .length(let length): isHead || head.status == 304 ? .none : .length(length)
                case .chunked: .chunked
                case .untilClose: .untilClose
                }
            precondition(again.framing(forMethodHEAD: isHead, connect: false) == expected)
            for index in 0..<again.fieldCount { precondition(again[index].marks.isDisjoint(with: [.folded])) }
        }
    }
}
