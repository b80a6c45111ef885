internal import Configuration
internal import Octets
internal import TLS

/// The values that the names of a recipe's templates stand for at one moment, and how a template becomes bytes for its place.
struct RecipeValues {
    var identity: String
    var secrets: [String: Secret] = [:]
    var challenge: [String: Secret] = [:]
    var steps: [String: [String: Secret]] = [:]
    var signed: [String: [UInt8]] = [:]
    var token: Secret?
    var request: Request?
    /// Keys that were read before.
    var keys: ProofKeys?
    /// Seconds since 1970, one instant for everything that is computed together.
    var wallSeconds: Int64
    /// 16 random bytes.
    var entropy: [UInt8]

    /// The request that is signed, or whose refusal the token answers.
    struct Request: Sendable {
        /// The URL as the upstream sees it, absolute, octet for octet.
        var url: [UInt8]
        var method: String
        /// nil where no body is at hand.
        var bodySHA256: [UInt8]?
        var headers: [(name: String, value: String)] = []
    }

    /// Where a template's bytes go, and hence how its values are encoded (docs/security/guarantees.md#invariant-14).
    enum Target: Sendable {
        /// The inside of a JSON string.
        case json
        /// A name or value of a form.
        case form
        /// Path or query of a URL.
        case url
        /// A field's value: nothing encodes there, so what does not fit is refused.
        case header
        /// The text as it is.
        case text
    }

    typealias Fault = TextFault
}

// MARK: - Templates

extension RecipeValues {
    func bytes(of template: RecipeTemplate, for target: Target) throws(Fault) -> [UInt8] {
        var result: [UInt8] = []
        for part in template.parts {
            switch part {
            case .text(let text):
                // The file's own text in a URL is encoded already; elsewhere a text is encoded like a value.
                if target == .url {
                    result += Array(text.utf8)
                } else {
                    try append(Array(text.utf8), for: target, to: &result)
                }
            case .value(let expression):
                var value = try bytes(of: expression)
                defer { value.wipe() }
                try append(value, for: target, to: &result)
            }
            guard result.count <= Recipe.Bound.body else { throw Fault("longer than 64 KiB") }
        }
        if target == .header {
            guard result.allSatisfy({ (0x20...0x7E).contains($0) || $0 == 0x09 }) else {
                throw Fault("not visible ASCII, as a header needs it")
            }
        }
        return result
    }

    private func append(_ value: [UInt8], for target: Target, to result: inout [UInt8]) throws(Fault) {
        switch target {
        case .json:
            guard value.isUTF8 else { throw Fault("not UTF-8, as JSON needs it") }
            result.appendJSONEscaped(value)
        case .form: for byte in value { result.appendFormEncoded(byte) }
        case .url: for byte in value { result.appendPercentEncoded(byte) }
        case .header, .text: result += value
        }
    }

    func bytes(of expression: RecipeTemplate.Expression) throws(Fault) -> [UInt8] {
        var value: [UInt8] = []
        for term in expression.terms {
            var piece: [UInt8] =
                switch term {
                case .text(let text): Array(text.utf8)
                case .name(let name): try bytes(of: name)
                case .inner(let inner): try bytes(of: inner)
                }
            value += piece
            piece.wipe()
        }
        for pipe in expression.pipes {
            guard value.count <= Recipe.Bound.body else { throw Fault("longer than 64 KiB") }
            // Each stage may be a secret; what it leaves behind is wiped with it.
            let next = try through(pipe, value)
            value.wipe()
            value = next
        }
        return value
    }

    private func through(_ pipe: RecipeTemplate.Pipe, _ value: [UInt8]) throws(Fault) -> [UInt8] {
        switch pipe {
        case .plain(.base64): return Base64.octets(of: value)
        case .plain(.base64url): return Array(Base64.encodeURL(value).utf8)
        case .plain(.hex): return Hexadecimal.octets(of: value)
        case .plain(.sha256): return sha256(value)
        case .hmacSHA256(let key):
            var key = try bytes(of: key)
            defer { key.wipe() }
            return keyedHash(key: key, value)
        case .jws(let secret, let algorithm, let keyID):
            guard let key = secrets[secret] else { throw Fault("secret.\(secret) is not there") }
            return try RecipeJWS.compact(
                payload: value, key: key, named: secret, algorithm, keyID: keyID, known: keys)
        case .plain(.url): return try encoded(value, for: .url)
        case .plain(.json): return try encoded(value, for: .json)
        case .plain(.xml):
            guard value.isUTF8, !value.contains(where: { $0 < 0x20 && ![0x09, 0x0A, 0x0D].contains($0) }) else {
                throw Fault("not text, as XML needs it")
            }
            return value.xmlEscaped
        case .plain(.canonicalQuery): return value.canonicalQuery
        }
    }

    private func encoded(_ value: [UInt8], for target: Target) throws(Fault) -> [UInt8] {
        var result: [UInt8] = []
        try append(value, for: target, to: &result)
        return result
    }
}

// MARK: - Names

extension RecipeValues {
    private func bytes(of name: RecipeName) throws(Fault) -> [UInt8] {
        switch name {
        case .secret(let name): return try copy(secrets[name], "secret.\(name)")
        case .challenge(let name): return try copy(challenge[name], "challenge.\(name)")
        case .step(let step, let take): return try copy(steps[step]?[take], "\(step).\(take)")
        case .signed(let name):
            guard let value = signed[name] else { throw Fault("sign.\(name) is not there") }
            return value
        case .request(let part): return try part.bytes(of: request)
        case .requestHeader(let name):
            // Several lines of one field are one list (RFC 9110 §5.3).
            let values = (request?.headers ?? []).filter { Array($0.name.utf8).matches(name) }.map(\.value)
            let value = values.joined(separator: ", ")
            // The text of octets that are none would be signed, and the octets sent.
            guard !value.unicodeScalars.contains("\u{FFFD}") else { throw Fault("request.header.\(name) is not UTF-8") }
            return Array(value.utf8)
        case .own(.identityName): return Array(identity.utf8)
        case .own(.uuid): return UUIDText.version4(entropy)
        case .own(.now): return Array(String(wallSeconds).utf8)
        case .own(.nowISO): return Array(WallClockText(wallSeconds).extended.utf8)
        case .own(.nowBasic): return Array(WallClockText(wallSeconds).basic.utf8)
        case .own(.dateBasic): return Array(WallClockText(wallSeconds).basicDate.utf8)
        case .moment(let seconds): return Array(String(wallSeconds + seconds).utf8)
        case .token: return try copy(token, "token")
        }
    }

    private func copy(_ secret: Secret?, _ name: String) throws(Fault) -> [UInt8] {
        guard let secret else { throw Fault("\(name) is not there") }
        return secret.withBytes { Array($0) }
    }
}

extension RecipeName.RequestPart {
    fileprivate func bytes(of request: RecipeValues.Request?) throws(RecipeValues.Fault) -> [UInt8] {
        guard let request else { throw .init("no request is at hand") }
        let bytes = request.url
        let parts = URLParts(bytes)
        switch self {
        case .url: return bytes
        case .host: return Array(bytes[parts.authority])
        case .path: return parts.path.isEmpty ? [UInt8(ascii: "/")] : Array(bytes[parts.path])
        case .query: return Array(bytes[parts.query])
        case .method: return Array(request.method.utf8)
        case .bodySHA256:
            guard let digest = request.bodySHA256 else { throw .init("the body is not at hand") }
            return digest
        }
    }
}

/// Where the parts of an absolute URL of ours stand.
private struct URLParts {
    let authority: Range<Int>
    let path: Range<Int>
    let query: Range<Int>

    init(_ bytes: [UInt8]) {
        var start = 0
        if let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8) {
            start = colon + 3
        }
        let target = bytes[start...].firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? bytes.count
        let mark = bytes[target...].firstIndex(of: UInt8(ascii: "?")) ?? bytes.count
        authority = start..<target
        path = target..<mark
        query = min(mark + 1, bytes.count)..<bytes.count
    }
}
