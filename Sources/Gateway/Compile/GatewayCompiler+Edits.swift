internal import Configuration
internal import DataPath
internal import HTTP1
internal import Handshakes
internal import Numbers

/// The changes that a route makes to requests and answers.
extension GatewayCompiler {
    func edits(
        of route: ConfiguredRoute, to: Upstream, plan: IdentityPlan?, pseudonym: String
    ) throws(GatewayFault) -> RequestEdits {
        var edits = RequestEdits()
        edits.via = Array(pseudonym.utf8)
        edits.dropsPlaceholders = givesPlaceholders
        switch route.host {
        case .upstream: edits.host = Array(to.origin.authority.utf8)
        case .name(let name): edits.host = Array(name.utf8)
        case .caller: break
        }
        // A proxy is told the whole target where no tunnel leads through it (RFC 9112 section 3.2.2).
        let isTarget = route.proxy != nil && to.origin.isCleartext
        edits.targetPrefix = Array((isTarget ? "\(to.origin)" : "").utf8) + Array(to.pathPrefix.utf8)
        edits.stripPrefix = strippedPrefix(of: route)
        if route.rewrite.response {
            edits.destinationScheme = Array((to.origin.isCleartext ? "http://" : "https://").utf8)
            edits.destinationPrefix = Array(to.pathPrefix.utf8)
        }
        for name in route.headers.remove {
            guard let field = FieldName(name) else {
                throw GatewayFault("route \(route.name): headers.remove: \(name)")
            }
            edits.drop.insert(field)
        }
        for header in route.headers.set {
            guard let field = FieldName(header.name),
                edits.set(field, spelled: Array(header.name.utf8), value: Array(header.value.utf8))
            else {
                throw GatewayFault("route \(route.name): headers.set: \(header.name) is not a field that can be set")
            }
        }
        if let plan { try place(route, plan, in: &edits) }
        if plan != nil, route.answers == .conceal { askForPlainAnswers(&edits) }
        // The caller's token is for us. A proxy's caller brings it in a field that never passes.
        let isOrigin = route.listen.compactMap { listenersByName[$0] }.contains { $0.mode != .forwardProxy }
        if route.callers.token != nil, isOrigin, let field = FieldName("authorization") { edits.drop.insert(field) }
        if let subject = subject(of: route), let field = FieldName(bytes: subject.field) { edits.drop.insert(field) }
        if let scheme = scheme(of: route) { try apply(scheme.edits, of: route, in: &edits) }
        let written = correlation(of: route).written
        let replaced =
            (written.contains(.requestID) ? ["x-request-id"] : []) + (written.contains(.trace) ? Self.traceFields : [])
        for field in replaced.compactMap({ FieldName($0) }) { edits.drop.insert(field) }
        return edits
    }

    private static let traceFields = ["traceparent", "tracestate"]

    /// Answers that can be looked into, and whole ones: in parts of it that come with several answers nobody could find a credential.
    private func askForPlainAnswers(_ edits: inout RequestEdits) {
        for field in Route.Answers.decidedFields.compactMap({ FieldName($0) }) { edits.drop.insert(field) }
        guard let field = FieldName("accept-encoding") else { return }
        _ = edits.set(field, spelled: Array("Accept-Encoding".utf8), value: Array("identity".utf8))
    }

    private func apply(
        _ own: SchemeEdits, of route: ConfiguredRoute, in edits: inout RequestEdits
    ) throws(GatewayFault) {
        for name in own.ownedFields {
            guard let field = FieldName(name) else { throw GatewayFault("route \(route.name): \(name)") }
            edits.drop.insert(field)
        }
        for pair in own.fields {
            guard let field = FieldName(pair.name),
                edits.set(field, spelled: Array(pair.name.utf8), value: Array(pair.value.utf8))
            else { throw GatewayFault("route \(route.name): the value of \(pair.name) is not fit for a header") }
        }
        if let agent = own.userAgent {
            edits.userAgentMode = own.keepsUserAgent ? .prepend : .replace
            edits.userAgent = Array((agent + (own.keepsUserAgent ? " " : "")).utf8)
        }
    }

    func subject(of route: ConfiguredRoute) -> SubjectPlan? {
        switch route.subject {
        case nil: nil
        case .clientCertificate?: SubjectPlan(source: .certificate, field: [])
        case .callerToken?: SubjectPlan(source: .callerToken, field: Array("authorization".utf8))
        case .header(let name)?: SubjectPlan(source: .header, field: Array(name.lowercased().utf8))
        }
    }

    func answerEdits(of route: ConfiguredRoute, to: Upstream) -> ResponseEdits {
        var edits = ResponseEdits()
        edits.addresses = addresses(of: route, to: to)
        let own = scheme(of: route)?.edits ?? SchemeEdits()
        if !own.dropsCookies.isEmpty { edits.dropCookies = PrefixSet(own.dropsCookies.map { Array($0.utf8) }) }
        for field in own.dropsFields.compactMap({ FieldName($0) }) { edits.drop.insert(field) }
        if answerNotes(of: route).contains(.requestID), let field = FieldName("x-request-id") {
            edits.drop.insert(field)
        }
        return edits
    }

    /// The text around the token, and its place, where the route sets them itself; nil where the identity's ready line is spliced as it
    /// is, or where the route carries no token.
    func injection(of route: ConfiguredRoute, _ plan: IdentityPlan?) -> RoutePlan.Injection? {
        guard let plan else { return nil }
        switch route.inject {
        case .header(nil, nil, _): return nil
        case .header(let name, let template, _):
            let standard = plan.handshake.injection(for: [])
            let before = template.map { Array($0.prefix.utf8) } ?? standard.value
            return RoutePlan.Injection(
                before: Array((name ?? standard.name).utf8) + [0x3a, 0x20] + before,
                after: Array((template?.suffix ?? "").utf8) + [13, 10], place: .header)
        case .query(let name):
            let encoded = withScratch(3 * name.utf8.count) { writeParameterValue(Array(name.utf8).span, into: &$0) }
            return RoutePlan.Injection(before: encoded + [0x3d], after: [], place: .query)
        case .cookie(let name):
            return RoutePlan.Injection(before: Array(name.utf8) + [0x3d], after: [], place: .cookie)
        }
    }

    private func withScratch(_ count: Int, _ write: (inout OutputCursor) -> Void) -> [UInt8] {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
        defer { memory.deallocate() }
        var cursor = OutputCursor(memory)
        write(&cursor)
        return Array(cursor.written(in: memory))
    }

    /// Where the credential goes, and what of the caller's makes room for it.
    private func place(
        _ route: ConfiguredRoute, _ plan: IdentityPlan, in edits: inout RequestEdits
    ) throws(GatewayFault) {
        switch route.inject {
        case .query(let name):
            edits.place = .query
            edits.placeName = Array(name.utf8)
        case .cookie(let name):
            edits.place = .cookie
            edits.placeName = Array(name.utf8)
        case .header(let own, _, let callerValue):
            let name = own ?? plan.handshake.injection(for: []).name
            guard let field = FieldName(name) else { throw GatewayFault("route \(route.name): inject: \(name)") }
            edits.drop.insert(field)
            for name in plan.signer?.fieldNames ?? [] {
                guard let field = FieldName(name) else { throw GatewayFault("route \(route.name): inject: \(name)") }
                edits.drop.insert(field)
            }
            guard case .keepAs(let kept) = callerValue else { return }
            guard let keptName = FieldName(kept) else { throw GatewayFault("route \(route.name): keep_as: \(kept)") }
            // Callers must not be able to write the kept field themselves.
            edits.drop.insert(keptName)
            edits.renamed = field.bytes
            edits.renamedTo = Array(kept.utf8)
        }
    }

    /// Without a slash at its end, so that it is put back as it was taken off.
    private func strippedPrefix(of route: ConfiguredRoute) -> [UInt8] {
        var prefix = Array((route.rewrite.stripPrefix ?? "").utf8)
        while prefix.last == UInt8(ascii: "/") { prefix.removeLast() }
        return prefix
    }

    /// Addresses in answers that name `to`.
    private func addresses(of route: ConfiguredRoute, to: Upstream) -> AddressMap {
        var map = AddressMap()
        map.isOn = route.rewrite.response
        map.isSecure = to.origin.scheme == .https
        map.port = to.origin.port
        let host = to.origin.host.contains(":") ? "[\(to.origin.host)]" : to.origin.host
        map.host = Array(host.lowercased().utf8)
        map.inner = Array(to.pathPrefix.utf8)
        map.outer = strippedPrefix(of: route)
        switch route.host {
        case .upstream: break
        case .caller: map.knowsCallersHost = true
        case .name(let name):
            let (alias, port) = split(authority: name.lowercased())
            map.alias = Array(alias.utf8)
            map.aliasPort = port ?? (map.isSecure ? 443 : 80)
        }
        return map
    }

    private func split(authority: String) -> (host: String, port: UInt16?) {
        guard let colon = authority.lastIndex(of: ":"), authority.last != "]",
            let port = ReceivedNumber(authority[authority.index(after: colon)...])?.within(0...UInt16.max)
        else { return (authority, nil) }
        return (String(authority[..<colon]), port)
    }

    func forwarding(of route: ConfiguredRoute) -> ForwardedHop {
        var hop = ForwardedHop()
        guard let forwarded = route.forwarded else { return hop }
        switch forwarded.fields {
        case .standard: hop.fields = .standard
        case .legacy: hop.fields = .legacy
        case .both: hop.fields = [.standard, .legacy]
        }
        hop.isHidden = forwarded.caller == .hidden
        return hop
    }

    func caution(of route: ConfiguredRoute) -> BodyCaution.Way {
        switch route.onRejected.largeBody {
        case .pass: .send
        case .expectContinue: .expectContinue
        case .probeHead: .probeHead
        }
    }

    func correlation(of route: ConfiguredRoute) -> CorrelationPlan {
        var plan = CorrelationPlan()
        if route.requestID != .pass { plan.written.insert(.requestID) }
        if let tracing = configuration.tracing {
            plan.traces = true
            // A route that removes the field does not tell its upstream of traces.
            let removed = Set(route.headers.remove.map { $0.lowercased() })
            if !removed.contains("traceparent") {
                plan.written.insert(.trace)
                if !removed.contains("tracestate") { plan.written.insert(.traceState) }
            }
            plan.sampled = tracing.ratio >= 1_000_000 ? .max : UInt64(max(tracing.ratio, 0)) * (UInt64.max / 1_000_000)
        }
        return plan
    }

    func answerNotes(of route: ConfiguredRoute) -> RoutePlan.AnswerNotes {
        var notes: RoutePlan.AnswerNotes = []
        if case .identity = route.use, route.cacheControl == .private { notes.insert(.keepsFromSharedCaches) }
        if route.serverTiming { notes.insert(.serverTiming) }
        if route.requestID == .echo { notes.insert(.requestID) }
        return notes
    }
}
