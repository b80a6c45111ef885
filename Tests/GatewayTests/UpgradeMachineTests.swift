import Testing

@testable import Gateway

/// Whose the store is at each moment of an upgrade, and what becomes of one that fails.
@Suite struct UpgradeMachineTests {
    private func machine(_ events: UpgradeMachine.Event...) -> UpgradeMachine {
        var machine = UpgradeMachine()
        for event in events { _ = machine.on(event) }
        return machine
    }

    @Test func theNewProcessServesAfterTheOldOneHasLeft() {
        var machine = UpgradeMachine()
        #expect(machine.on(.asked) == [.launch, .wait(.untilReady)])
        #expect(machine.on(.storeWanted) == [.releaseStore])
        #expect(machine.on(.storeReleased) == [.giveStore])
        #expect(machine.on(.prepared(["a", "b"])) == [.stopWaiting, .serve(["a", "b"])])
        #expect(machine.state == .over)
        // Whatever becomes of it now is its own service manager's to see.
        #expect(machine.on(.hungUp) == [] && machine.on(.ended("x")) == [] && machine.on(.timePassed) == [])
    }

    @Test func aSecondOneIsRefusedInEveryState() {
        for events: [UpgradeMachine.Event] in [
            [.asked], [.asked, .storeWanted], [.asked, .storeWanted, .storeReleased], [.asked, .timePassed],
            [.asked, .hungUp], [.asked, .storeWanted, .storeReleased, .prepared([])],
        ] {
            var machine = UpgradeMachine()
            for event in events { _ = machine.on(event) }
            #expect(machine.on(.asked) == [.refuse("an upgrade is under way")])
        }
    }

    @Test func nothingIsTakenBackThatWasNotGiven() {
        var machine = machine(.asked)
        #expect(machine.on(.ended("with 7")) == [.stopWaiting, .report("with 7")])
        #expect(machine.state == .none)
        #expect(machine.on(.asked) == [.launch, .wait(.untilReady)])
    }

    @Test func theStoreIsTakenBackFromTheDeadOnly() {
        for events: [UpgradeMachine.Event] in [[.storeWanted], [.storeWanted, .storeReleased]] {
            var machine = machine(.asked)
            for event in events { _ = machine.on(event) }
            #expect(machine.on(.timePassed) == [.kill, .wait(.untilDead)])
            // Late words of one that is given up change nothing.
            #expect(machine.on(.prepared(["a"])) == [] && machine.on(.storeReleased) == [])
            #expect(
                machine.on(.ended("killed"))
                    == [.stopWaiting, .takeBack, .report("the new process was not ready in time")])
        }
    }

    @Test func itsOwnWordsAreWorthMoreThanItsStatus() {
        var machine = machine(.asked, .failed("line 3 is wrong"), .hungUp)
        #expect(machine.on(.ended("with 78")) == [.stopWaiting, .report("line 3 is wrong")])
        // Not the next one's.
        _ = machine.on(.asked)
        #expect(machine.on(.ended("with 1")) == [.stopWaiting, .report("with 1")])
    }

    @Test func oneThatHangsUpAndLivesOnIsKilled() {
        var machine = machine(.asked, .storeWanted, .storeReleased)
        #expect(machine.on(.hungUp) == [.wait(.untilDead)])
        #expect(machine.on(.timePassed) == [.kill, .wait(.untilDead)])
        #expect(machine.on(.timePassed) == [.stopWaiting, .takeBack, .report("the new process hung up")])
    }

    @Test func withoutItsLauncherItsHangingUpHasToDo() {
        var machine = machine(.asked, .storeWanted)
        #expect(machine.on(.launcherGone) == [.kill, .wait(.untilDead)])
        #expect(machine.on(.hungUp) == [.stopWaiting, .takeBack, .report("the launcher was killed")])
    }

    @Test func nobodyComesUpBehindAProcessThatEnds() {
        for events: [UpgradeMachine.Event] in [[], [.storeWanted], [.storeWanted, .storeReleased], [.timePassed]] {
            var machine = machine(.asked)
            for event in events { _ = machine.on(event) }
            #expect(machine.on(.ending) == [.stopWaiting, .kill, .report("this process was told to end")])
        }
        var idle = UpgradeMachine()
        #expect(idle.on(.ending) == [])
    }
}
