internal import Configuration
internal import XML

/// `recipe`: a declared handshake for an in-house system. What is a challenge, what to take from it, which requests to make, what to
/// keep. Checked whole when the file is read, so that a run can only meet what the network brings.
struct Recipe: Sendable, Equatable {
    /// In the order of the file.
    var secrets: [RecipeSecret]
    /// The marks that tell a challenge from other answers.
    var challenge: RecipeChallenge
    /// Names of challenge values that belong to the token's key.
    var key: [String]
    /// At most 8, from the durable layer to the access layer.
    var steps: [RecipeStep]
    /// Values computed for each request, each from those before it; at most 16.
    var sign: [RecipeNamed]
    /// Only `sign` does without.
    var token: RecipeTemplate?
    /// Exactly one field, whose value ends with `{token}`; with `sign` at most 8 of any form.
    var inject: [RecipeNamed]
    /// Where a refusal says how many attempts are left.
    var attempts: RecipeTake?
    /// A path on the upstream that answers with a challenge and changes nothing.
    var probe: String?

    /// Bounds of a recipe.
    enum Bound {
        /// The most steps.
        static let steps = 8
        /// The most signed fields.
        static let signed = 16
        /// The most fields of one kind.
        static let fields = 8
        /// Bytes of a request's body, and of any one value.
        static let body = 64 * 1024
        /// Bytes of one taken value.
        static let taken = 32 * 1024
        /// Bytes of a challenge value that is part of the token's key.
        static let key = 1024
    }

    /// Credentials are computed for each request, out of secrets and of what the steps have brought.
    var isSigned: Bool { !sign.isEmpty }

    /// Whether a token needs data out of an upstream's challenge.
    var isChallengeDriven: Bool { !steps.isEmpty && challenge.isSelective }

    /// What the signer needs of the secrets and the steps.
    var signedNames: [RecipeName] { (sign + inject).flatMap(\.value.names) }
}

/// A secret with the only origins that it, and what is computed from it, may go to.
struct RecipeSecret: Sendable, Equatable {
    /// The name that templates use after `secret.`.
    var name: String
    /// Where the value is read.
    var value: SecretReference
    /// The origins to which a request with the secret may go.
    var to: [Origin]
}

/// Which answers of the upstream are challenges, and what they bring.
struct RecipeChallenge: Sendable, Equatable {
    /// Any of these statuses.
    var statuses: [Int]
    /// The scheme in `WWW-Authenticate`.
    var scheme: String?
    /// A header that only a challenge has.
    var header: String?
    /// A place that only a challenge's JSON body has.
    var json: JSONPointer?
    /// The values to take out of the challenge, in the order of the file.
    var take: [RecipeTake]

    /// None of the three: tokens are had ahead of requests, and the status alone says that one was refused.
    var isSelective: Bool { scheme != nil || header != nil || json != nil }
}

/// A request to an issuer.
struct RecipeStep: Sendable, Equatable {
    /// How long the material of a step lives.
    enum Layer: String, Sendable, CaseIterable, Comparable {
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
        static func < (left: Layer, right: Layer) -> Bool { left.depth < right.depth }
    }

    /// The body of a request.
    enum Body: Sendable, Equatable {
        case none
        case json(RecipeJSON)
        case form([RecipeNamed])
        case text(RecipeTemplate)
    }

    /// Unique in the recipe.
    var name: String
    /// Where the values that the step takes are kept.
    var layer: Layer
    /// The request method (RFC 9110 §9).
    var method: String
    /// Where the request goes; a template cannot change it.
    var origin: Origin
    /// Path and query; values are percent-encoded in it.
    var target: RecipeTemplate
    /// In the order of the file.
    var headers: [RecipeNamed]
    /// `none` sends no body.
    var body: Body
    /// Statuses of success; empty: every 2xx.
    var accepted: [Int]
    /// Quarantines the secrets of the step; without any it counts as `stale`.
    var rejected: RecipeRefusal
    /// Answers by which a value of a lower layer is no longer known. Looked at before `rejected`.
    var stale: RecipeRefusal?
    /// The values to take out of a good answer.
    var take: [RecipeTake]
}

/// Which answers refuse what a step sends.
struct RecipeRefusal: Sendable, Equatable {
    /// Any of these statuses.
    var statuses: [Int]
    /// Where given, the place must be there, too.
    var json: JSONPointer?
    /// And match this.
    var match: Pattern?
}

/// A value out of an answer.
struct RecipeTake: Sendable, Equatable {
    /// Where in the answer the value stands.
    enum Source: Sendable, Equatable {
        case json(JSONPointer)
        /// A member of a form (application/x-www-form-urlencoded).
        case form(String)
        case xml(XMLPath)
        case header(String)
        case cookie(String)
        /// A parameter of the challenge of the recipe's scheme.
        case param(String)
    }

    /// Unique in its step; templates name it after the step's name.
    var name: String
    /// Looked at once, in the whole answer.
    var source: Source
    /// The part of the value to take; nil takes all of it.
    var match: Pattern?
    /// Instead of a value that is not there.
    var otherwise: String?

    /// The value with this name says how long the others are good: seconds, or a duration with its unit.
    static let lifetime = "lifetime"

    var isXML: Bool { if case .xml = source { true } else { false } }
}

/// A template under a name: a header, a member of a form, a signed value.
struct RecipeNamed: Sendable, Hashable {
    /// The header, member or value that it makes.
    var name: String
    /// The template of the value.
    var value: RecipeTemplate
}

/// A JSON body with templates in its strings.
indirect enum RecipeJSON: Sendable, Hashable {
    case string(RecipeTemplate)
    /// A number, `true`, `false` or `null`, as it goes out.
    case literal(String)
    case list([RecipeJSON])
    case object([Member])

    /// A member of an object.
    struct Member: Sendable, Hashable {
        /// Fixed; only values are templates.
        var name: String
        /// Any JSON.
        var value: RecipeJSON
    }
}

extension Recipe {
    /// The secrets that the injected fields carry, by themselves or in what is computed from them.
    var secretsToUpstream: Set<String> {
        let signed = signedSecrets
        var found = token?.secrets(signed: signed) ?? []
        for field in inject { found.formUnion(field.value.secrets(signed: signed)) }
        return found
    }

    /// The secrets behind each signed value.
    var signedSecrets: [String: Set<String>] {
        var found: [String: Set<String>] = [:]
        for value in sign { found[value.name] = value.value.secrets(signed: found) }
        return found
    }

    /// The account whose attempts are counted: of several credentials at one issuer each is told from the others by where its secrets stand, as a recipe
    /// has no user name that could be told from its other texts.
    var accountName: String {
        let names = steps.reduce(into: Set<String>()) { $0.formUnion($1.secrets) }
        return (["recipe"] + names.sorted().compactMap { secret(named: $0).map { "\($0.value)" } }).joined(
            separator: " ")
    }

    /// The secret that templates name so; nil where there is none.
    func secret(named name: String) -> RecipeSecret? { secrets.first { $0.name == name } }
}

extension RecipeStep {
    /// Every template of the step.
    var templates: [RecipeTemplate] {
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
    var secrets: Set<String> { templates.reduce(into: []) { $0.formUnion($1.secrets(signed: [:])) } }

    /// The name that an attempt of the step is booked under: its secret, or all of them together, as a refusal does not say which was wrong.
    var attemptKey: String? { secrets.isEmpty ? nil : secrets.sorted().joined(separator: "+") }
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
