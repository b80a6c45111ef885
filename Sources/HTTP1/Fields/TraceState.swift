internal import Octets

/// How many members a value of `tracestate` has; nil where it is malformed (W3C Trace Context, section 3.3.1).
///
/// Empty members are allowed and not counted. Whether a key occurs twice is not looked for: no member is read here.
public func traceStateMembers(_ value: Span<UInt8>) -> Int? {
    var members = ListMembers(ByteRange(0..<value.count))
    var count = 0
    while let member = members.next(in: value) {
        guard !member.isEmpty else { continue }
        guard isTraceStateMember(value.extracting(member.indices)) else { return nil }
        count &+= 1
    }
    return count
}

/// Members of all values together.
public let mostTraceStateMembers = 32

private func isTraceStateMember(_ member: Span<UInt8>) -> Bool {
    var index = 0
    var systems = 0
    while index < member.count, member[index] != 0x3D {
        let octet = member[index]
        let isFirst = index == 0
        if octet == 0x40, !isFirst {
            systems &+= 1
        } else if !(octet.isDigit || 0x61...0x7A ~= octet || !isFirst && "_-*/".utf8.contains(octet)) {
            return false
        }
        index &+= 1
    }
    guard index > 0, index <= 256, systems <= 1, index < member.count else { return false }
    let length = member.count &- index &- 1
    guard length > 0, length <= 256 else { return false }
    for position in index &+ 1..<member.count {
        let octet = member[position]
        guard 0x20...0x7E ~= octet, octet != 0x3D else { return false }
    }
    return true
}
