// Any bytes as the value of WWW-Authenticate: ranges stay inside and in order, the walk ends, and the challenges
// without fault read the same after they are written by the grammar, alone and as one list.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzChallenge(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    var list = ChallengeList(value: ByteRange(0..<bytes.count))
    var last: Int32 = -1
    var usable: [[UInt8]] = []
    while let challenge = list.next(bytes.span) {
        inside(challenge.scheme, bytes.count)
        precondition(challenge.scheme.start > last && challenge.scheme.count > 0)
        last = challenge.scheme.start
        inside(challenge.token68, bytes.count)
        precondition(challenge.parameterCount <= 16)
        for index in 0..<challenge.parameterCount {
            inside(challenge[index].name, bytes.count)
            inside(challenge[index].value, bytes.count)
        }
        if challenge.isUsable { usable.append(checkRewrite(challenge, bytes)) }
    }
    let joined = Array(usable.joined(separator: [0x2C, 0x20]))
    var again = ChallengeList(value: ByteRange(0..<joined.count))
    for text in usable {
        guard let challenge = again.next(joined.span) else { preconditionFailure("a challenge is missing") }
        precondition(challenge.isUsable && checkRewrite(challenge, joined) == text)
    }
    precondition(again.next(joined.span) == nil && !again.isMalformed)
    return 0
}

private func inside(_ range: ByteRange, _ count: Int) {
    precondition(range.start >= 0 && range.count >= 0 && Int(range.end) <= count)
}

private func checkRewrite(_ challenge: Challenge, _ bytes: [UInt8]) -> [UInt8] {
    precondition(challenge.token68.isEmpty || challenge.parameterCount == 0)
    var text = Array(bytes[challenge.scheme.indices])
    if !challenge.token68.isEmpty { text += [0x20] + bytes[challenge.token68.indices] }
    for index in 0..<challenge.parameterCount {
        text += index == 0 ? [0x20] : [0x2C]
        text += bytes[challenge[index].name.indices] + [0x3D, 0x22]
        for octet in Challenge.unescaped(challenge[index], in: bytes.span) {
            precondition(octet != 0 && octet != 0x0D && octet != 0x0A)
            text += octet == 0x22 || octet == 0x5C ? [0x5C, octet] : [octet]
        }
        text.append(0x22)
    }
    var list = ChallengeList(value: ByteRange(0..<text.count))
    guard let again = list.next(text.span) else { preconditionFailure("what was written does not parse") }
    precondition(again.isUsable && again.parameterCount == challenge.parameterCount)
    precondition(text[again.token68.indices] == bytes[challenge.token68.indices] || challenge.token68.isEmpty)
    for index in 0..<again.parameterCount {
        let one = Challenge.unescaped(challenge[index], in: bytes.span)
        precondition(Challenge.unescaped(again[index], in: text.span) == one)
    }
    precondition(list.next(text.span) == nil)
    return text
}
