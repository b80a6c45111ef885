internal import Configuration
internal import TLS

/// Text with values in it: `Basic {'svc:' secret.password | base64}`.
///
/// Between braces stand names, texts in quotes and parentheses, put together as they follow, then pipes. `{{` and `}}` are the braces
/// themselves. There are no loops and no conditions; every name is known when the file is read.
struct RecipeTemplate: Sendable, Hashable {
    /// A piece of a template.
    enum Part: Sendable, Hashable {
        case text(String)
        case value(Expression)
    }

    /// The text between two braces.
    struct Expression: Sendable, Hashable {
        /// Put together as they follow.
        var terms: [Term]
        /// Applied in order to the terms together.
        var pipes: [Pipe]
    }

    /// A piece of an expression.
    indirect enum Term: Sendable, Hashable {
        case text(String)
        case name(RecipeName)
        case inner(Expression)
    }

    /// A function of an expression's text.
    enum Pipe: Sendable, Hashable {
        case plain(Plain)
        /// Keyed by a secret or an earlier value.
        case hmacSHA256(RecipeName)
        /// A compact JWS (RFC 7515) over the text, by a key that is a secret; `keyID` goes into its header.
        case jws(secret: String, JWSAlgorithm, keyID: String?)

        /// A function of the text alone.
        enum Plain: String, Sendable, CaseIterable {
            case base64, base64url, hex, sha256
            /// Percent-encodes all but unreserved characters (RFC 3986 §2.3).
            case url
            /// For the inside of a JSON string, and of XML.
            case json, xml
            /// A query with its parameters decoded, encoded in one way, and sorted.
            case canonicalQuery = "canonical_query"
        }
    }

    /// Put together as they follow.
    var parts: [Part]
}

/// A name that a template may use.
enum RecipeName: Sendable, Hashable {
    case secret(String)
    case challenge(String)
    case step(String, take: String)
    case request(RequestPart)
    case requestHeader(String)
    case signed(String)
    case own(Own)
    /// `now`, so many seconds later or, with a minus, earlier.
    case moment(Int64)
    case token

    /// Seconds that a moment may be away.
    static let farthestMoment: Int64 = 366 * 86_400

    /// Values that are there in every template.
    enum Own: String, Sendable, CaseIterable {
        case identityName = "identity.name"
        /// A random UUID for each step or signed request.
        case uuid
        /// Seconds since 1970; and as `2026-11-21T08:00:00Z`, `20261121T080000Z`, `20261121`. One instant for each step or signed request.
        case now
        case nowISO = "now_iso"
        case nowBasic = "now_basic"
        case dateBasic = "date_basic"
    }

    /// Parts of the request that is signed.
    enum RequestPart: String, Sendable, CaseIterable {
        /// The URL as the upstream sees it, without fragment.
        case url
        /// With the port, where it is not the scheme's own.
        case host
        /// The path as sent, without the query.
        case path
        case method
        /// The query as sent, without its `?`; empty where there is none.
        case query
        /// 32 raw bytes.
        case bodySHA256 = "body_sha256"
    }
}

// MARK: - Where values come from

extension RecipeTemplate {
    /// The secrets in it, keys of signatures included.
    /// - Parameter signed: the secrets behind each signed value.
    func secrets(signed: [String: Set<String>]) -> Set<String> {
        names.reduce(into: []) { found, name in
            switch name {
            case .secret(let secret): found.insert(secret)
            case .signed(let value): found.formUnion(signed[value] ?? [])
            default: break
            }
        }
    }

    /// Every name, in the order written.
    var names: [RecipeName] {
        parts.flatMap { part -> [RecipeName] in
            if case .value(let expression) = part { expression.names } else { [] }
        }
    }
}

extension RecipeTemplate.Expression {
    /// Every name that the expression reads, those of its pipes too.
    var names: [RecipeName] {
        let terms = terms.flatMap { term -> [RecipeName] in
            switch term {
            case .text: []
            case .name(let name): [name]
            case .inner(let expression): expression.names
            }
        }
        return terms
            + pipes.compactMap { pipe in
                switch pipe {
                case .hmacSHA256(let key): key
                case .jws(let secret, _, _): .secret(secret)
                default: nil
                }
            }
    }

    /// Whether bytes that were received stand in the result as they came.
    /// - Parameters:
    ///   - signed: the signed values in which such bytes stand.
    ///   - isMeant: the names of such bytes.
    func shows(_ signed: Set<String>, where isMeant: (RecipeName) -> Bool) -> Bool {
        pipes.isEmpty
            && terms.contains { term in
                switch term {
                case .text: false
                case .name(.signed(let name)): signed.contains(name)
                case .name(let name): isMeant(name)
                case .inner(let expression): expression.shows(signed, where: isMeant)
                }
            }
    }

    /// Whether the result is bytes instead of text.
    /// - Parameter raw: the signed values that are.
    func isRaw(_ raw: Set<String>) -> Bool {
        for pipe in pipes.reversed() {
            switch pipe {
            case .plain(.sha256), .hmacSHA256: return true
            case .plain(.json), .plain(.xml): continue
            case .plain, .jws: return false
            }
        }
        return terms.contains { term in
            switch term {
            case .text: false
            case .name(.request(.bodySHA256)): true
            case .name(.signed(let name)): raw.contains(name)
            case .name: false
            case .inner(let expression): expression.isRaw(raw)
            }
        }
    }
}

extension RecipeTemplate {
    func shows(_ signed: Set<String>, where isMeant: (RecipeName) -> Bool) -> Bool {
        parts.contains {
            if case .value(let expression) = $0 { expression.shows(signed, where: isMeant) } else { false }
        }
    }

    func isRaw(_ raw: Set<String>) -> Bool {
        parts.contains { if case .value(let expression) = $0 { expression.isRaw(raw) } else { false } }
    }
}

extension RecipeName {
    /// Out of an answer or a caller's request: nobody of ours has chosen its bytes.
    var isReceived: Bool {
        switch self {
        case .challenge, .step, .request, .requestHeader, .token: true
        case .secret, .signed, .own, .moment: false
        }
    }
}

extension RecipeName {
    /// Out of a caller's request, where a caller can write a quote.
    var isCallers: Bool {
        switch self {
        case .request(.url), .request(.path), .request(.query), .requestHeader: true
        default: false
        }
    }
}

// MARK: - As written

extension RecipeTemplate: CustomStringConvertible {
    /// The template as it stands in the file, but for blanks: names instead of values.
    var description: String {
        parts.map { part in
            switch part {
            case .text(let text): text.replacing("{", with: "{{").replacing("}", with: "}}")
            case .value(let expression): "{\(expression)}"
            }
        }.joined()
    }
}

extension RecipeTemplate.Expression: CustomStringConvertible {
    /// The text as a configuration has it.
    var description: String {
        let terms = terms.map { term in
            switch term {
            case .text(let text): text.contains("'") ? "\"\(text)\"" : "'\(text)'"
            case .name(let name): name.description
            case .inner(let expression): "(\(expression))"
            }
        }
        return terms.joined(separator: " ") + pipes.map { " | \($0)" }.joined()
    }
}

extension RecipeTemplate.Pipe: CustomStringConvertible {
    /// The text as a configuration has it.
    var description: String {
        switch self {
        case .plain(let pipe): pipe.rawValue
        case .hmacSHA256(let key): "hmac_sha256(\(key))"
        case .jws(let secret, let algorithm, nil): "jws(secret.\(secret), \(algorithm.rawValue))"
        case .jws(let secret, let algorithm, let id?): "jws(secret.\(secret), \(algorithm.rawValue), '\(id)')"
        }
    }
}

extension RecipeName: CustomStringConvertible {
    /// The text as a configuration has it.
    var description: String {
        switch self {
        case .secret(let name): "secret.\(name)"
        case .challenge(let name): "challenge.\(name)"
        case .step(let step, let take): "\(step).\(take)"
        case .request(let part): "request.\(part.rawValue)"
        case .requestHeader(let name): "request.header.\(name)"
        case .signed(let name): "sign.\(name)"
        case .own(let name): name.rawValue
        case .moment(let seconds): "now\(seconds < 0 ? "-" : "+")\(seconds.magnitude)"
        case .token: "token"
        }
    }
}
