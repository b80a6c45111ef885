@testable import HTTP1

/// Latin-1, so that a table can hold any octet as one character.
func octets(_ text: String) -> [UInt8] {
    text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
}

func text(_ bytes: [UInt8], _ range: ByteRange?) -> String? {
    range.map { String(String.UnicodeScalarView(bytes[$0.indices].map { Unicode.Scalar($0) })) }
}

func text(_ bytes: [UInt8]) -> String {
    String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
}

func parsedRequest(_ bytes: [UInt8], limits: HeadLimits = HeadLimits()) throws(HeadFault) -> RequestHead {
    var head = RequestHead(maxFields: 128)
    _ = try head.parse(bytes.span, limits: limits)
    return head
}

func parsedResponse(_ bytes: [UInt8], limits: HeadLimits = HeadLimits()) throws(HeadFault) -> ResponseHead {
    var head = ResponseHead(maxFields: 128)
    _ = try head.parse(bytes.span, limits: limits)
    return head
}

func requestFault(_ text: String, limits: HeadLimits = HeadLimits()) -> HeadFault? {
    do {
        _ = try parsedRequest(octets(text), limits: limits)
        return nil
    } catch {
        return error
    }
}

func responseFault(_ text: String, limits: HeadLimits = HeadLimits()) -> HeadFault? {
    do {
        _ = try parsedResponse(octets(text), limits: limits)
        return nil
    } catch {
        return error
    }
}

/// What `body` wrote, or nil when it did not fit.
func written(capacity: Int = 64 << 10, _ body: (inout OutputCursor) -> Void) -> [UInt8]? {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 1)
    defer { memory.deallocate() }
    var output = OutputCursor(memory)
    body(&output)
    return output.overflowed ? nil : Array(memory[..<output.count])
}

/// The request as it goes to the upstream, with the framing it came with.
func forwarded(
    _ request: String, edits: RequestEdits = RequestEdits(), credential: String? = nil,
    expectContinue: Bool = false, upgrade: Bool = false
) throws -> String {
    let bytes = octets(request)
    let head = try parsedRequest(bytes)
    let framing: BodyFraming =
        switch head.framing {
        case .none: .none
        case .length(let length): .length(length)
        case .chunked: .chunked
        }
    let ready = credential.map(octets) ?? []
    let result = written { output in
        writeRequest(
            head, bytes: bytes.span, edits: edits, credential: credential == nil ? nil : ready.span, framing: framing,
            expectContinue: expectContinue, upgrade: upgrade, into: &output)
    }
    return text(result ?? [])
}

/// The response as it goes to the caller.
func answered(
    _ response: String, edits: borrowing ResponseEdits = ResponseEdits(), toHEAD: Bool = false, minorVersion: UInt8 = 1,
    close: Bool = false, upgrade: Bool = false
) throws -> String {
    let bytes = octets(response)
    let head = try parsedResponse(bytes)
    let framing = head.outgoingFraming(forMethodHEAD: toHEAD, connect: false, callerMinorVersion: minorVersion)
    let result = written { output in
        writeResponse(
            head, bytes: bytes.span, edits: edits, framing: framing, callerMinorVersion: minorVersion, close: close,
            upgrade: upgrade, into: &output)
    }
    return text(result ?? [])
}

func names(_ list: String...) -> NameSet {
    NameSet(list.compactMap { FieldName($0) })
}
