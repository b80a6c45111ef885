/// Walks all challenges of a response without allocating.
///
/// The field lines are one list (RFC 9110 §5.3, §11.6.1): a comma parts challenges and parameters alike, so after a
/// comma a token followed by `=` belongs to the challenge at hand and any other token starts the next one. A challenge
/// that cannot be read is told with its faults and the list goes on after the next comma outside quotes.
public struct ChallengeList: Sendable {
    /// Something stood where a challenge had to start.
    public private(set) var isMalformed = false
    /// More than 16 field lines were received; the rest is not read.
    public private(set) var isTruncated = false

    private var lines = InlineArray<16, ByteRange>(repeating: .empty)
    private var lineCount = 0
    private var line = 0
    private var cursor = 0
    private var end = 0

    /// All lines of a field: `.wwwAuthenticate`, `.proxyAuthenticate`.
    public init(_ head: borrowing ResponseHead, _ field: KnownField = .wwwAuthenticate) {
        guard head.contains(field) else { return }
        for index in 0..<head.fieldCount where head[index].known == field {
            add(head[index].value)
        }
        openLine()
    }

    /// One field value.
    public init(value: ByteRange) {
        add(value)
        openLine()
    }
}

// MARK: -

extension ChallengeList {
    /// The next challenge, or nil at the end of the list.
    ///
    /// - Parameter bytes: what the head was parsed from.
    public mutating func next(_ bytes: Span<UInt8>) -> Challenge? {
        while skipSeparators(bytes) {
            let scheme = readToken(bytes)
            if scheme.isEmpty || (!atEnd && !isBreak(bytes)) {
                isMalformed = true
                skipMember(bytes)
                continue
            }
            // A parameter that no challenge owns.
            if takeEquals(bytes) {
                isMalformed = true
                skipMember(bytes)
                continue
            }
            var challenge = Challenge(scheme: scheme)
            readContent(of: &challenge, bytes)
            return challenge
        }
        return nil
    }

    /// What follows a scheme: `token68`, or parameters up to the next challenge.
    private mutating func readContent(of challenge: inout Challenge, _ bytes: Span<UInt8>) {
        skipBlanks(bytes)
        if !atEnd, bytes[cursor] != 0x2C {
            if let token68 = readToken68(bytes) {
                challenge.token68 = token68
            } else {
                readParameter(of: &challenge, bytes)
            }
        }
        while true {
            let lineBefore = line
            let cursorBefore = cursor
            guard skipSeparators(bytes) else { return }
            let nameStart = cursor
            let name = readToken(bytes)
            if !name.isEmpty, takeEquals(bytes) {
                // `token68` and parameters exclude each other.
                if !challenge.token68.isEmpty { challenge.faults.insert(.malformed) }
                cursor = nameStart
                readParameter(of: &challenge, bytes)
                continue
            }
            if name.isEmpty || (!atEnd && !isBreak(bytes)) {
                // Junk between two commas: whose it is cannot be told, so the challenge before it pays.
                challenge.faults.insert(.malformed)
                skipMember(bytes)
                continue
            }
            // A new scheme. Read it again from the comma on.
            reopen(line: lineBefore, cursor: cursorBefore)
            return
        }
    }

    /// One `auth-param` up to its comma; what is wrong with it is marked on the challenge.
    private mutating func readParameter(of challenge: inout Challenge, _ bytes: Span<UInt8>) {
        var parameter = ChallengeParameter()
        parameter.name = readToken(bytes)
        guard !parameter.name.isEmpty, takeEquals(bytes), !atEnd else {
            challenge.faults.insert(.malformed)
            skipMember(bytes)
            return
        }
        if bytes[cursor] == 0x22 {
            guard readQuoted(&parameter, &challenge.faults, bytes) else {
                challenge.faults.insert(.unterminatedQuote)
                return
            }
        } else {
            parameter.value = readToken(bytes)
            if parameter.value.isEmpty { challenge.faults.insert(.malformed) }
        }
        skipBlanks(bytes)
        if !atEnd, bytes[cursor] != 0x2C {
            challenge.faults.insert(.malformed)
            skipMember(bytes)
        }
        challenge.add(parameter, in: bytes)
    }

    /// False when the quote never ends; the rest of the line is then spent.
    private mutating func readQuoted(
        _ parameter: inout ChallengeParameter, _ faults: inout ChallengeFaults, _ bytes: Span<UInt8>
    ) -> Bool {
        parameter.isQuoted = true
        cursor &+= 1
        let start = cursor
        while cursor < end {
            let octet = bytes[cursor]
            if octet == 0x22 {
                parameter.value = ByteRange(start..<cursor)
                cursor &+= 1
                return true
            }
            if octet == 0x5C {
                parameter.isEscaped = true
                cursor &+= 1
                guard cursor < end else { return false }
                if isLineBreak(bytes[cursor]) || bytes[cursor] == 0 { faults.insert(.controlOctet) }
            } else if octet == 0 {
                faults.insert(.controlOctet)
            } else if isLineBreak(octet) {
                if isFold(bytes) {
                    parameter.isEscaped = true
                    cursor &+= 1
                } else {
                    faults.insert(.controlOctet)
                }
            }
            cursor &+= 1
        }
        return false
    }

    /// `token68` if it reaches to a comma or the end, else nil with nothing read.
    private mutating func readToken68(_ bytes: Span<UInt8>) -> ByteRange? {
        let start = cursor
        var position = cursor
        while position < end, OctetClass.token68.contains(bytes[position]) { position &+= 1 }
        guard position > start else { return nil }
        while position < end, bytes[position] == 0x3D { position &+= 1 }
        let found = ByteRange(start..<position)
        cursor = position
        skipBlanks(bytes)
        if atEnd || bytes[cursor] == 0x2C { return found }
        cursor = start
        return nil
    }
}

// MARK: - Octets

extension ChallengeList {
    private mutating func add(_ value: ByteRange) {
        guard lineCount < 16 else {
            isTruncated = true
            return
        }
        lines[lineCount] = value
        lineCount += 1
    }

    private mutating func openLine() {
        guard line < lineCount else { return }
        reopen(line: line, cursor: Int(lines[line].start))
    }

    private mutating func reopen(line: Int, cursor: Int) {
        self.line = line
        self.cursor = cursor
        end = Int(lines[line].end)
    }

    private var atEnd: Bool { cursor >= end }

    /// Passes over commas and blanks, and from one line to the next as over a comma. False at the end of the list.
    private mutating func skipSeparators(_ bytes: Span<UInt8>) -> Bool {
        while line < lineCount {
            skipBlanks(bytes)
            if atEnd {
                guard line + 1 < lineCount else { return false }
                line += 1
                openLine()
            } else if bytes[cursor] == 0x2C {
                cursor &+= 1
            } else {
                return true
            }
        }
        return false
    }

    private mutating func skipBlanks(_ bytes: Span<UInt8>) {
        while cursor < end {
            if isBlank(bytes[cursor]) {
                cursor &+= 1
            } else if isFold(bytes) {
                cursor &+= 2
            } else {
                return
            }
        }
    }

    /// CRLF before a blank, which is one blank too. Any other CR or LF is no fold.
    private func isFold(_ bytes: Span<UInt8>) -> Bool {
        cursor &+ 2 < end && bytes[cursor] == 0x0D && bytes[cursor &+ 1] == 0x0A && isBlank(bytes[cursor &+ 2])
    }

    private mutating func readToken(_ bytes: Span<UInt8>) -> ByteRange {
        let start = cursor
        while cursor < end, OctetClass.token.contains(bytes[cursor]) { cursor &+= 1 }
        return ByteRange(start..<cursor)
    }

    /// `BWS "=" BWS`, or nothing.
    private mutating func takeEquals(_ bytes: Span<UInt8>) -> Bool {
        let start = cursor
        skipBlanks(bytes)
        guard !atEnd, bytes[cursor] == 0x3D else {
            cursor = start
            return false
        }
        cursor &+= 1
        skipBlanks(bytes)
        return true
    }

    /// What may follow a token that is a scheme, besides the end: a blank, a fold, a comma. (`=` is asked for apart.)
    private func isBreak(_ bytes: Span<UInt8>) -> Bool {
        let octet = bytes[cursor]
        return isBlank(octet) || octet == 0x2C || octet == 0x3D || isFold(bytes)
    }

    /// On to the next comma outside quotes.
    private mutating func skipMember(_ bytes: Span<UInt8>) {
        var isQuoted = false
        while cursor < end {
            let octet = bytes[cursor]
            if isQuoted, octet == 0x5C {
                cursor &+= 1
            } else if octet == 0x22 {
                isQuoted.toggle()
            } else if octet == 0x2C, !isQuoted {
                return
            }
            cursor &+= 1
        }
        // A backslash at the very end must not carry the cursor past it.
        cursor = min(cursor, end)
    }
}
