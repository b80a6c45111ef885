/// `recipe`: a declared handshake for an in-house system. What is a challenge, what to take from it, which requests to make, what to
/// keep. Checked whole when the file is read, so that a run can only meet what the network brings.
public struct Recipe: Sendable, Equatable {
    /// In the order of the file.
    public var secrets: [RecipeSecret]
    /// The marks that tell a challenge from other answers.
    public var challenge: RecipeChallenge
    /// Names of challenge values that belong to the token's key.
    public var key: [String]
    /// At most 8, from the durable layer to the access layer; empty with `sign`.
    public var steps: [RecipeStep]
    /// Values computed for each request, each from those before it; at most 16; empty with `steps`.
    public var sign: [RecipeNamed]
    /// nil with `sign`.
    public var token: RecipeTemplate?
    /// With `steps` exactly one field, whose value ends with `{token}`; with `sign` at most 8.
    public var inject: [RecipeNamed]
    /// Where a refusal says how many attempts are left.
    public var attempts: RecipeTake?
    /// A path on the upstream that answers with a challenge and changes nothing.
    public var probe: String?

    /// Bounds of a recipe.
    public enum Bound {
        /// The most steps.
        public static let steps = 8
        /// The most signed fields.
        public static let signed = 16
        /// The most fields of one kind.
        public static let fields = 8
        /// Bytes of a request's body, and of any one value.
        public static let body = 64 * 1024
        /// Bytes of one taken value.
        public static let taken = 32 * 1024
        /// Bytes of a challenge value that is part of the token's key.
        public static let key = 1024
    }

    /// Credentials are computed for each request instead of being had from an issuer.
    public var isSigned: Bool { !sign.isEmpty }

    /// Whether a token needs data out of an upstream's challenge.
    public var isChallengeDriven: Bool { sign.isEmpty && challenge.isSelective }
}

/// A secret with the only places that it, and what is computed from it, may go to.
public struct RecipeSecret: Sendable, Equatable {
    /// The name that templates use after `secret.`.
    public var name: String
    /// Where the value is read.
    public var value: SecretReference
    /// The origins to which a request with the secret may go.
    public var to: [Origin]
}

/// Which answers of the upstream are challenges, and what they bring.
public struct RecipeChallenge: Sendable, Equatable {
    /// Any of these statuses.
    public var statuses: [Int]
    /// Of `WWW-Authenticate`.
    public var scheme: String?
    /// A header that only a challenge has.
    public var header: String?
    /// A place that only a challenge's JSON body has.
    public var json: RecipePointer?
    /// The values to take out of the challenge, in the order of the file.
    public var take: [RecipeTake]

    /// None of the three: tokens are had ahead of requests, and the status alone says that one was refused.
    public var isSelective: Bool { scheme != nil || header != nil || json != nil }
}

/// One request to an issuer.
public struct RecipeStep: Sendable, Equatable {
    /// How long the material of a step lives.
    public enum Layer: String, Sendable, CaseIterable, Comparable {
        case access = "access"
        case session = "session"
        case durable = "durable"

        private var depth: Int {
            switch self {
            case .durable: 0
            case .session: 1
            case .access: 2
            }
        }
        /// The layer that outlives the other is less.
        public static func < (left: Layer, right: Layer) -> Bool { left.depth < right.depth }
    }

    /// The body of a request.
    public enum Body: Sendable, Equatable {
        case none
        case json(RecipeJSON)
        case form([RecipeNamed])
        case text(RecipeTemplate)
    }

    /// Unique in the recipe.
    public var name: String
    /// Where the values that the step takes are kept.
    public var layer: Layer
    /// The request method (RFC 9110 §9).
    public var method: String
    /// Where the request goes; a template cannot change it.
    public var origin: Origin
    /// Path and query; values are percent-encoded in it.
    public var target: RecipeTemplate
    /// In the order of the file.
    public var headers: [RecipeNamed]
    /// `none` sends no body.
    public var body: Body
    /// Statuses of success; empty: every 2xx.
    public var accepted: [Int]
    /// Quarantines the secrets of the step; without any it counts as `stale`.
    public var rejected: RecipeRefusal
    /// What a lower layer keeps is no longer known. Looked at before `rejected`.
    public var stale: RecipeRefusal?
    /// The values to take out of a good answer.
    public var take: [RecipeTake]
}

/// Which answers refuse what a step sends.
public struct RecipeRefusal: Sendable, Equatable {
    /// Any of these statuses.
    public var statuses: [Int]
    /// Where given, the place must be there, too.
    public var json: RecipePointer?
    /// And match this.
    public var match: Pattern?
}

/// One value out of an answer.
public struct RecipeTake: Sendable, Equatable {
    /// Where in the answer the value stands.
    public enum Source: Sendable, Equatable {
        case json(RecipePointer)
        case header(String)
        case cookie(String)
        /// Of the challenge of the recipe's scheme.
        case param(String)
    }

    /// Unique in its step; templates name it after the step's name.
    public var name: String
    /// Looked at once, in the whole answer.
    public var source: Source
    /// The part of the value to take; nil takes all of it.
    public var match: Pattern?
    /// Instead of a value that is not there.
    public var otherwise: String?

    /// The value with this name says how long the others are good: seconds, or a duration with its unit.
    public static let lifetime = "lifetime"
}

/// A template under a name: a header, a member of a form, a signed value.
public struct RecipeNamed: Sendable, Hashable {
    /// The header, member or value that it makes.
    public var name: String
    /// The template of the value.
    public var value: RecipeTemplate
}

/// A JSON body with templates in its strings.
public indirect enum RecipeJSON: Sendable, Hashable {
    case string(RecipeTemplate)
    /// A number, `true`, `false` or `null`, as it goes out.
    case literal(String)
    case list([RecipeJSON])
    case object([Member])

    /// A member of an object.
    public struct Member: Sendable, Hashable {
        /// Fixed; only values are templates.
        public var name: String
        /// Any JSON.
        public var value: RecipeJSON
    }
}

/// A JSON pointer (RFC 6901), taken apart.
public struct RecipePointer: Sendable, Hashable {
    /// Unescaped reference tokens; none for the whole document.
    public var tokens: [String]

    init(text: String) throws(TextFault) {
        guard text.isEmpty || text.hasPrefix("/"), text.utf8.count <= 512 else {
            throw TextFault("must be a JSON pointer such as /token or /data/0/token")
        }
        tokens = []
        for part in text.split(separator: "/", omittingEmptySubsequences: false).dropFirst() {
            var rest = part.replacing("~0", with: "").replacing("~1", with: "")
            guard !rest.contains("~") else { throw TextFault("must have '~' only as '~0' or '~1' (RFC 6901)") }
            rest = part.replacing("~1", with: "/").replacing("~0", with: "~")
            tokens.append(String(rest))
        }
        guard tokens.count <= 16 else { throw TextFault("must have at most 16 parts") }
    }
}

extension Recipe {
    /// The secrets that the injected fields carry, by themselves or in what is computed from them.
    public var secretsToUpstream: Set<String> {
        let signed = signedSecrets
        var found = token?.secrets(signed: signed) ?? []
        for field in inject { found.formUnion(field.value.secrets(signed: signed)) }
        return found
    }

    /// The secrets behind each signed value.
    public var signedSecrets: [String: Set<String>] {
        var found: [String: Set<String>] = [:]
        for value in sign { found[value.name] = value.value.secrets(signed: found) }
        return found
    }

    /// Whose attempts are counted: of several credentials at one issuer each is told from the others by where its secrets stand, as a recipe
    /// has no user name that could be told from its other texts.
    public var accountName: String {
        let names = steps.reduce(into: Set<String>()) { $0.formUnion($1.secrets) }
        return (["recipe"] + names.sorted().compactMap { secret(named: $0).map { "\($0.value)" } }).joined(
            separator: " ")
    }

    /// The secret that templates name so; nil where there is none.
    public func secret(named name: String) -> RecipeSecret? { secrets.first { $0.name == name } }
}

extension RecipeStep {
    /// Every template of the step.
    public var templates: [RecipeTemplate] {
        var all = [target] + headers.map(\.value)
        switch body {
        case .none: break
        case .json(let json): all += json.templates
        case .form(let members): all += members.map(\.value)
        case .text(let text): all.append(text)
        }
        return all
    }

    /// The secrets that the step sends, by themselves or in what is computed from them.
    public var secrets: Set<String> { templates.reduce(into: []) { $0.formUnion($1.secrets(signed: [:])) } }

    /// What an attempt of the step is booked under: its secret, or all of them together, as a refusal does not say which was wrong.
    public var attemptKey: String? { secrets.isEmpty ? nil : secrets.sorted().joined(separator: "+") }
}

extension RecipeJSON {
    var templates: [RecipeTemplate] {
        switch self {
        case .string(let template): [template]
        case .literal: []
        case .list(let items): items.flatMap(\.templates)
        case .object(let members): members.flatMap(\.value.templates)
        }
    }
}
