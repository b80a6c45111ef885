import DataPath
import Keeping

@testable import Gateway

/// An upgrade in place, as `cardea` carries it out: `UpgradeMachine` decides, and the two processes are two lives of one gateway.
final class SimulatedUpgrade {
    /// Where the new process fails, if it does.
    enum Failure: Equatable {
        case beforeStore
        case whileOldEnds
        case withStore
    }

    private let owner: GatewayProcess
    private let old: ProcessLife
    private let failure: Failure?
    private var new: ProcessLife?
    private var errand: Errand?
    /// Takes the store back on the old process's main thread.
    private var takingBack: Errand?
    private var machine = UpgradeMachine()
    /// Counts waits, so that one that was called off ends nothing.
    private var wait = 0
    private var isOver = false

    private var world: World { owner.world }

    init(_ owner: GatewayProcess, _ old: ProcessLife, failure: Failure?) {
        self.owner = owner
        self.old = old
        self.failure = failure
    }

    func begin() { perform(.asked) }

    private func perform(_ event: UpgradeMachine.Event) {
        guard !isOver else { return }
        perform(machine.on(event)[...])
    }

    private func perform(_ actions: ArraySlice<UpgradeMachine.Action>) {
        guard !isOver, let first = actions.first else { return }
        let rest = actions.dropFirst()
        guard case .takeBack = first else {
            perform(first)
            return perform(rest)
        }
        takeBack { [self] in perform(rest) }
    }

    /// Nothing goes on while the processes are stopped.
    private func later(_ delay: UInt64, _ body: @escaping () -> Void) {
        world.timeline.after(delay) { [self] in
            guard !isOver else { return }
            if owner.isStopped { later(.milliseconds(10), body) } else { body() }
        }
    }

    private func perform(_ action: UpgradeMachine.Action) {
        switch action {
        case .launch: later(.milliseconds(5)) { [self] in launch() }
        case .releaseStore:
            let released = UncheckedAction { [self] in later(0) { [self] in perform(.storeReleased) } }
            old.gateway.releaseStore { released.run() }
            if failure == .whileOldEnds {
                later(.milliseconds(1) + owner.draw.below(.milliseconds(300))) { [self] in die() }
            }
        case .giveStore: takeStore()
        case .serve: serve()
        case .kill: die()
        case .takeBack: break
        case .report(let reason):
            world.journal.note(.process, UInt64(owner.number), [], "\(old.name)'s upgrade fails: \(reason)")
            over()
            owner.expectStoreServes()
        case .wait(let wait):
            self.wait += 1
            let number = self.wait
            later(wait == .untilReady ? .seconds(60) : .seconds(5)) { [self] in
                if number == self.wait { perform(.timePassed) }
            }
        case .stopWaiting: wait += 1
        case .refuse: break
        }
    }

    private func over() {
        isOver = true
        if owner.upgrade === self { owner.upgrade = nil }
    }

    /// The disk takes its time with the store that is taken back, and what the old process has under way ends meanwhile.
    private func takeBack(_ done: @escaping () -> Void) {
        old.turnAll()
        let place = UncheckedReference(old)
        let errand = Errand { errand in
            place.value.whenStoreOpens { errand.pause() }
            place.value.gateway.takeStoreBack()
        }
        takingBack = errand
        errand.goOn { [old] in old.turnAll() }
        later(.milliseconds(1) + owner.draw.below(.milliseconds(400))) { [self] in
            endTakingBack()
            old.turnAll()
            done()
        }
    }

    private func endTakingBack() {
        while let errand = takingBack, !errand.isDone { errand.goOn { [old] in old.turnAll() } }
        takingBack = nil
    }

    // MARK: - The new process

    private func launch() {
        guard let life = try? owner.makeLife() else { return perform(.cannotStart("no process")) }
        new = life
        owner.joins(life)
        if failure == .beforeStore { return die() }
        let place = UncheckedReference(life)
        let errand = Errand { errand in try? place.value.begin(inheriting: errand.pause) }
        self.errand = errand
        errand.goOn {}
        perform(.storeWanted)
    }

    private func takeStore() {
        guard let new, let errand else { return }
        errand.goOn {}
        new.readLog()
        guard (try? new.gateway?.prepare()) != nil else { return die() }
        if failure == .withStore { return later(.milliseconds(30)) { [self] in die() } }
        later(.milliseconds(20)) { [self] in perform(.prepared(World.listeners)) }
    }

    private func serve() {
        old.whileTurning { [gateway = old.gateway] in gateway?.leave(World.listeners) }
        takesOver()
        old.gateway.linger()
        let ended = UncheckedAction { [self] in world.timeline.after(0) { [self] in end(old) } }
        old.gateway.drain(farewell: .seconds(20)) { ended.run() }
        world.timeline.after(.seconds(25)) { [self] in end(old) }
        over()
    }

    private func takesOver() {
        guard let new, (try? new.gateway.serve()) != nil else { return }
        owner.serves(new)
        over()
    }

    private func end(_ life: ProcessLife) {
        guard !life.isOver else { return }
        life.gateway.close()
        owner.end(life, "has handed over and ends")
    }

    /// The new process is dead.
    private func die() {
        guard let new else { return }
        self.new = nil
        owner.end(new, "dies before it serves")
        // Its thread comes to an end on a disk that is none.
        while let errand, !errand.isDone { errand.goOn {} }
        later(.milliseconds(2)) { [self] in perform(.ended("the new process was killed")) }
    }

    /// Neither process is there any more.
    func allIsGone() {
        over()
        // Their threads come to an end all the same.
        while let errand, !errand.isDone { errand.goOn {} }
        endTakingBack()
    }

    /// The old process is dead: the new one goes on as after any start.
    func oldIsGone() {
        endTakingBack()
        guard let new, !isOver else { return over() }
        while let errand, !errand.isDone { errand.goOn {} }
        if machine.state != .away, (try? new.gateway?.prepare()) == nil { return over() }
        takesOver()
    }
}
