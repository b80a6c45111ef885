@testable import HTTP1

/// Any bytes as lines of WWW-Authenticate: the list is bounded, and the challenges without fault read the same after they are written by
/// the grammar, alone and as one list.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzChallenge(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    let list = AuthChallenge.list(bytes.split(separator: 0, omittingEmptySubsequences: false).map(Array.init))
    precondition(list.count <= AuthChallenge.mostChallenges)
    let usable = list.filter { $0.fault == nil && ($0.token68 == nil || $0.parameters.isEmpty) }.map(rewritten)
    let again = AuthChallenge.list([Array(usable.joined(separator: [0x2C, 0x20]))])
    precondition(again.map(rewritten) == usable)
    return 0
}

/// The challenge by the grammar, which reads the same.
private func rewritten(_ challenge: AuthChallenge) -> [UInt8] {
    precondition(!challenge.scheme.isEmpty && challenge.parameters.count <= AuthChallenge.mostParameters)
    var text = challenge.scheme
    if let token68 = challenge.token68 { text += [0x20] + token68 }
    for (index, parameter) in challenge.parameters.enumerated() {
        text += (index == 0 ? [0x20] : [0x2C]) + parameter.name + [0x3D, 0x22]
        for octet in parameter.value {
            precondition(octet == 0x09 || octet >= 0x20 && octet != 0x7F)
            text += octet == 0x22 || octet == 0x5C ? [0x5C, octet] : [octet]
        }
        text.append(0x22)
    }
    let again = AuthChallenge.list([text])
    precondition(again.count == 1 && again[0].fault == nil && again[0].scheme == challenge.scheme)
    precondition(again[0].token68 == challenge.token68)
    precondition(again[0].parameters.map(\.name) == challenge.parameters.map(\.name))
    precondition(again[0].parameters.map(\.value) == challenge.parameters.map(\.value))
    return text
}
