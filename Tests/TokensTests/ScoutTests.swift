import Testing

@testable import Tokens

@Suite struct ScoutTests {
    typealias Action = ScoutMachine.Action
    typealias Ticket = ScoutMachine.Ticket

    func request(
        _ number: UInt64, path: String = "/a/x", method: String = "GET", replayable: Bool = true, safe: Bool = true
    ) -> ScoutMachine.Parked {
        ScoutMachine.Parked(
            ticket: ticket(number), entry: LearnedEntry(path: path.utf8, method: method.utf8),
            isReplayable: replayable, isSafeMethod: safe)
    }

    func ticket(_ number: UInt64) -> Ticket { Ticket(loop: Int(number % 2), number: number) }

    @Test func theFirstGoesOutTheRestStayParked() {
        var machine = ScoutMachine(limit: 10)
        #expect(machine.arrived(request(1)) == [.dispatch(ticket(1))])
        #expect(machine.arrived(request(2)) == [])
        #expect(machine.waiting == 1)
        #expect(machine.challenged(ticket(1)) == [.handOver([ticket(2)])])
        #expect(machine.isEmpty)
    }

    @Test func replayableComesFirstThenGetAndHead() {
        var machine = ScoutMachine(limit: 10)
        _ = machine.arrived(request(1))
        _ = machine.arrived(request(2, method: "POST", replayable: false, safe: false))
        _ = machine.arrived(request(3, replayable: false))
        _ = machine.arrived(request(4, method: "POST", safe: false))
        _ = machine.arrived(request(5))
        _ = machine.arrived(request(6))
        var order: [UInt64] = []
        var current = ticket(1)
        while case .dispatch(let next) = machine.left(current).first {
            order.append(next.number)
            current = next
        }
        #expect(order == [5, 6, 4, 3, 2])
    }

    @Test func anAnswerWithoutAChallengeOpensItsEntryAndFreesThoseOfIt() {
        var machine = ScoutMachine(limit: 10)
        let scout = request(1)
        _ = machine.arrived(scout)
        _ = machine.arrived(request(2, path: "/a/y"))
        _ = machine.arrived(request(3, path: "/b/y"))
        _ = machine.arrived(request(4, method: "PUT", safe: false))
        let expected: [Action] = [.learnOpen(scout.entry), .release([ticket(2)]), .dispatch(ticket(3))]
        #expect(machine.answeredWithoutChallenge(ticket(1)) == expected)
        #expect(machine.waiting == 1)
    }

    @Test func aCallerThatLeavesIsForgotten() {
        var machine = ScoutMachine(limit: 10)
        _ = machine.arrived(request(1))
        _ = machine.arrived(request(2))
        #expect(machine.left(ticket(2)) == [])
        #expect(machine.left(ticket(1)) == [])
        #expect(machine.isEmpty)
    }

    @Test func aScoutWithoutAnAnswerIsFollowedByTheNext() {
        var machine = ScoutMachine(limit: 10)
        _ = machine.arrived(request(1))
        _ = machine.arrived(request(2))
        #expect(machine.failed(ticket(1)) == [.dispatch(ticket(2))])
        #expect(machine.failed(ticket(1)) == [])
        #expect(machine.challenged(ticket(1)) == [])
        #expect(machine.answeredWithoutChallenge(ticket(1)) == [])
    }

    @Test func aMachineIsEmptyOnlyWithoutScoutAndParked() {
        var machine = ScoutMachine(limit: 10)
        #expect(machine.isEmpty)
        _ = machine.arrived(request(1))
        #expect(!machine.isEmpty, "the scout is out")
        _ = machine.arrived(request(2))
        #expect(!machine.isEmpty)
        _ = machine.left(ticket(2))
        _ = machine.failed(ticket(1))
        #expect(machine.isEmpty)
    }

    @Test func theQueueIsBounded() {
        var machine = ScoutMachine(limit: 1)
        _ = machine.arrived(request(1))
        _ = machine.arrived(request(2))
        #expect(machine.arrived(request(3)) == [.refuse(ticket(3))])
    }
}

@Suite struct BasicProbationTests {
    typealias Ticket = BasicProbation.Ticket
    let first = Ticket(loop: 0, number: 1)
    let second = Ticket(loop: 1, number: 2)
    let third = Ticket(loop: 0, number: 3)

    func unproven(isSent: Bool = true) -> BasicProbation {
        var probation = BasicProbation()
        #expect(probation.arrived(first) == [.dispatch(first)])
        if isSent { probation.sent(first) }
        #expect(probation.arrived(second) == [])
        #expect(probation.arrived(third) == [])
        return probation
    }

    @Test func rule3_OneTriesTheRestWaitForItsSuccess() {
        var probation = unproven()
        #expect(probation.succeeded() == [.publish([second, third])])
        #expect(probation.state == .proven && !probation.wantsSuccesses)
        #expect(probation.arrived(first) == [.publish([first])])
    }

    @Test func rule3_ARefusalOfAnUnprovenSecretQuarantines() {
        var probation = unproven()
        #expect(probation.refused(path: "/") == [.quarantine, .refuse([second, third], .credentialRejected)])
        #expect(probation.arrived(first) == [.refuse([first], .credentialRejected)])
        #expect(probation.refused(path: "/") == [])
        #expect(probation.succeeded() == [])
    }

    @Test func rule3_AnInconclusiveTryPassesTheTurn() {
        var probation = unproven()
        #expect(probation.left(second) == [])
        #expect(probation.left(first) == [.dispatch(third)])
        #expect(probation.left(third) == [])
        #expect(probation.arrived(first) == [.dispatch(first)])
    }

    @Test func rule3_ThreeDifferentPathsWithoutASuccessBetweenQuarantineAProvenSecret() {
        var probation = unproven()
        _ = probation.succeeded()
        #expect(probation.refused(path: "/a") == [])
        #expect(probation.refused(path: "/a") == [])
        #expect(probation.refused(path: "/b") == [])
        #expect(probation.wantsSuccesses)
        #expect(probation.succeeded() == [])
        #expect(probation.refused(path: "/c") == [])
        #expect(probation.refused(path: "/d") == [])
        #expect(probation.refused(path: "/e") == [.quarantine])
        #expect(probation.state == .quarantined)
    }

    /// Another gateway of the fleet has met the refusals: what is in this one's cache goes, or every hit would send the password again.
    @Test func rule5_AProvenSecretThatWasRefusedElsewhereLeavesTheCache() {
        var probation = unproven()
        _ = probation.succeeded()
        #expect(probation.quarantined() == [.withdraw])
        #expect(probation.arrived(first) == [.refuse([first], .credentialRejected)])
        #expect(probation.quarantined() == [])
    }

    @Test func rule5_AnUnprovenSecretThatWasRefusedElsewhereIsRefusedToAllThatWait() {
        var probation = unproven(isSent: false)
        #expect(probation.quarantined() == [.refuse([first, second, third], .credentialRejected)])
    }

    @Test func aNewSecretIsTriedByTheNextAlone() {
        var probation = unproven()
        _ = probation.refused(path: "/")
        #expect(probation.secretChanged() == [])
        #expect(probation.arrived(first) == [.dispatch(first)])
        probation.sent(first)
        #expect(probation.arrived(second) == [])
        #expect(probation.secretChanged() == [.dispatch(second)])
    }

    @Test func aTryThatHasNotLeftIsMadeWithTheNewSecret() {
        var probation = unproven(isSent: false)
        #expect(probation.isToSend(first) && !probation.isToSend(second))
        #expect(probation.secretChanged() == [.dispatch(first)])
        probation.sent(first)
        #expect(!probation.isToSend(first))
        #expect(probation.succeeded() == [.publish([second, third])])
    }

    @Test func nobodyIsForgottenWhoseTryHasNotLeft() {
        var proven = unproven(isSent: false)
        #expect(proven.succeeded() == [.publish([first, second, third])])
        var refused = unproven(isSent: false)
        #expect(refused.refused(path: "/") == [.quarantine, .refuse([first, second, third], .credentialRejected)])
        var withheld = unproven()
        #expect(withheld.withheld() == [.refuse([second, third], .notPermitted(retryAfter: .seconds(1)))])
    }

    @Test func aSecretIsOnItsTryUntilTheOutcomeIsKnown() {
        var probation = BasicProbation()
        #expect(!probation.isTrying)
        _ = probation.arrived(first)
        #expect(probation.isTrying)
        _ = probation.succeeded()
        #expect(!probation.isTrying)
    }

    /// The try before it had left; this one has not.
    @Test func theNextTryIsStillToBeSent() {
        var passedOn = unproven()
        #expect(passedOn.left(first) == [.dispatch(second)])
        #expect(passedOn.isToSend(second))
        var withheld = unproven()
        _ = withheld.withheld()
        #expect(withheld.arrived(second) == [.dispatch(second)])
        #expect(withheld.isToSend(second))
    }

    /// A secret that is not sent any more has no successes, whatever refused it.
    @Test func aQuarantinedSecretWantsNoSuccesses() {
        for isElsewhere in [true, false] {
            var probation = unproven()
            _ = probation.succeeded()
            _ = probation.refused(path: "/a")
            #expect(probation.wantsSuccesses)
            if isElsewhere {
                _ = probation.quarantined()
            } else {
                for path in ["/b", "/c"] as [ByteString] { _ = probation.refused(path: path) }
            }
            #expect(probation.state == .quarantined && !probation.wantsSuccesses)
        }
    }
}
