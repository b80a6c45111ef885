public import Configuration
public import DataPath
internal import Fleet
internal import Handshakes
internal import Keeping
internal import Reactor
internal import Synchronization
internal import Telemetry
internal import TokenStore
internal import Tokens

/// The finding of `check --live` about one identity or upstream, or about the store.
public struct LiveFinding: Sendable {
    /// The identity or upstream, by its name.
    public let subject: String
    /// The check succeeded.
    public fileprivate(set) var isGood: Bool
    /// Otherwise nothing is known of it, good or bad: a running gateway has what it would take.
    public var isTried = true
    /// How long the check took.
    public let milliseconds: Int
    /// The outcome in words; conflicts between file and metadata follow it.
    public fileprivate(set) var text: String
    /// Names of the routes that need it.
    public var routes: [String] = []
}

/// Tries a configuration against the world: one token for each identity, one connection to each upstream.
public enum LiveCheck {
    /// Blocks until everything has been tried; each step is bounded by its own timeout.
    public static func run(
        _ configuration: Configuration, environment: @escaping @Sendable (String) -> String?
    ) throws(GatewayFault) -> [LiveFinding] {
        // With the store and the fleet, so that an attempt made here counts, and with a running gateway none is made at all.
        let detached = try DetachedKeeper(
            configuration, environment: environment, name: "check", persists: configuration.store.path != nil)
        let (loop, keeper, opened, plan) = (detached.loop, detached.keeper, detached.opened, detached.plan)
        let shared = detached.shared
        let findings = Mutex<[LiveFinding]>([])
        let (rows, isBlind) = (opened.rows, opened.marksUnreadable)
        let found: @Sendable (LiveFinding) -> Void = { finding in findings.withLock { $0.append(finding) } }
        _ = loop.post {
            keeper.assumeIsolated { keeper in
                if let shared { keeper.fleet = shared.fleet }
                keeper.handOver.sparesRefreshTokens = true
                // Attempts that were spent cannot be seen: nothing is sent that could lock an account.
                if isBlind || keeper.health.isUnread { keeper.attempts.ledger.restoreUnreadable() }
                keeper.restore(rows)
                keeper.recallKnown()
                if let path = configuration.store.path { keeper.tellStore(path, found: found) }
                keeper.tryEverything(plan, found: found)
            }
            shared?.tier.start()
        }
        loop.run()
        shared?.tier.stop()
        _ = opened.store?.close()
        return findings.withLock { $0 }
    }
}

extension Keeper {
    /// A store that cannot be used is a finding of its own; one that is in order, or another gateway's, is none.
    fileprivate func tellStore(_ path: String, found: (LiveFinding) -> Void) {
        switch health.state {
        case .none, .serving, .locked: break
        case .degraded(let reason), .refused(let reason):
            found(LiveFinding(subject: "store \(path)", isGood: false, milliseconds: 0, text: "not used: \(reason)"))
        }
    }

    func tryEverything(_ plan: GatewayPlan, found: @escaping @Sendable (LiveFinding) -> Void) {
        start { keeper in
            for identity in keeper.identities {
                var finding = await keeper.tryIdentity(identity, on: plan.routes)
                finding.routes = keeper.routes.filter { $0.identity === identity }.map(\.name)
                found(finding)
            }
            for upstream in plan.upstreams {
                var finding = await keeper.tryUpstream(upstream)
                finding.routes = plan.routes.filter { $0.upstream === upstream }.map(\.name)
                found(finding)
            }
            keeper.loop.stop()
        }
    }

    private func tryIdentity(_ identity: KeptIdentity, on routes: [RoutePlan]) async -> LiveFinding {
        var conflicts: [String] = []
        var finding = await tryIdentity(identity, &conflicts)
        if finding.isGood, let reason = await tooShort(identity, on: routes) {
            finding.isGood = false
            finding.text = reason
        }
        finding.text = ([finding.text] + conflicts).joined(separator: "; ")
        return finding
    }

    /// - Parameter conflicts: gets where file and metadata differ.
    private func tryIdentity(_ identity: KeptIdentity, _ conflicts: inout [String]) async -> LiveFinding {
        let begun = now
        func finding(_ text: String, isGood: Bool = true, isTried: Bool = true) -> LiveFinding {
            LiveFinding(
                subject: "identity \(identity.plan.name)", isGood: isGood, isTried: isTried, milliseconds: since(begun),
                text: text)
        }
        let environment = self.environment(of: identity)
        defer { release(environment.claimant) }
        let wanted = routes.first { $0.identity === identity }?.wanted ?? Wanted(upstreamOrigin: "")
        if identity.plan.isTokenless {
            return finding("a certificate; the upstreams below judge it")
        }
        // A scheme of requests has something of its own to be tried.
        if identity.isPerUser, !(identity.plan.handshake is any OneTimeHandshake) {
            let answers = await reachesIssuer(identity, environment)
            return finding(
                answers ?? "the issuer answers; a token per subject needs a subject and was not tried",
                isGood: answers == nil)
        }
        do throws(Handshakes.GrantFailure) {
            conflicts = try await identity.plan.handshake.inquire(environment: environment)
            if let person = identity.plan.handshake as? any InteractiveHandshake, person.needsPerson {
                try await person.reach(environment: environment)
                let isKnown = health.state == .serving
                let login = loginNeed(of: identity)?.word == .needed ? "nobody is logged in: cardea login" : "logged in"
                return finding(
                    "the issuer answers; no token was asked for, as a person grants them"
                        + (isKnown ? "; \(login)" : ""))
            }
            if let trial = try await identity.plan.handshake.tryOut(wanted, environment: environment) {
                return finding(trial.text, isGood: trial.isGood)
            }
            let isLocal = identity.policy.kind == .fixed || identity.policy.kind == .basic
            return finding(isLocal ? "secret read; only the upstream can judge it" : "token obtained")
        } catch {
            if case .locked(let owner) = health.state, OwnersStep.allCases.contains(where: { refusal(of: $0) == error })
            {
                return finding(
                    "not tried: \(owner), and only that one, the running gateway, sends passwords and refresh "
                        + "tokens; ask it: cardea tokens, cardea explain", isTried: false)
            }
            if error == Self.spared {
                let fault = await tokenEndpointFault(identity, environment)
                return finding(
                    fault ?? "not tried: it would spend the refresh token; ask the running gateway",
                    isGood: fault == nil, isTried: fault != nil)
            }
            return finding(IssuerTrail.words("\(error)", asking: environment.trail.server), isGood: false)
        }
    }

    /// Why routes refuse every request that would get the credential; nil where they do not. Only where it is a secret of ours: what issuers
    /// make is long.
    private func tooShort(_ identity: KeptIdentity, on routes: [RoutePlan]) async -> String? {
        guard identity.policy.kind == .fixed || identity.policy.kind == .basic, identity.plan.signer == nil else {
            return nil
        }
        let concealing = routes.filter { $0.identity === identity.plan && $0.conceals }
        guard !concealing.isEmpty else { return nil }
        let environment = self.environment(of: identity)
        defer { release(environment.claimant) }
        let wanted = Wanted(upstreamOrigin: "")
        guard let grant = try? await identity.plan.handshake.acquire(wanted, environment: environment) else {
            return nil
        }
        let refusing = grant.token.withBytes { token in concealing.first { $0.cannotConceal(token) } }
        return refusing.map {
            "route \($0.name) has 'answers: conceal' and refuses every request: the credential has fewer than 8 octets"
        }
    }

    /// Why the issuer cannot be reached; nil where it can, or where the scheme has no way to ask. Nothing else can be tried of an
    /// identity whose refresh token is spared.
    private func tokenEndpointFault(_ identity: KeptIdentity, _ environment: KeeperEnvironment) async -> String? {
        guard let handshake = identity.plan.handshake as? any InteractiveHandshake else { return nil }
        do throws(Handshakes.GrantFailure) { try await handshake.reach(environment: environment) } catch {
            return IssuerTrail.words("\(error)", asking: environment.trail.server)
        }
        return nil
    }

    /// - Returns: why it cannot be reached; nil when it answered, whatever it said.
    private func reachesIssuer(_ identity: KeptIdentity, _ environment: KeeperEnvironment) async -> String? {
        guard let origin = identity.issuer, let url = IssuerURL("\(origin)/") else { return "no issuer" }
        let call = IssuerCall(step: "reach", method: "GET", url: url, headers: [], body: [], carriesPassword: false)
        do throws(IssuerFault) {
            _ = try await environment.send(call)
            return nil
        } catch {
            return IssuerTrail.words("the issuer cannot be reached: \(error.kind)", asking: environment.trail.server)
        }
    }

    private func tryUpstream(_ plan: UpstreamPlan) async -> LiveFinding {
        let begun = now
        let group = UpstreamGroup(plan: plan, loop: loop, buffers: resources.buffers, resolver: resources.resolver) {
            _ in
        }
        // A session over HTTP/2 outlives the request that made it, and points at its group without holding it.
        defer { group.closeIdle() }
        let fault: Fault? = await withCheckedContinuation { continuation in
            let trial = ConnectionTrial { continuation.resume(returning: $0) }
            trial.begin(group)
        }
        let text =
            switch fault?.kind {
            case nil: plan.usesTLS ? "connected, certificate good" : "connected"
            case .upstreamTLS:
                "TLS failed: \(group.outage.tlsFailure ?? "handshake"); see tls.ca, tls.server_name, tls.legacy"
            case .issuerUnavailable, .issuerAnswerInvalid, .quarantined, .identityMisconfigured, .secretUnusable,
                .tokenTimeout:
                group.outage.tlsFailure ?? "no credential for the proxy"
            case .proxyRefused: "the proxy refused: \(group.outage.tlsFailure ?? "")"
            case .secretUnreadable: "a secret of the connection cannot be used: \(group.outage.tlsFailure ?? "")"
            case .upstreamUnresolvable: "the name does not resolve"
            case .upstreamConnectTimeout: "no answer in time"
            default: "connection refused"
            }
        return LiveFinding(
            subject: "upstream \(plan.origin)", isGood: fault == nil, milliseconds: since(begun), text: text)
    }

    private func since(_ begun: UInt64) -> Int { Int((now - begun) / 1_000_000) }
}

/// Connects once and says how it went.
private final class ConnectionTrial: UpstreamUser {
    private var done: ((Fault?) -> Void)?
    /// Keeps itself alive until the outcome, also while no connection holds it.
    private var itself: ConnectionTrial?

    init(done: @escaping (Fault?) -> Void) { self.done = done }

    func begin(_ group: UpstreamGroup) {
        itself = self
        _ = group.take(for: self, fresh: true)
    }

    func upstreamConnected(_ connection: UpstreamConnection) {
        connection.close()
        end(nil)
    }

    func upstreamReady(_ connection: UpstreamConnection) {}
    func upstreamLost(_ connection: UpstreamConnection, _ fault: Fault) { end(fault) }
    func upstreamTimedOut(_ connection: UpstreamConnection) {}

    private func end(_ fault: Fault?) {
        done?(fault)
        done = nil
        itself = nil
    }
}
