@testable import HTTP1

private let limits = HeadLimits(headSize: 512, fields: 6, target: 100, method: 12, connectionOptions: 3)

/// Any bytes as the parts of a head that is put together with its index: read by the index and from the text it is the same head, or the
/// same fault. The parts are separated by 0xFF; the first byte chooses the kind.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzIndex(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    var parts = UnsafeBufferPointer(start: start, count: count).split(separator: 0xFF, omittingEmptySubsequences: false)
        .map(Array.init)
    let first = parts.removeFirst()
    guard let kind = first.first else { return 0 }
    var index = HeadIndex()
    var text: [UInt8] = []
    if kind & 1 == 0 {
        let target = parts.isEmpty ? [] : parts.removeFirst()
        let method = Array(first.dropFirst())
        index.begin(method: method.span, target: target.span)
        text += method
        text.append(0x20)
        text += target
        text += " HTTP/1.1\r\n".utf8
    } else {
        let status = 100 + Int(kind) * 3
        let reason = Array(first.dropFirst())
        index.begin(status: status, reason: reason.span)
        text += "HTTP/1.1 \(status) ".utf8
        text += reason
        text += "\r\n".utf8
    }
    while let name = parts.first {
        let value = parts.count > 1 ? parts[1] : []
        parts.removeFirst(min(2, parts.count))
        index.add(name: name.span, known: KnownField.named(name.span), value: value.span)
        text += name
        text += ": ".utf8
        text += value
        text += "\r\n".utf8
    }
    index.end()
    text += "\r\n".utf8
    precondition(!index.isKnown || index.length == text.count)
    text += "body".utf8
    compareRequests(text, index)
    compareResponses(text, index)
    return 0
}

private func compareRequests(_ text: [UInt8], _ index: borrowing HeadIndex) {
    var one = RequestHead(maxFields: 8)
    var other = RequestHead(maxFields: 8)
    var faults: [HeadFault?] = [nil, nil]
    do throws(HeadFault) { _ = try one.parse(text.span, index: index, limits: limits) } catch { faults[0] = error }
    do throws(HeadFault) { _ = try other.parse(text.span, limits: limits) } catch { faults[1] = error }
    precondition(faults[0] == faults[1])
    guard faults[0] == nil else { return }
    precondition(one.length == other.length && one.method == other.method && one.target == other.target)
    precondition(one.knownMethod == other.knownMethod && one.targetForm == other.targetForm && one.path == other.path)
    precondition(one.authority == other.authority && one.host == other.host && one.framing == other.framing)
    precondition(one.minorVersion == other.minorVersion && one.keepAlive == other.keepAlive)
    precondition(one.expectsContinue == other.expectsContinue && one.upgrade == other.upgrade)
    precondition(one.fieldCount == other.fieldCount && one.section.seen == other.section.seen)
    for number in 0..<one.fieldCount { precondition(one[number] == other[number]) }
}

private func compareResponses(_ text: [UInt8], _ index: borrowing HeadIndex) {
    var one = ResponseHead(maxFields: 8)
    var other = ResponseHead(maxFields: 8)
    var faults: [HeadFault?] = [nil, nil]
    do throws(HeadFault) { _ = try one.parse(text.span, index: index, limits: limits) } catch { faults[0] = error }
    do throws(HeadFault) { _ = try other.parse(text.span, limits: limits) } catch { faults[1] = error }
    precondition(faults[0] == faults[1])
    guard faults[0] == nil else { return }
    precondition(one.length == other.length && one.status == other.status && one.reason == other.reason)
    precondition(one.minorVersion == other.minorVersion && one.declaredLength == other.declaredLength)
    precondition(one.keepAlive == other.keepAlive)
    precondition(
        one.framing(forMethodHEAD: false, connect: false) == other.framing(forMethodHEAD: false, connect: false))
    precondition(one.fieldCount == other.fieldCount && one.section.seen == other.section.seen)
    for number in 0..<one.fieldCount { precondition(one[number] == other[number]) }
}
