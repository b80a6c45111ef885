/// `use` with a list: whether each of its identities can come to answer, and whether a forged challenge could do harm by choosing one.
extension TreeDecoder {
    mutating func checkChoice(_ route: Route, _ reader: BlockReader, place: String) {
        let mark = reader.mark("use")
        guard !route.alternatives.isEmpty else {
            if reader.has("downgrade"),
                reader.node?["downgrade"]?.mark != defaults.entry("route")?.value["downgrade"]?.mark
            {
                reader.warn("'downgrade' of \(place) has no effect without a list under 'use'", at: "downgrade")
            }
            return
        }
        if reader.has("inject") {
            error("\(place) has several identities and 'inject': a challenge is answered where its scheme says", mark)
        }
        if route.onRejected.statuses != nil || route.onRejected.replay != .once {
            error(
                "\(place) has several identities: a 401 chooses one, which needs 'replay: once' and no 'statuses' in 'on_rejected'",
                reader.mark("on_rejected"))
        }
        var answered: [String: String] = [:]
        for name in route.identityNames {
            // An identity that is not there was reported.
            guard let identity = identities[name] else { continue }
            checkMember(identity, of: route, mark, place: place)
            let schemes = identity.scheme.challengeSchemes
            if !schemes.isEmpty, let first = answered[schemes[0].lowercased()],
                schemes.allSatisfy({ answered[$0.lowercased()] != nil })
            {
                error(
                    "identity '\(name)' of \(place) is never chosen: '\(first)' before it answers the same challenges",
                    mark)
            }
            for scheme in schemes where answered[scheme.lowercased()] == nil { answered[scheme.lowercased()] = name }
        }
    }

    private mutating func checkMember(_ identity: Identity, of route: Route, _ mark: Mark, place: String) {
        guard !identity.scheme.challengeSchemes.isEmpty else {
            return error(
                "identity '\(identity.name)' of \(place) answers no challenge by its scheme's name, so a list cannot choose it",
                mark)
        }
        if identity.scheme.showsPassword, route.isReadOnTheWay {
            error(
                "identity '\(identity.name)' of \(place) would send its password in clear text to whoever forges a challenge; in a list it needs https:, whatever allow_cleartext says",
                mark)
        }
    }
}
