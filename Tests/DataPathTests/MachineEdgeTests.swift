import HTTP1
import Octets
import Reactor
import ScriptedKernel
import Testing
import Tokens

@testable import DataPath
@testable import Scenes

/// Pure machines of the data path where they have nothing to do, or more than fits.
@Suite struct MachineEdgeTests {
    /// An upstream of addresses alone asks no name server, whatever time it is.
    @Test func withoutNamesNobodyIsAsked() {
        var schedule = NameSchedule(endpoints: [])
        #expect(schedule.nextDue == .max && schedule.due(at: .max) == [] && schedule.nextDue == .max)
        schedule.answered(endpoint: 0, found: true, isKnown: true, at: 1)
        #expect(schedule.nextDue == .max && !schedule.isAsking)
    }

    /// An answer to a question that nobody has asked does not move the others.
    @Test func anAnswerForAnotherNameChangesNothing() {
        var schedule = NameSchedule(endpoints: [3])
        #expect(schedule.due(at: 5) == [3] && schedule.isAsking)
        let due = schedule.nextDue
        schedule.answered(endpoint: 4, found: true, isKnown: true, at: 6)
        #expect(schedule.isAsking && schedule.nextDue == due)
    }

    @Test func anEmptyBookHasNoOrder() {
        var book = AddressBook()
        let order = book.order(at: 1)
        #expect(order.isEmpty)
    }

    /// A connection ends once.
    @Test func aSharedConnectionLeavesOnce() {
        var shared = SharedConnections<PoolScene.Trunk>()
        let (one, other) = (PoolScene.Trunk(1, at: nil, socket: 1), PoolScene.Trunk(2, at: nil, socket: 2))
        shared.append(one)
        #expect(!shared.remove(other) && shared.remove(one) && !shared.remove(one) && shared.isEmpty)
    }

    @Test func aNonceThatIsKnownIsKept() {
        var nonces = UpstreamNonces()
        for _ in 0..<2 {
            let isKept = Array("n".utf8).withUnsafeBytes { nonces.keep($0, from: "https://a") }
            #expect(isKept && nonces["https://a"] == "n")
        }
    }

    /// The rate is the operator's, and a window may be open for days: their product is no trap.
    @Test func anEndlessRateIsMet() {
        var pace = TransferPace()
        pace.open(at: 1, caller: .init(waiting: 2000), upstream: .init())
        func slow(_ rate: Int, taken: UInt64) -> TransferPace.Slow? {
            pace.slow(at: 1 << 62, rate: rate, caller: .init(taken: taken), upstream: .init(), expecting: [])
        }
        #expect(slow(.max, taken: 1999) == .callerReads && slow(.max, taken: 2000) == nil)
        #expect(slow(0, taken: 0) == nil)
    }

    /// Each reason to look at a connection of HTTP/2 comes at its time and not before.
    @Test func noDeadlineOfHTTP2ComesEarly() {
        let patience = HTTP2Deadlines.Patience(idle: 10, head: 20, write: 30, farewell: 40)
        var deadlines = HTTP2Deadlines()
        #expect(deadlines.passed(at: 1 << 60) == nil && deadlines.next == nil)
        let begins = deadlines.note(waits: true, at: 100, patience)
        #expect(begins && deadlines.passed(at: 129) == nil && deadlines.passed(at: 130) == .write)
        deadlines.looked()
        deadlines.leave(by: 200)
        #expect(deadlines.passed(at: 199) == nil && deadlines.passed(at: 200) == .farewell)
        #expect(deadlines.passed(at: 201) == nil)
    }

    /// A body that has ended takes nothing of the octets behind it.
    @Test func aBodyThatHasEndedTakesNothing() throws {
        for reader in [BodyReader.none, .done] {
            var reader = reader
            let step = try Array("GET / HTTP/1.1\r\n".utf8).withUnsafeBytes { try reader.next($0) }
            #expect(step.consumed == 0 && step.data.isEmpty && step.ended)
        }
    }

    /// The key of a URL's token is shown as a path, whether or not the upstream's own begins with a slash.
    @Test func aKeysPathIsAPath() {
        #expect(URLKey.path(of: URLKey.of(path: "/a/b?c")) == "/a/b" && URLKey.path(of: URLKey.of(path: "a")) == "/a")
        #expect(URLKey.path(of: URLKey.of(path: "/" + String(repeating: "x", count: 300))) == nil)
    }

    /// A credential that stands in the connection was refused, and there is nothing else to send.
    @Test func aChallengeWithoutACredentialIsFinal() {
        var exchange = Exchange()
        _ = exchange.on(.routed(.unneeded))
        _ = exchange.on(.connected)
        #expect(exchange.on(.answered(.challenge)) == .refuseFinally && exchange.phase == .relaying)
    }

    // MARK: - Faults

    @Test func onlyWordsOfProblemsNameOne() {
        for kind in Fault.Kind.allCases { #expect(Fault.Kind(word: kind.word)?.word == kind.word) }
        #expect(Fault.Kind(word: "no-such-problem") == nil && Fault.Kind(word: "") == nil)
    }

    /// A caller that is told to come back is told when, though the issuer did not say.
    @Test func aFaultOfAGrantSaysWhenToComeBack() {
        let failures: [Tokens.GrantFailure] = [
            .issuerUnavailable(retryAfter: nil), .issuerAnswerInvalid, .configuration, .policyDenied,
        ]
        for failure in failures {
            #expect(Fault(failure, retryAfter: nil, detail: nil).retryAfter == 1)
            #expect(Fault(failure, retryAfter: 2_000_000_001, detail: nil).retryAfter == 3)
        }
        #expect(Fault(Tokens.GrantFailure.credentialRejected, retryAfter: 5, detail: nil).retryAfter == nil)
    }

    @Test func aTransferCodingThatIsNotKnownIsNotImplemented() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(
            "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")
        #expect(caller.status == 501 && caller.receivedText.contains("problems/unknown-transfer-coding"))
        #expect(caller.sawEnd && scene.upstreams.isEmpty)
        scene.end()
    }

    // MARK: - Pages

    /// A page of the very address that was called is no other site's, whether or not it names the usual port.
    @Test(arguments: [
        ("localhost", "http://localhost", true), ("localhost", "http://LOCALHOST:80", true),
        ("localhost:80", "http://localhost", true), ("localhost:8080", "http://localhost:8080", true),
        ("localhost", "http://localhost:8080", false), ("localhost:8080", "http://localhost", false),
        ("localhost", "https://localhost", false), ("localhost", "http://a", false), ("localhost", "null", false),
    ])
    func aPageOfTheSameOriginIsAdmitted(host: String, origin: String, isAdmitted: Bool) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call("GET / HTTP/1.1\r\nHost: \(host)\r\nOrigin: \(origin)\r\n\r\n")
        #expect(scene.upstreams.count == (isAdmitted ? 1 : 0) && caller.status == (isAdmitted ? nil : 403))
        scene.end()
    }
}
