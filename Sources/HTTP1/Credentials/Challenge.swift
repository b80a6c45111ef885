/// One challenge of `WWW-Authenticate` or `Proxy-Authenticate` (RFC 9110 §11.3), as offsets.
public struct Challenge: Sendable {
    /// Compare it in any case.
    public internal(set) var scheme: ByteRange
    /// The `token68` form, its `=` included; empty where there are parameters or nothing.
    public internal(set) var token68 = ByteRange.empty
    /// At most 16; see `ChallengeFaults.tooManyParameters`.
    public internal(set) var parameterCount = 0
    /// Any fault makes the challenge unusable.
    public internal(set) var faults: ChallengeFaults = []

    var parameters = InlineArray<16, ChallengeParameter>(repeating: ChallengeParameter())

    init(scheme: ByteRange) {
        self.scheme = scheme
    }
}

/// One `auth-param`.
public struct ChallengeParameter: Sendable, Equatable {
    /// Compare it in any case.
    public var name = ByteRange.empty
    /// Of a quoted string what stands between the quotes, as received.
    public var value = ByteRange.empty
    /// The value was a quoted-string (RFC 9110 §5.6.4).
    public var isQuoted = false
    /// The value holds quoted-pairs or a fold; `Challenge.unescaped` undoes both.
    public var isEscaped = false
}

/// What makes a challenge unusable. The list goes on after it.
public struct ChallengeFaults: OptionSet, Sendable, Equatable {
    /// A bit for each fault.
    public let rawValue: UInt8

    /// Any bits are allowed.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Something that is neither parameter nor `token68`: a value with `=` or `/` outside quotes, missing values, junk.
    public static var malformed: ChallengeFaults { ChallengeFaults(rawValue: 1) }
    /// A parameter occurs twice, names compared in any case (RFC 9110 §11.2).
    public static var duplicateParameter: ChallengeFaults { ChallengeFaults(rawValue: 2) }
    /// The field ends within a quoted-string.
    public static var unterminatedQuote: ChallengeFaults { ChallengeFaults(rawValue: 4) }
    /// CR, LF or NUL in a value, folds apart.
    public static var controlOctet: ChallengeFaults { ChallengeFaults(rawValue: 8) }
    /// More than 16 parameters; the rest is not kept.
    public static var tooManyParameters: ChallengeFaults { ChallengeFaults(rawValue: 16) }
}

// MARK: - Reading

extension Challenge {
    /// Nothing speaks against using it.
    public var isUsable: Bool { faults.isEmpty }

    /// - Precondition: `index` is in `0..<parameterCount`.
    public subscript(index: Int) -> ChallengeParameter {
        precondition(index >= 0 && index < parameterCount)
        return parameters[index]
    }

    /// Whether the scheme is `name`, in any case.
    public func isScheme(_ name: Span<UInt8>, in bytes: Span<UInt8>) -> Bool {
        equalsIgnoringCase(scheme, bytes, name)
    }

    /// The first parameter of this name, in any case.
    public func parameter(_ name: Span<UInt8>, in bytes: Span<UInt8>) -> ChallengeParameter? {
        for index in 0..<parameterCount where equalsIgnoringCase(parameters[index].name, bytes, name) {
            return parameters[index]
        }
        return nil
    }

    /// Writes a value with its quoted-pairs undone and each fold as one blank. Nothing else is decoded.
    public static func appendUnescaped(
        _ parameter: ChallengeParameter, in bytes: Span<UInt8>, into output: inout OutputCursor
    ) {
        var cursor = Int(parameter.value.start)
        let end = Int(parameter.value.end)
        while cursor < end {
            cursor = nextUnescaped(bytes, cursor, end) { output.append(byte: $0) }
        }
    }

    /// The same in memory of its own; not for the data path.
    public static func unescaped(_ parameter: ChallengeParameter, in bytes: Span<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(Int(parameter.value.count))
        var cursor = Int(parameter.value.start)
        let end = Int(parameter.value.end)
        while cursor < end {
            cursor = nextUnescaped(bytes, cursor, end) { result.append($0) }
        }
        return result
    }

    @inline(__always)
    private static func nextUnescaped(
        _ bytes: Span<UInt8>, _ cursor: Int, _ end: Int, _ emit: (UInt8) -> Void
    ) -> Int {
        let octet = bytes[cursor]
        if octet == 0x5C, cursor &+ 1 < end {
            emit(bytes[cursor &+ 1])
            return cursor &+ 2
        }
        if isLineBreak(octet) {
            var next = cursor
            while next < end, isLineBreak(bytes[next]) || isBlank(bytes[next]) { next &+= 1 }
            emit(0x20)
            return next
        }
        emit(octet)
        return cursor &+ 1
    }

    mutating func add(_ parameter: ChallengeParameter, in bytes: Span<UInt8>) {
        for index in 0..<parameterCount where bytes.matchesIgnoringCase(parameters[index].name, parameter.name) {
            faults.insert(.duplicateParameter)
        }
        guard parameterCount < 16 else {
            faults.insert(.tooManyParameters)
            return
        }
        parameters[parameterCount] = parameter
        parameterCount += 1
    }
}

private func equalsIgnoringCase(_ range: ByteRange, _ bytes: Span<UInt8>, _ name: Span<UInt8>) -> Bool {
    guard Int(range.count) == name.count else { return false }
    for offset in 0..<name.count where lowercased(bytes[Int(range.start) &+ offset]) != lowercased(name[offset]) {
        return false
    }
    return true
}
