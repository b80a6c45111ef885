internal import Audit
internal import DataPath
internal import Handshakes
internal import Octets
internal import Telemetry
internal import TokenStore
internal import Tokens
internal import World

/// Logins of people. The keeper runs them, so that what they bring goes from the issuer into the sealed store; whoever sits at the
/// terminal is shown what to do and asks how far it is.
extension Keeper {
    // MARK: - Beginning and ending

    package func beginLogin(_ name: String, redirectPort: UInt16?) -> LoginStart {
        guard let identity = catalogue.identity(named: name) else { return .unknown }
        guard let handshake = identity.interactive else {
            return .refused("identity \(name) needs no person")
        }
        if case .locked(let reason) = health.state {
            return .refused("what a login brings could not be kept: \(reason)")
        }
        if storeRefusal(of: identity) != nil {
            return .refused("the store, which may have a login already, cannot be read: \(status().store)")
        }
        guard let login = openLogin(of: identity, redirectPort: redirectPort) else {
            return .refused("too many logins are under way")
        }
        events.info("login begun", [LogField("identity", .name(name))])
        login.task = start { await $0.lead(login, by: handshake) }
        return .started(login.report(at: now))
    }

    package func beginLogout(_ name: String) -> LoginStart {
        guard let identity = catalogue.identity(named: name) else { return .unknown }
        if case .locked(let reason) = health.state { return .refused("what is kept could not be forgotten: \(reason)") }
        guard let login = openLogin(of: identity, redirectPort: nil, because: "a logout was begun") else {
            return .refused("too many logins are under way")
        }
        login.task = start { await $0.logOut(login) }
        return .started(login.report(at: now))
    }

    package func login(_ flow: String) -> LoginReport? {
        guard let login = logins[flow] else { return nil }
        login.lastAsked = now
        return login.report(at: now)
    }

    package func redirected(_ flow: String, _ query: String) -> RedirectReply? {
        guard let login = logins[flow] else { return nil }
        login.lastAsked = now
        return login.redirected(query)
    }

    package func cancelLogin(_ flow: String) -> LoginReport? {
        guard let login = logins[flow] else { return nil }
        give(up: login, "cancelled where it was started")
        return login.report(at: now)
    }

    private func give(up login: KeptLogin, _ detail: String) {
        guard login.state == .running else { return }
        login.end(.cancelled, detail: detail, at: now)
        login.identity.logins[LoginReport.State.cancelled.rawValue, default: 0] += 1
        login.task?.cancel()
        events.info("login ended", [login.identity.logged, LogField("reason", .name(detail))])
    }

    /// Nil when there are too many. An earlier one of the same identity gives way: its person has begun anew.
    private func openLogin(
        of identity: KeptIdentity, redirectPort: UInt16?, because reason: String = "another login was begun"
    ) -> KeptLogin? {
        for login in logins.of(identity) { give(up: login, reason) }
        for login in logins.makeRoom(at: now) { login.alarm.close() }
        guard logins.hasRoom else { return nil }
        let flow = Base64.encodeURL(random.bytes(18))
        let login = KeptLogin(
            flow: flow, identity: identity, redirectPort: redirectPort, alarm: Alarm(loop: loop), at: now)
        logins.add(login)
        return login
    }

    // MARK: - What a dialogue waits for

    func change(_ login: KeptLogin, _ change: @Sendable (KeptLogin) -> Void) {
        guard login.state == .running else { return }
        change(login)
    }

    func wait(
        _ login: KeptLogin, _ nanoseconds: UInt64, judge: (@Sendable (String) -> RedirectVerdict)?,
        onTime: Result<Secret, Handshakes.GrantFailure>
    ) async -> Result<Secret, Handshakes.GrantFailure> {
        await withCheckedContinuation { continuation in
            login.wait(continuation, judge: judge)
            guard login.state == .running else { return }
            watch(login, until: now + nanoseconds, onTime)
        }
    }

    /// A terminal that was closed asks no more: its login is given up, so that no page of it stays open for ever.
    private func watch(_ login: KeptLogin, until end: UInt64, _ onTime: Result<Secret, Handshakes.GrantFailure>) {
        login.alarm.action = { [unowned self, unowned login] in
            self.assumeIsolated { keeper in
                let now = keeper.now
                if now >= end {
                    login.resume(onTime)
                } else if now - login.lastAsked >= Logins.lease {
                    keeper.give(up: login, "nobody asks for it any more")
                } else {
                    keeper.watch(login, until: end, onTime)
                }
            }
        }
        login.alarm.set(at: min(end, login.lastAsked + Logins.lease))
    }

    // MARK: - Login

    private func lead(_ login: KeptLogin, by handshake: any InteractiveHandshake) async {
        let identity = login.identity
        let environment = environment(of: identity)
        defer {
            release(environment.claimant)
            login.alarm.clear()
        }
        do throws(Handshakes.GrantFailure) {
            var wanted = catalogue.wanted(by: identity)
            wanted.stepUp = logins.stepUps.wish(of: identity.digest, at: now)
            login.isStepUp = wanted.stepUp != nil
            let grant = try await handshake.login(
                wanted, dialogue: KeeperDialogue(keeper: self, login: login), environment: environment)
            // Minutes have passed: what was true at the beginning is looked at again.
            guard login.state == .running, catalogue.isCurrent(identity),
                environment.standing.epoch >= identity.logoutEpoch
            else {
                await handshake.revoke(grant.material, environment: environment)
                throw .timedOut(step: "the login was overtaken by a logout or a changed configuration")
            }
            let material = grant.material
            let keeping = start { await $0.keep(material, of: identity, in: login) }
            identity.keeping = keeping
            await keeping.value
            identity.keeping = nil
            guard !login.isOvertaken else {
                await handshake.revoke(material, environment: environment)
                throw .timedOut(step: "the login was overtaken by a logout")
            }
            logins.stepUps.loggedIn(identity.digest, grant.authenticated, at: material.obtainedAt)
            watchLogins()
            var said = [grant.remark].compactMap { $0 }
            if login.isUntold { said.append("the fleet could not be told, its other gateways wait for it") }
            switch health.state {
            case .serving where identity.policy.access.persist: break
            case .degraded(let reason): said.append("the store is degraded, a restart may lose it: \(reason)")
            default: said.append("kept in memory only: a restart asks for the person again")
            }
            login.end(.done, detail: said.isEmpty ? nil : said.joined(separator: "; "), at: now)
            identity.logins[LoginReport.State.done.rawValue, default: 0] += 1
            audit(.login, identity, [result(true)])
            events.info("login done", [identity.logged])
        } catch {
            // A login that was given up is counted where that was done.
            if login.state == .running {
                let word = error == .loginExpired ? LoginReport.State.expired.rawValue : error.word.rawValue
                identity.logins[word, default: 0] += 1
            }
            login.end(
                error == .loginExpired ? .expired : .failed,
                detail: error == .loginExpired
                    ? "\(error)" : IssuerTrail.words("\(error)", asking: environment.trail.server),
                reason: error.word.rawValue, at: now)
            audit(.login, identity, [result(false)] + reason(error.word.rawValue))
            events.warn("login ended", [identity.logged, LogField("reason", .name(login.detail ?? "\(error)"))])
        }
    }

    /// Sealed and on disk, then used. Flights that began before are cut off first: what they bring is of the login before, and must not
    /// stand over this one.
    func keep(_ material: LayerMaterial, of identity: KeptIdentity, in login: KeptLogin? = nil) async {
        guard let key = identity.sessionKey(subject: nil) else { return }
        let epoch = identity.epoch + 1
        identity.loginEpoch = epoch
        // The tokens of the login before would be refused where another authentication was asked for, whoever shares them.
        let isStepUp = login?.isStepUp == true
        for one in catalogue.same(as: identity) where isStepUp && one !== identity {
            raiseEpoch(of: one, cause: .purge)
        }
        raiseEpoch(of: identity, cause: isStepUp ? .purge : .reload)
        if let row = sessionRow(key, material, of: identity) { await write([.put(row)]) }
        // A logout that came meanwhile counts: on disk its deletion stands behind the row.
        guard epoch > identity.logoutEpoch else {
            login?.isOvertaken = true
            return
        }
        // Before it is used: a flight that looked at the fleet in between would find the session before it newer.
        let isTold = await offerLogin(material, key, of: identity)
        guard epoch > identity.logoutEpoch else {
            // A login that has begun since is the fleet's.
            if identity.loginEpoch == epoch { endInFleet(key) }
            login?.isOvertaken = true
            return
        }
        login?.isUntold = !isTold
        adoptSession(material, key)
        // A purge that came meanwhile has ended the session before and put that one's row over this one.
        if identity.epoch != epoch, let row = sessionRow(key, material, of: identity) { keep([.put(row)]) }
        identity.recovered(at: now)
        for token in tokens.of(identity) { token.lastFailure = nil }
        if let account = identity.account {
            let rows = attempts.ledger.reset(account)
            start { await $0.storeAttempts(rows) }
        }
        raiseEpoch(of: identity, cause: .reset)
        watchLogins()
    }

    // MARK: - Logout

    /// Forgets first, tells the issuer then: an issuer that does not answer must not keep us from forgetting.
    private func logOut(_ login: KeptLogin) async {
        let identity = login.identity
        await freshenForLogout(of: identity)
        let handshake = identity.plan.handshake
        var held = handshake.revokesAccessTokens ? accessTokens(of: identity) : []
        held += sessions.of(identity.digest).map(\.material)
        beginErasures()
        if let key = identity.sessionKey(subject: nil) {
            let orphaned = orphans.forget(key, at: now)
            held += orphaned.held
            erase(orphaned.gone)
        }
        let forgotten = sessions.parts.of(identity.digest)
        raiseEpoch(of: identity, cause: .logout)
        forgetRows(of: identity)
        logins.stepUps.forget(identity.digest)
        let erasure = erasures.end()
        watchLogins()
        audit(.logout, identity)
        events.info("logged out", [identity.logged])
        let environment = environment(of: identity)
        environment.forgotten = forgotten
        var outcomes: [Revocation] = []
        for material in held {
            outcomes.append(await handshake.revoke(material, environment: environment))
        }
        release(environment.claimant)
        await settleLogout(of: identity)
        let said =
            if outcomes.isEmpty {
                "nothing was kept"
            } else if outcomes.contains(.unconfirmed) {
                "forgotten here; the issuer did not confirm that it has revoked it"
            } else if outcomes.contains(.revoked) {
                "forgotten here and revoked at the issuer"
            } else {
                "forgotten here; the issuer has no way to be told, so what it gave may be good until it expires"
            }
        // Last: a disk that hangs must not keep the issuer from hearing of it.
        change(login) { $0.progress = "waiting until the disk has forgotten it" }
        if let fault = await erasure.outcome() {
            let missed = "but not on disk, from where a restart could bring it back (\(fault)); repeat the logout"
            login.end(.failed, detail: "\(said), \(missed)", at: now)
        } else {
            login.end(.done, detail: said, at: now)
        }
    }

    /// The access tokens that the identity's field lines carry, without the name and the scheme before them.
    private func accessTokens(of identity: KeptIdentity) -> [LayerMaterial] {
        let before = Self.fieldLine(identity.plan.handshake.injection(for: [])).count - 2
        return tokens.of(identity).compactMap { token in
            guard let held = token.machine.heldGrant,
                let line = line(of: token, held.generation), line.count > before + 2
            else { return nil }
            let bytes = line.withBytes { Secret(UnsafeRawBufferPointer(rebasing: $0[before..<$0.count - 2])) }
            return LayerMaterial(bytes: bytes, obtainedAt: now, lifetime: nil)
        }
    }

    /// Rows that memory does not know of: access tokens of users who have not been here since the start, and the session that was to go when
    /// the disk was full.
    private func forgetRows(of identity: KeptIdentity) {
        let digest = identity.digest
        eraseAccess { $0.digest == digest }
        if let key = identity.sessionKey(subject: nil) { erase(kind: RowKind.session, key: KeyCodec.encode(key)) }
    }

    // MARK: - In time

    /// Nil for identities that need no person, and while nobody knows: the store that may have the login cannot be read, or is another
    /// process's.
    package func loginNeed(of identity: KeptIdentity) -> LoginNeed? {
        guard identity.interactive != nil, let key = identity.sessionKey(subject: nil) else { return nil }
        let need = LoginNeed(
            sessions[key]?.material, asked: logins.stepUps.wish(of: identity.digest, at: now), at: now)
        let isUnknown = isLoginElsewhere(of: identity) || storeRefusal(of: identity) != nil
        return need.word == .needed && isUnknown ? nil : need
    }

    /// There is none in memory, whatever the store may have.
    func lacksLogin(_ identity: KeptIdentity) -> Bool {
        guard identity.interactive != nil, let key = identity.sessionKey(subject: nil) else { return false }
        return LoginNeed(sessions[key]?.material, at: now).word == .needed
    }

    /// Tells operators what has changed, and looks again when the next change is due.
    func watchLogins() {
        var next = UInt64.max
        for identity in identities {
            guard let need = loginNeed(of: identity) else { continue }
            if need.word != identity.toldLogin { tell(need, identity) }
            identity.toldLogin = need.word
            let end = identity.sessionKey(subject: nil).flatMap { sessions[$0] }.flatMap { LoginEnd($0.material) }
            next = min(next, end?.next(after: now) ?? .max)
        }
        guard next != .max else {
            logins.alarm?.clear()
            return
        }
        // The wheel need not know of next year.
        set(&logins.alarm, at: min(next, now + 86_400_000_000_000)) { $0.watchLogins() }
    }

    private func tell(_ need: LoginNeed, _ identity: KeptIdentity) {
        let name = identity.logged
        let advice = LogField("advice", .name("run: cardea login \(identity.plan.name)"))
        switch need.word {
        case .good: break
        case .soon where need.asked != nil:
            let wish = "an upstream asks for a login with \(need.asked ?? "another authentication")"
            events.warn("login needed", [name, LogField("reason", .name(wish)), advice])
        case .soon:
            let left = LogField("left_s", .count(Int64(clamping: (need.expiresIn ?? 0) / 1_000_000_000)))
            events.warn("login needed soon", [name, left, advice])
        case .needed: events.warn("login needed", [name, advice])
        }
    }
}
