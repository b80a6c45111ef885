internal import HTTP1
internal import Octets

/// The credentials that went out with a request, looked for in its answer (`answers: conceal`).
///
/// An exception to the law against allocation, for the routes that conceal: a credential is spelled in each way that is looked for, and
/// octets that may be the beginning of one are kept until the next piece of the answer has come. Both are bounded, by the longest
/// credential that fits into a head and by `Concealment.longest`.
final class AnswerConcealment {
    private var machine = Concealment()
    /// A credential went out, or is about to, that is too short to be told from other text.
    private(set) var lacksLength = false
    /// Names of cookies that carry credentials: the caller gets none of these.
    private var cookies: [[UInt8]] = []
    /// Places that `takeFound` has told of.
    private var counted: UInt64 = 0
    /// The last piece of a body with the trailers behind it.
    private var ending = UnsafeMutableRawBufferPointer(start: nil, count: 0)

    deinit { ending.deallocate() }

    /// - Returns: places at which credentials were found since the last call.
    func takeFound() -> UInt64 {
        defer { counted = machine.found }
        return machine.found - counted
    }
}

// MARK: - The credentials

extension AnswerConcealment {
    /// - Parameters:
    ///   - value: a token, or the value of a field.
    ///   - mayHaveScheme: a scheme's name may stand before the token.
    func add(_ value: UnsafeRawBufferPointer, mayHaveScheme: Bool) {
        if value.count < Concealment.shortest { lacksLength = true }
        machine.add(value)
        addPassword(in: value)
        guard mayHaveScheme, let blank = value.firstIndex(of: 0x20), value[..<blank].allSatisfy(\.isTokenCharacter)
        else { return }
        let token = UnsafeRawBufferPointer(rebasing: value[(blank + 1)...])
        machine.add(token)
        addPassword(in: token)
    }

    /// A secret that stands in a field, as whoever wrote the field names it.
    func add(named secret: UnsafeRawBufferPointer) {
        add(secret, mayHaveScheme: false)
        addDecoded(secret)
    }

    /// A credential in the encoding that its place asks for.
    func add(asSent value: UnsafeRawBufferPointer) { machine.add(value) }

    /// The cookies of a list; the values of those that a program has put together may stand there alone.
    /// - Parameter list: a field line with or without its name, or a pair alone.
    func add(cookies list: UnsafeRawBufferPointer) {
        forEachPair(in: list) { name, value in
            withhold(name)
            machine.add(value)
            addDecoded(value)
        }
    }

    /// The names of the cookies of a list whose values are named otherwise.
    /// - Parameter list: the value of a field.
    func withhold(cookiesOf list: UnsafeRawBufferPointer) { forEachPair(in: list) { name, _ in withhold(name) } }

    private func withhold(_ name: UnsafeRawBufferPointer) {
        if !cookies.contains(where: { $0.elementsEqual(name) }) { cookies.append(Array(name)) }
    }

    private func forEachPair(
        in list: UnsafeRawBufferPointer,
        _ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void
    ) {
        let name = Array("cookie:".utf8)
        let pairs = list.starts(with: name, by: { $0.asciiLowercased == $1 }) ? list[name.count...] : list[...]
        for pair in pairs.split(separator: 0x3B) {
            guard let sign = pair.firstIndex(of: 0x3D) else { continue }
            body(pair[..<sign].trimmed, pair[(sign + 1)...].trimmed)
        }
    }

    /// Programs that read cookies decode what is percent-encoded in them, and may show the result.
    private func addDecoded(_ value: UnsafeRawBufferPointer) {
        guard value.contains(0x25), var decoded = PercentEncoding.decode(value) else { return }
        decoded.withUnsafeBytes { machine.add($0) }
        decoded.wipe()
    }

    /// User and password are looked for as well, and the password alone, where the token is both in base64 (RFC 7617).
    private func addPassword(in token: UnsafeRawBufferPointer) {
        let plain = UnsafeMutableRawBufferPointer.allocate(byteCount: token.count, alignment: 1)
        defer {
            plain.wipe()
            plain.deallocate()
        }
        guard let count = Base64.decode(token, into: plain) else { return }
        let text = UnsafeRawBufferPointer(rebasing: plain[..<count])
        guard let colon = text.firstIndex(of: 0x3A), !text.contains(where: \.isControl), text.isUTF8 else { return }
        machine.add(text)
        machine.add(UnsafeRawBufferPointer(rebasing: text[(colon + 1)...]))
    }
}

// MARK: - The answer

extension AnswerConcealment {
    /// Whether a `Set-Cookie` sets a cookie that carries a credential.
    func withholds(_ cookie: UnsafeRawBufferPointer) -> Bool {
        guard !cookies.isEmpty else { return false }
        let name = cookie.prefix { $0 != 0x3D && $0 != 0x3B }.trimmed
        return cookies.contains { $0.elementsEqual(name) }
    }

    /// Conceals in the value of a field, or in a reason, where it lies.
    func conceal(_ text: UnsafeMutableRawBufferPointer) { machine.conceal(text) }

    /// Takes a piece of the body, and its trailers with the last one.
    /// - Returns: octets that go on their way, and what in them is data and what trailers. They lie here until the next call.
    func pass(_ raw: UnsafeRawBufferPointer, _ step: BodyReader.Step) -> (UnsafeRawBufferPointer, BodyReader.Step) {
        let data = machine.take(UnsafeRawBufferPointer(rebasing: raw[step.data]), isLast: step.ended)
        var passed = step
        passed.data = 0..<data.count
        guard !step.trailers.isEmpty else { return (UnsafeRawBufferPointer(data), passed) }
        ending.deallocate()
        ending = .allocate(byteCount: data.count + Int(step.trailers.count), alignment: 16)
        ending.put(UnsafeRawBufferPointer(data), at: 0)
        ending.put(raw[step.trailers], at: data.count)
        passed.trailers = ByteRange(data.count..<ending.count)
        conceal(lines: UnsafeMutableRawBufferPointer(rebasing: ending[data.count...]))
        return (UnsafeRawBufferPointer(ending), passed)
    }

    /// The body pauses. Its reader may wait for the last of these octets before anything else comes.
    /// - Parameter target: has place for `Concealment.conceded`.
    /// - Returns: octets that go on their way.
    func pause(into target: UnsafeMutableRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: target[..<machine.pause(into: target)])
    }

    private func conceal(lines: UnsafeMutableRawBufferPointer) {
        for line in lines.split(separator: 0x0D) {
            guard let colon = line.firstIndex(of: 0x3A) else { continue }
            machine.conceal(UnsafeMutableRawBufferPointer(rebasing: lines[(colon + 1)..<line.endIndex]))
        }
    }
}

extension Slice<UnsafeRawBufferPointer> {
    /// The text without blanks, line ends and quotes at its edges.
    fileprivate var trimmed: UnsafeRawBufferPointer {
        var rest = self
        while let first = rest.first, first <= 0x20 || first == 0x22 { rest = rest.dropFirst() }
        while let last = rest.last, last <= 0x20 || last == 0x22 { rest = rest.dropLast() }
        return UnsafeRawBufferPointer(rebasing: rest)
    }
}
