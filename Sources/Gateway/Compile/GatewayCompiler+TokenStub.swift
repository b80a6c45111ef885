internal import Configuration
internal import DataPath
internal import HTTP1
internal import TLS
internal import Telemetry

/// Routes that answer token requests themselves.
extension GatewayCompiler {
    /// The keeper is not told of it: there is nothing to keep.
    mutating func compile(
        _ stub: TokenStub, of route: ConfiguredRoute, index: Int, pseudonym: String
    ) throws(GatewayFault) {
        // Stands where every route has one, and is never connected to.
        let nowhere = UpstreamPlan(
            index: -1, origin: "", host: "", port: 0, usesTLS: false, serverName: "", endpoints: [], trust: nil,
            minimumVersion: .v1_2, legacyTLS: false, clientKeys: nil, connectTimeout: 5_000_000_000,
            idleTimeout: 60_000_000_000)
        var edits = RequestEdits()
        edits.via = Array(pseudonym.utf8)
        edits.dropsPlaceholders = true
        let grants = stub.grants.reduce(into: TokenStubGrants()) { $0.insert(TokenStubGrants($1)) }
        routes.append(
            RoutePlan(
                index: index, number: -1, edition: edition, name: route.name, logName: routeNames.intern(route.name),
                matches: match(of: route), admission: try admission(of: route, to: nil), upstream: nowhere,
                pathPrefix: "", edits: edits, answerEdits: ResponseEdits(), identity: nil, injection: nil,
                forwarding: .untouched, answerNotes: [], slot: nil, learned: nil,
                strictPaths: false, standing: standing(of: route), replay: .never, replayMethods: [], replayBody: 0,
                largeBody: .send,
                passesFinalRefusal: true, answerTimeout: 60_000_000_000, idleTimeout: 60_000_000_000,
                tokenStub: TokenStubPlan(
                    grants: grants, lifetime: Int(clamping: stub.lifetime.wholeNanoseconds / 1_000_000_000))))
    }
}
