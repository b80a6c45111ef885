internal import HTTP1
internal import Handshakes
internal import HotCache
internal import Octets
internal import TLS
internal import Tokens

extension CallerConnection {
    /// Finds the one value that names the end user. None, two, an empty or overlong one, and control characters are refused: whose
    /// request it is must not be a matter of interpretation.
    func findSubject(on route: RoutePlan) -> Fault? {
        guard let plan = route.subject else { return nil }
        if plan.source == .certificate {
            // A certificate with two names would leave the choice to us.
            guard let tls = peer.tls, tls.names.count == 1, isName(tls.names[0].count) else {
                return Fault(.subjectMissing)
            }
            return tls.answers(for: requestHost) ? nil : Fault(.misdirected)
        }
        var found = false
        for index in 0..<data.requestHead.fieldCount {
            let field = data.requestHead[index]
            guard equalsIgnoringCase(input[field.name], plan.field) else { continue }
            guard !found else { return Fault(.subjectMissing) }
            found = true
            exchange.request.subjectAt = field.value
        }
        guard found else { return Fault(.subjectMissing) }
        // The placeholder of `token_stub` stands for nobody, and is no token to exchange.
        if route.edits.dropsPlaceholders, input.octets.holdsPlaceholder(exchange.request.subjectAt) {
            return Fault(.subjectMissing)
        }
        if plan.source == .callerToken {
            guard let token = bearerToken(in: exchange.request.subjectAt) else { return Fault(.subjectMissing) }
            exchange.request.subjectAt = token
            return nil
        }
        let value = input[exchange.request.subjectAt]
        guard isName(value.count), !value.contains(where: { $0 < 0x20 || $0 == 0x7f }) else {
            return Fault(.subjectMissing)
        }
        return nil
    }

    private func isName(_ count: Int) -> Bool { (1...SubjectPlan.longestName).contains(count) }

    /// `Bearer` and one token68 (RFC 6750 §2.1).
    private func bearerToken(in range: ByteRange) -> ByteRange? {
        let value = input[range]
        let scheme: StaticString = "bearer "
        guard value.count > 7 else { return nil }
        for index in 0..<7 where value[index].asciiLowercased != scheme.utf8Start[index] { return nil }
        var start = 7
        while start < value.count, value[start] == 0x20 { start += 1 }
        guard (1...SubjectPlan.longestToken).contains(value.count - start) else { return nil }
        for index in start..<value.count {
            switch value[index] {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2b, 0x2d, 0x2e, 0x2f, 0x3d, 0x5f, 0x7e: break
            default: return nil
            }
        }
        return ByteRange(range.indices.lowerBound + start..<range.indices.upperBound)
    }

    /// The key of whoever `findSubject` found. On a hit this is all the work that a token for each user costs more: one hash, one walk.
    private func withSubjectKey<Result>(
        _ plan: SubjectPlan, _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        switch plan.source {
        case .header: return body(input[exchange.request.subjectAt])
        case .certificate:
            guard let name = peer.tls?.names.first else { return body(UnsafeRawBufferPointer(start: nil, count: 0)) }
            return name.withUnsafeBytes(body)
        case .callerToken:
            return withUnsafeTemporaryAllocation(byteCount: SubjectPlan.digestSize, alignment: 1) { key in
                key[0] = SubjectPlan.digestMark
                sha256(input[exchange.request.subjectAt], into: UnsafeMutableRawBufferPointer(rebasing: key[1...]))
                return body(UnsafeRawBufferPointer(key))
            }
        }
    }

    func lookUpSubject(on route: RoutePlan) -> Exchange.Lookup {
        guard let plan = route.subject, let space = route.slot else { return route.isList ? .open : .cold }
        guard let slot = withSubjectKey(plan, { data.reader.slot(of: $0, in: space) }) else { return .cold }
        return lookUp(slot)
    }

    /// For the keeper; nil on routes whose token is everybody's.
    func subject(on route: RoutePlan) -> RequestSubject? {
        guard block != nil else { return nil }
        if route.urls != nil {
            return RequestSubject(key: URLKey.with(heldPath, on: route) { ByteString($0) }, token: nil)
        }
        guard let plan = route.subject else { return nil }
        let token = plan.source == .callerToken ? Secret(input[exchange.request.subjectAt]) : nil
        return RequestSubject(key: withSubjectKey(plan) { ByteString($0) }, token: token)
    }
}
