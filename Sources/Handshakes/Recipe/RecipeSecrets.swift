internal import Configuration
internal import Octets

/// The secrets in the fields of a signed request, out of the recipe's own templates: a secret that stands in a field, alone or between
/// other texts, and each text that was computed from one. Times, names and parts of the request are none.
extension RecipeValues {
    /// - Precondition: the signed values are there.
    /// - Throws: where a field could not be made either.
    func secrets(in recipe: Recipe) throws(Fault) -> [Secret] {
        var found = Found(recipe)
        for field in recipe.inject { try collect(from: field.value, mayBeShort: false, into: &found) }
        return found.secrets
    }

    private struct Found {
        let behind: [String: Set<String>]
        let templates: [String: RecipeTemplate]
        var secrets: [Secret] = []
        /// Signed values that need not be looked into again.
        var seen: Set<String> = []

        init(_ recipe: Recipe) {
            behind = recipe.signedSecrets
            templates = Dictionary(recipe.sign.map { ($0.name, $0.value) }) { first, _ in first }
        }

        /// - Parameter mayBeShort: a longer text that it stands in is among the secrets.
        mutating func add(_ value: consuming [UInt8], mayBeShort: Bool) {
            let secret = Secret(taking: &value)
            if mayBeShort, secret.count < Concealment.shortest { return }
            if !secrets.contains(secret) { secrets.append(secret) }
        }
    }

    private func collect(from template: RecipeTemplate, mayBeShort: Bool, into found: inout Found) throws(Fault) {
        for part in template.parts {
            if case .value(let expression) = part { try collect(from: expression, mayBeShort, &found) }
        }
    }

    private func collect(
        from expression: RecipeTemplate.Expression, _ mayBeShort: Bool, _ found: inout Found
    ) throws(Fault) {
        guard !RecipeTemplate(parts: [.value(expression)]).secrets(signed: found.behind).isEmpty else { return }
        if !expression.pipes.isEmpty { found.add(try bytes(of: expression), mayBeShort: mayBeShort) }
        guard expression.pipes.allSatisfy(\.isReadable) else { return }
        for term in expression.terms {
            try collect(from: term, mayBeShort || !expression.pipes.isEmpty, &found)
        }
    }

    private func collect(
        from term: RecipeTemplate.Term, _ mayBeShort: Bool, _ found: inout Found
    ) throws(Fault) {
        switch term {
        case .text: break
        case .inner(let expression): try collect(from: expression, mayBeShort, &found)
        case .name(.signed(let name)):
            guard let template = found.templates[name], found.seen.insert("\(mayBeShort) \(name)").inserted else {
                return
            }
            try collect(from: template, mayBeShort: mayBeShort, into: &found)
        case .name(let name):
            guard case .secret = name else { return }
            found.add(
                try bytes(of: RecipeTemplate.Expression(terms: [term], pipes: [])), mayBeShort: mayBeShort)
        }
    }
}

extension RecipeTemplate.Pipe {
    /// Whoever sees the result can read the text that went in.
    fileprivate var isReadable: Bool {
        switch self {
        case .plain(.sha256), .hmacSHA256: false
        case .plain, .jws: true
        }
    }
}
