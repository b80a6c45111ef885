extension TreeDecoder {
    /// Checks the identities whose tokens are exchanged: known, able to give one without a request, and not in a circle.
    mutating func checkExchanges() {
        let exchangeable = schemes.filter { $0.isExchangeable }.map { $0.key.name }.sorted().joined(separator: " or ")
        var chains = ExchangeChains()
        for identity in identities.all {
            let scheme = identity.scheme
            guard let key = scheme.subjectKey, case .identity(let name)? = scheme.subjectToken else { continue }
            let isCircle = chains.closes(from: identity.name, to: name)
            let entry = writtenIdentities[identity.name]?.value[scheme.name]?.value[key]
            let mark = entry?.value["identity"]?.mark ?? entry?.mark ?? identity.mark
            let place = "'\(key)' of identity '\(identity.name)'"
            guard let subject = identities[name] else {
                let near = hint(name, in: identities.names)
                error("\(place) names identity '\(Quoted.short(name))', which is not there\(near)", mark)
                continue
            }
            if !type(of: subject.scheme).isExchangeable {
                error("\(place) must name an \(exchangeable) identity, not \(subject.scheme.name)", mark)
            }
            if isCircle { error("\(place) leads back to the identity itself", mark) }
        }
    }
}

/// Who exchanges whose token. Each leads to one other at most; the ends of these chains are kept, and ways to them shortened when they are
/// walked.
private struct ExchangeChains {
    private var towardEnd: [String: String] = [:]

    /// Joins `name`, which leads nowhere yet, to the chain of another.
    /// - Returns: whether that chain ends in `name`, so that it would lead back.
    mutating func closes(from name: String, to other: String) -> Bool {
        let end = end(of: other)
        // A circle stays without its last link: then every chain has an end, and only who closes it is told.
        guard end != name else { return true }
        towardEnd[name] = end
        return false
    }

    private mutating func end(of name: String) -> String {
        var walked: [String] = []
        var end = name
        while let next = towardEnd[end] {
            walked.append(end)
            end = next
        }
        for name in walked { towardEnd[name] = end }
        return end
    }
}
