import ScriptedKernel
import Synchronization
import Testing
internal import TokenStore

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import Tokens

/// What outlives a gateway: which rows there are, in which order they come, who gets them back.
@Suite struct KeeperStoreTests {
    /// A gateway that has logged in once, over this store.
    private func warm(_ store: MemoryStore, _ yaml: String = Plans.gate()) throws -> (KeeperScene, NumberedGate) {
        let scene = try KeeperScene(yaml, store: store)
        let gate = NumberedGate()
        scene.issuer = gate.answer
        scene.upstream = gate.guarded()
        return (scene, gate)
    }

    @Test func aRestartServesFromTheStoreWithEveryIssuerDown() throws {
        let store = MemoryStore()
        let (first, _) = try warm(store)
        #expect(first.status("/w/x") == 200)
        let (second, _) = try warm(store)
        second.issuer = { _ in Wire.unavailable }
        #expect(second.status("/w/x") == 200)
        #expect(second.issuerCalls.isEmpty && second.upstreamCalls.map(\.authorization) == ["OAM-Auth a1"])
    }

    @Test func rule4_ATokenWaitsATenthOfASecondForItsCommit() throws {
        let store = MemoryStore()
        let scene = try KeeperScene(Plans.client(), store: store)
        scene.issuer = NumberedIssuer().answer
        // The disk is good while what it holds is looked up.
        scene.settle()
        store.disk = .hung
        let caller = scene.call()
        #expect(caller.status == nil)
        scene.pass(seconds: 0.12, step: 0.02)
        #expect(caller.status == 200)
        store.disk = .failing
        #expect(scene.status() == 200)
    }

    /// A store does another job after a start with other identities, or while an operator has it looked through.
    @Test func aPurgeWaitsForAnotherJobOfTheStore() throws {
        let store = MemoryStore()
        let scene = try KeeperScene(Plans.client(), store: store)
        scene.settle()
        store.disk = .hung
        store.start(.retain(kind: RowKind.owners) { _ in true }) { _ in }
        let answers = Mutex<[String?]>([])
        scene.inKeeper { keeper in
            _ = keeper.purge(.everything)
            keeper.whenErased { reason in answers.withLock { $0.append(reason) } }
        }
        scene.pass(seconds: 1)
        #expect(answers.withLock { $0.isEmpty })
        store.thaw()
        scene.pass(seconds: 1)
        #expect(answers.withLock { $0 } == [nil])
    }

    /// A token was had and purged, and the disk did not take it.
    private func refusedPurge(_ store: MemoryStore) throws -> KeeperScene {
        let (scene, _) = try warm(store)
        #expect(scene.status("/w/x") == 200)
        store.disk = .failing
        _ = scene.inKeeper { $0.purge(.everything) }
        scene.settle()
        return scene
    }

    @Test func aPurgeThatTheDiskRefusedIsRepeated() throws {
        typealias Kind = RowKind
        let store = MemoryStore()
        let scene = try refusedPurge(store)
        #expect(store.rows(Kind.session).count == 1 && store.rows(Kind.access).count == 1)
        // A new session and a new token, which the disk does not take either.
        #expect(scene.status("/w/x") == 200)
        #expect(scene.inKeeper { $0.health.state } != .serving)
        let session = store.rows(Kind.session)
        _ = scene.inKeeper { $0.purge(.everything) }
        scene.settle()
        store.disk = .good
        _ = scene.inKeeper { $0.purge(.everything) }
        scene.settle()
        #expect(session.count == 1 && store.rows(Kind.session).isEmpty && store.rows(Kind.access).isEmpty)
    }

    /// The disk takes nothing more from the moment the password is on its way: its mark stands there.
    private func failing(_ store: MemoryStore, _ gate: NumberedGate) -> (Request) -> String? {
        var isFirst = true
        return { request in
            if isFirst { store.disk = .failing }
            isFirst = false
            return gate.answer(request)
        }
    }

    /// Nothing is asked for meanwhile: no grant would find out that there is room again.
    @Test func whatTheDiskDidNotTakeIsPutAgain() throws {
        typealias Kind = RowKind
        let store = MemoryStore()
        let (scene, gate) = try warm(store)
        scene.issuer = failing(store, gate)
        #expect(scene.status("/w/x") == 200)
        #expect(scene.inKeeper { $0.health.state } != .serving)
        scene.pass(seconds: 300, step: 5)
        #expect(store.rows(Kind.session).isEmpty && scene.inKeeper { $0.health.state } != .serving)
        // The pause has grown: six commits at each of nine looks, and those of the login. Without that there were sixty looks.
        #expect(scene.inKeeper { $0.health.commits.failed } < 80)
        store.disk = .good
        scene.pass(seconds: 61, step: 1)
        #expect(store.rows(Kind.session).count == 1 && store.rows(Kind.durable).count == 1)
        #expect(scene.inKeeper { $0.health.state } == .serving && gate.users == 1)
        // And it is the last word that is put.
        let (next, _) = try warm(store)
        #expect(next.status("/w/x") == 200 && next.issuerCalls.map(\.path).allSatisfy { !$0.hasSuffix("register") })
    }

    /// Nobody asks for anything meanwhile. What stands there is read before anything is written: the marks would say nothing beside another key.
    @Test func aDiskThatComesLateIsReadFirst() throws {
        typealias Kind = RowKind
        let before = MemoryStore()
        let (scene, gate) = try warm(before)
        gate.refusesPassword = true
        #expect(scene.status("/w/x") == 503 && before.rows(Kind.attempt).count == 1)
        let store = MemoryStore()
        store.disk = .failing
        let late = try KeeperScene(Plans.gate(), store: store, state: .degraded("the disk does not answer"))
        late.issuer = NumberedGate().answer
        late.upstream = gate.guarded()
        late.pass(seconds: 100, step: 5)
        store.disk = .good
        for kind in [Kind.attempt, Kind.markKey] { before.rows(kind).forEach { store.put($0) { _ in } } }
        late.pass(seconds: 61, step: 1)
        #expect(late.inKeeper { $0.health.state } == .serving)
        #expect(store.rows(Kind.markKey) == before.rows(Kind.markKey))
        let caller = late.call(Wire.get("/w/x"))
        #expect(caller.receivedText.contains("problems/credential-quarantined") && late.issuerCalls.isEmpty)
    }

    @Test func whatTheDiskDidNotTakeIsPutAtTheEnd() throws {
        let store = MemoryStore()
        let (scene, gate) = try warm(store)
        scene.issuer = failing(store, gate)
        #expect(scene.status("/w/x") == 200)
        store.disk = .good
        scene.keeper.putLast()
        #expect(store.rows(RowKind.session).count == 1)
    }

    /// A disk may have room for some of it, and whoever stops us may not wait.
    @Test(arguments: [true, false]) func whatTheDiskDidNotTakeIsPutInPieces(isLast: Bool) throws {
        let store = MemoryStore()
        let (scene, _) = try warm(store)
        scene.settle()
        store.disk = .failing
        func row(_ kind: UInt8, _ number: Int) -> StoredRow {
            StoredRow(kind: kind, key: [UInt8(number)], value: [1])
        }
        scene.inKeeper { keeper in
            for number in 0..<20 { keeper.keep([.put(row(2, number)), .put(row(3, number))]) }
        }
        #expect(scene.inKeeper { $0.health.state } != .serving)
        store.disk = .tight
        if isLast { scene.keeper.putLast() } else { scene.pass(seconds: 2) }
        #expect(store.rows(2).count == 20 && store.rows(3).count == 20)
    }

    /// Whatever has put it: a disk that refuses a login is looked at again.
    @Test func aLoginThatIsKeptForItsIdentityIsPutAgain() throws {
        let store = MemoryStore()
        #expect(try warm(store).0.status("/w/x") == 200)
        // Of these the disk would refuse the deletion, and be looked at for that.
        for kind in [RowKind.access, RowKind.session, RowKind.learned] {
            for row in store.rows(kind) { store.commit([.delete(kind: kind, key: row.key)]) { _ in } }
        }
        let scene = try KeeperScene(Plans.client(), store: store)
        store.disk = .failing
        scene.settle()
        #expect(scene.inKeeper { $0.health.state } != .serving)
        store.disk = .good
        scene.pass(seconds: 3)
        #expect(store.rows(RowKind.durable).allSatisfy { $0.expiresWall != nil })
        #expect(scene.inKeeper { $0.health.state } == .serving)
    }

    /// What was deleted since is not put again, and neither is what a younger one has replaced.
    @Test func onlyTheLastWordIsPutAgain() throws {
        let base = MemoryStore()
        let store = ErasureMask(base, lastingKinds: [2])
        func row(_ key: UInt8, _ value: UInt8, kind: UInt8 = 2) -> StoredRow {
            StoredRow(kind: kind, key: [key], value: [value])
        }
        base.disk = .failing
        for row in [row(1, 1), row(2, 1), row(1, 2), row(3, 1), row(4, 1, kind: 1)] { store.put(row) { _ in } }
        store.commit([.delete(kind: 2, key: [2])]) { _ in }
        #expect(store.untaken == [row(1, 2), row(3, 1)])
        base.disk = .good
        store.put(row(3, 3)) { _ in }
        #expect(store.untaken == [row(1, 2)] && store.standing.count == 1)
        store.commit(store.untaken.map { .put($0) }) { _ in }
        #expect(store.untaken.isEmpty && Set(base.rows(2).map(\.value)) == [[2], [3]])
    }

    /// What the disk did not delete is read anew when an upgrade fails.
    @Test func whatWasToGoStaysAwayWhenTheStoreIsTakenBack() throws {
        let store = MemoryStore()
        let scene = try refusedPurge(store)
        let rows = store.restore()
        #expect(rows.contains { $0.kind == RowKind.session })
        scene.inKeeper { $0.grantAgain(rows, .serving) }
        #expect(scene.inKeeper { $0.sessions.held.isEmpty })
    }

    @Test func rule8_ARegistrationWithoutItsIdentityIsKeptThirtyDaysAndComesBack() throws {
        let store = MemoryStore()
        #expect(try warm(store).0.status("/w/x") == 200)
        typealias Kind = RowKind
        #expect(store.rows(Kind.durable).map(\.expiresWall) == [nil])
        #expect(store.rows(Kind.session).count == 1 && store.rows(Kind.access).count == 1)

        // Another service domain is another digest.
        let other = Plans.gate(identity: "service_domain: Other")
        let (changed, gate) = try warm(store, other)
        changed.settle()
        let limit = changed.keeperKernel.wallMilliseconds() + 30 * 86_400_000
        #expect(store.rows(Kind.durable).map(\.expiresWall) == [limit])
        #expect(store.rows(Kind.session).isEmpty && store.rows(Kind.access).isEmpty)
        #expect(store.rows(Kind.learned).isEmpty)
        #expect(changed.status("/w/x") == 200 && gate.handles == 1)

        // The days go on from the first start without it.
        let (again, _) = try warm(store, other)
        again.pass(seconds: 5, step: 5)
        #expect(store.rows(Kind.durable).map(\.expiresWall) == [limit, nil])

        let (back, registered) = try warm(store)
        #expect(back.status("/w/x") == 200)
        #expect(registered.handles == 0 && registered.users == 1)
        #expect(store.rows(Kind.durable).count { $0.expiresWall == nil } == 1)
    }

    @Test func rule8_AnOrphanGoesWhenItsDaysAreOver() throws {
        let store = MemoryStore()
        #expect(try warm(store).0.status("/w/x") == 200)
        let (changed, _) = try warm(store, Plans.gate(identity: "service_domain: Other"))
        changed.pass(seconds: 29 * 86_400, step: 86_400)
        #expect(store.rows(RowKind.durable).count == 1)
        changed.pass(seconds: 3 * 86_400, step: 86_400)
        #expect(store.rows(RowKind.durable).isEmpty)
    }

    @Test func rule8_WhatAPersonBroughtIsOrphanedToo() throws {
        let store = MemoryStore()
        let (scene, _) = try warm(store)
        scene.inKeeper { keeper in
            let material = LayerMaterial(
                bytes: Secret("u"), obtainedAt: keeper.now, lifetime: 1_000_000_000, refreshToken: Secret("r"),
                isHuman: true)
            let identity = keeper.identities[0]
            keeper.start { await $0.keep(material, of: identity) }
        }
        scene.settle()
        let (changed, _) = try warm(store, Plans.gate(identity: "service_domain: Other"))
        changed.settle()
        #expect(store.rows(RowKind.session).count == 1)
        #expect(changed.inKeeper { $0.sessions.held.isEmpty && $0.orphans.count == 1 })
        let (back, _) = try warm(store)
        back.settle()
        #expect(back.inKeeper { $0.sessions.held.values.first?.material.refreshToken } == Secret("r"))
        #expect(store.rows(RowKind.session).map(\.expiresWall) == [nil])
    }
}

/// What a person's login brought, from its commit to its end.
@Suite struct KeeperLoginTests {
    private static let yaml = Plans.client(
        identity: "grant: device_code, device_authorization_url: https://idp.example.com/d")

    private static func material(_ keeper: isolated Keeper, _ token: String, days: UInt64 = 100) -> LayerMaterial {
        let life = days * 86_400_000_000_000
        return LayerMaterial(
            bytes: Secret([]), obtainedAt: keeper.now, lifetime: nil, refreshToken: Secret(token), isHuman: true,
            refreshLife: RefreshLife(left: life, whole: life))
    }

    private func logIn(_ scene: KeeperScene, _ token: String) {
        scene.inKeeper { keeper in
            let material = Self.material(keeper, token)
            let identity = keeper.identities[0]
            keeper.start { await $0.keep(material, of: identity) }
        }
        scene.settle()
    }

    private func word(_ scene: KeeperScene) -> LoginNeed.Word? {
        scene.inKeeper { $0.loginNeed(of: $0.identities[0])?.word }
    }

    @Test func aLoginIsNotUsedBeforeItIsOnDisk() throws {
        let store = MemoryStore()
        let scene = try KeeperScene(Self.yaml, store: store)
        scene.settle()
        #expect(word(scene) == .needed)
        store.disk = .hung
        logIn(scene, "r")
        #expect(word(scene) == .needed)
        store.thaw()
        scene.settle()
        #expect(word(scene) == .good)
        #expect(store.rows(RowKind.session).count == 1)
    }

    /// A purge ends the session that the login brought; its refresh token brings another, here and after a restart.
    @Test(arguments: [false, true]) func aPurgeNeedsNobodyToLogIn(_ restarts: Bool) throws {
        let store = MemoryStore()
        var scene = try KeeperScene(Self.yaml, store: store)
        logIn(scene, "r")
        _ = scene.inKeeper { $0.purge(.everything) }
        scene.settle()
        if restarts { scene = try KeeperScene(Self.yaml, store: store) }
        let issuer = NumberedIssuer()
        scene.issuer = issuer.answer
        scene.settle()
        #expect(scene.status() == 200)
        #expect(scene.issuerCalls.map { $0.member("refresh_token") } == ["r"])
        #expect(word(scene) == .good)
    }

    /// Otherwise a crash in the moment of the answer brings the login back.
    @Test func aLogoutIsDoneWhenTheDiskHasForgotten() throws {
        let store = MemoryStore()
        let scene = try KeeperScene(Self.yaml, store: store)
        logIn(scene, "r")
        store.disk = .hung
        let flow = logOut(scene)
        #expect(word(scene) == .needed)
        #expect(scene.inKeeper { $0.login(flow)?.state } == .running)
        store.thaw()
        scene.settle()
        #expect(scene.inKeeper { $0.login(flow)?.state } == .done)
        #expect(store.rows(RowKind.session).isEmpty)
    }

    @Test func aLogoutOnAFullDiskSaysSoAndCanBeRepeated() throws {
        let store = MemoryStore()
        let scene = try KeeperScene(Self.yaml, store: store)
        logIn(scene, "r")
        store.disk = .failing
        let flow = logOut(scene)
        let report = try #require(scene.inKeeper { $0.login(flow) })
        #expect(report.state == .failed && report.detail?.contains("no space") == true)
        #expect(word(scene) == .needed && store.rows(RowKind.session).count == 1)
        store.disk = .good
        let again = logOut(scene)
        #expect(scene.inKeeper { $0.login(again)?.state } == .done)
        #expect(store.rows(RowKind.session).isEmpty)
    }

    /// A purge gets new tokens; it does not send a person to the login page.
    @Test(arguments: [false, true]) func aPurgeLeavesALoginThatIsBeingKept(again: Bool) throws {
        let store = MemoryStore()
        let scene = try KeeperScene(Self.yaml, store: store)
        scene.settle()
        if again { logIn(scene, "q") }
        store.disk = .hung
        logIn(scene, "r")
        _ = scene.inKeeper { $0.purge(.everything) }
        store.thaw()
        scene.settle()
        #expect(word(scene) == .good)
        let rows = store.rows(RowKind.session)
        let kept = rows.compactMap { LayerRow(encoded: $0.value)?.refreshToken?.withBytes { Array($0) } }
        #expect(kept == [Array("r".utf8)])
    }

    /// Another process has the store, and the login in it: nobody has to log in.
    @Test func nobodyIsSentToLogInForWantOfTheStore() throws {
        let store = MemoryStore()
        logIn(try KeeperScene(Self.yaml, store: store), "r")
        store.disk = .taken
        let scene = try KeeperScene(Self.yaml, store: store, state: .locked("another process has it"))
        scene.settle()
        #expect(word(scene) == nil && scene.inKeeper { $0.identities[0].toldLogin } == nil)
        let caller = scene.call()
        #expect(caller.status == 503 && caller.receivedText.contains("problems/store-unusable"))
        #expect(scene.inKeeper { $0.identities[0].toldLogin } == nil)
        store.disk = .good
        scene.pass(seconds: 10)
        #expect(word(scene) == .good && scene.inKeeper { $0.identities[0].toldLogin } == .good)
    }

    /// A reload takes the identity away, and the next one brings it back. In between an exchange that began before asks in vain.
    @Test func aLoginThatWasAwayServesAgainWhoeverAskedMeanwhile() throws {
        let scene = try KeeperScene(Self.yaml, store: MemoryStore())
        scene.issuer = { _ in Wire.bearer("t", expiresIn: "100") }
        logIn(scene, "r")
        let configured = scene.change
        scene.inKeeper {
            $0.take(KeeperChange(identities: [], routes: [], keys: [], subjects: $0.users.limits))
        }
        #expect(scene.status() == 503)
        scene.inKeeper { $0.take(configured) }
        #expect(scene.status() == 200)
        #expect(word(scene) == .good)
    }

    /// A token of earlier settings is nobody's to purge later: a reload that brings the settings back would serve it again.
    @Test(arguments: [PurgeScope.everything, .identity("o")]) func aPurgeReachesTokensOfEarlierSettings(
        scope: PurgeScope
    ) throws {
        let scene = try KeeperScene(Plans.client())
        scene.issuer = NumberedIssuer().answer
        let later = try KeeperScene(Plans.client().replacing("client_id: c", with: "client_id: d"))
        #expect(scene.status() == 200 && scene.issuerCalls.count == 1)
        let (first, second) = (scene.change, later.change)
        scene.inKeeper { $0.take(second) }
        let report = scene.inKeeper { $0.purge(scope) }
        #expect(report?.identities == ["o"] && report?.tokens == 1)
        let calls = scene.issuerCalls.count
        scene.inKeeper { $0.take(first) }
        #expect(scene.status() == 200 && scene.issuerCalls.count == calls + 1)
    }

    /// Where the issuer gave a lasting access token and nothing to renew it with, that is the login.
    @Test func aPurgeLeavesALoginThatCannotBeRenewed() throws {
        let store = MemoryStore()
        let scene = try KeeperScene(Self.yaml, store: store)
        scene.settle()
        scene.inKeeper { keeper in
            let material = LayerMaterial(
                bytes: Secret("lasting"), obtainedAt: keeper.now, lifetime: 3_600_000_000_000, isHuman: true)
            let identity = keeper.identities[0]
            keeper.start { await $0.keep(material, of: identity) }
        }
        #expect(scene.status() == 200)
        for scope in [PurgeScope.everything, .identity("o")] {
            #expect(scene.inKeeper { $0.purge(scope)?.tokens } == 1)
            #expect(word(scene) == .good && scene.status() == 200)
            #expect(scene.upstreamCalls.last?.authorization == "Bearer lasting")
            #expect(store.rows(RowKind.session).count == 1)
        }
    }

    @Test func aLogoutCountsWhileALoginIsBeingKept() throws {
        let store = MemoryStore()
        let scene = try KeeperScene(Self.yaml, store: store)
        scene.settle()
        store.disk = .hung
        logIn(scene, "r")
        let flow = logOut(scene)
        store.thaw()
        scene.settle()
        #expect(word(scene) == .needed && store.rows(RowKind.session).isEmpty)
        #expect(scene.inKeeper { $0.login(flow)?.state } == .done)
        logIn(scene, "s")
        #expect(word(scene) == .good)
    }

    private func logOut(_ scene: KeeperScene) -> String {
        let begun = scene.inKeeper { $0.beginLogout($0.identities[0].plan.name) }
        scene.settle()
        guard case .started(let report) = begun else { return "" }
        return report.flow
    }

    @Test func itsEndIsKnownAcrossARestartAndToldAWeekAhead() throws {
        let store = MemoryStore()
        let first = try KeeperScene(Self.yaml, store: store)
        logIn(first, "r")
        first.pass(seconds: 50 * 86_400, step: 86_400)
        let second = try KeeperScene(Self.yaml, store: store)
        second.settle()
        #expect(word(second) == .good)
        // The second scene's wall clock stands where the first one's began, so all hundred days are left.
        second.pass(seconds: 92 * 86_400, step: 86_400)
        #expect(word(second) == .good)
        second.pass(seconds: 2 * 86_400, step: 86_400)
        #expect(word(second) == .soon)
        second.pass(seconds: 8 * 86_400, step: 86_400)
        #expect(word(second) == .needed)
    }
}
