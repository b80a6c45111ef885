extension TreeDecoder {
    /// What a recipe injects goes to the route's upstream: a secret in it must be allowed there, and nothing else may write its fields.
    mutating func checkRecipe(_ route: Route, _ identity: Identity, _ reader: BlockReader, place: String) {
        guard case .recipe(let recipe) = identity.handshake, let origin = route.to?.origin else { return }
        for name in recipe.secretsToUpstream.sorted() {
            guard let secret = recipe.secret(named: name), !secret.to.contains(origin) else { continue }
            error(
                "\(place) would send secret '\(name)' of identity '\(identity.name)' to \(origin), which its 'to' does not name",
                reader.mark("to"))
        }
        guard !recipe.sign.isEmpty else { return }
        if reader.has("inject") {
            error(
                "'inject' of \(place): the fields of identity '\(identity.name)' are signed together",
                reader.mark("inject"))
        }
        let fields = Set(recipe.inject.map { $0.name.lowercased() })
        let edited = route.headers.set.map(\.name) + route.headers.remove
        for name in edited where fields.contains(name.lowercased()) {
            error(
                "'headers' of \(place) edits '\(name)', which identity '\(identity.name)' signs", reader.mark("headers")
            )
        }
    }
}
