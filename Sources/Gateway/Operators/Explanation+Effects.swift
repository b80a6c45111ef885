internal import DataPath
internal import HTTP1
internal import Handshakes
internal import Keeping

/// The effects of a route on a request, and the consequence of a refusal, in words.
extension Explanation {
    private static let masked = "••••••••"

    static func effects(of route: RoutePlan, _ identity: IdentityPlan) -> [String] {
        var lines: [String] = []
        let edits = route.edits
        if let signer = identity.signer {
            lines.append(
                signer.fieldNames.joined(separator: ", ") + ": made for each request; " + signer.callersOwn)
        } else if identity.isTokenless {
            lines.append("nothing: the certificate shown in the TLS handshake is the credential")
        } else {
            lines.append("\(credential(of: route, identity)); \(callersOwn(edits))")
        }
        if edits.userAgentMode != .keep, !edits.userAgent.isEmpty {
            let agent = text(edits.userAgent.last == 0x20 ? edits.userAgent.dropLast() : edits.userAgent[...])
            lines.append(
                "User-Agent: \(agent) (\(edits.userAgentMode == .prepend ? "prefix" : "replaces the caller's"))")
        }
        // Values may be secrets by another name.
        let names = text(edits.setLines[...]).split(separator: "\r\n").map { $0.prefix { $0 != ":" } }
        if !names.isEmpty { lines.append("set by the route: \(names.joined(separator: ", "))") }
        return lines + identifiers(of: route)
    }

    /// The fields by which the upstream finds the request again.
    static func identifiers(of route: RoutePlan) -> [String] {
        var lines: [String] = []
        if route.correlation.written.contains(.requestID) {
            lines.append("X-Request-Id: the caller's own where it is fit, else made for each request")
        }
        if route.correlation.written.contains(.trace) {
            lines.append("traceparent: of the caller's trace, else of one that begins here")
        }
        return lines
    }

    private static func credential(of route: RoutePlan, _ identity: IdentityPlan) -> String {
        guard let injection = route.injection else {
            let field = identity.handshake.injection(for: [])
            return "\(field.name): \(text(field.value[...]))\(masked)"
        }
        let after = injection.after.filter { $0 != 13 && $0 != 10 }
        let value = "\(text(injection.before[...]))\(masked)\(text(after[...]))"
        switch injection.place {
        case .header: return value
        case .query: return "query parameter \(value)"
        case .cookie: return "cookie \(value)"
        }
    }

    private static func callersOwn(_ edits: RequestEdits) -> String {
        edits.renamedTo.isEmpty
            ? "the caller's own: dropped" : "the caller's own: kept as \(text(edits.renamedTo[...]))"
    }

    static func consequence(on route: RoutePlan, _ identity: KeptIdentity) -> String {
        var words: [String]
        switch identity.policy.kind {
        case .fixed: return "no other credential; \(final(route))"
        case .basic:
            return "a secret that has never succeeded is quarantined at once, one that has after "
                + "\(identity.policy.refusalsUntilClosed) different paths; \(final(route))"
        case .challengeDriven: words = ["a challenge of the upstream leads to one grant"]
        case .proactive: words = ["one grant"]
        }
        guard route.replay == .once else { return words[0] + ", no replay: the answer passes" }
        words.append("one replay")
        if !route.replayMethods.isEmpty {
            words.append("of " + route.replayMethods.map { text($0[...]) }.joined(separator: ", ") + " only")
        }
        let bodies = "bodies up to \(size(route.replayBody))"
        switch route.largeBody {
        case .send: words.append(bodies)
        case .expectContinue: words.append(bodies + ", larger ones wait for 100 Continue")
        case .probeHead: words.append(bodies + ", larger ones wait for a HEAD")
        }
        return words.joined(separator: ", ") + "; \(final(route))"
    }

    private static func final(_ route: RoutePlan) -> String {
        route.passesFinalRefusal ? "a refusal that stays is passed" : "a refusal that stays is a 502"
    }

    private static func size(_ bytes: Int) -> String {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")]
        guard let unit = units.first(where: { bytes >= $0.0 && bytes % $0.0 == 0 }) else { return "\(bytes) bytes" }
        return "\(bytes / unit.0) \(unit.1)"
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
}
