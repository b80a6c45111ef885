import Numbers
import ScriptedWorld
import Testing

@testable import Fleet

/// The conversation with the server, told as events and actions; no server, no socket, no clock.
@Suite struct RedisMachineTests {
    private typealias Action = RedisMachine.Action
    private static let second: UInt64 = 1_000_000_000

    /// A machine with the time that it is told, and the names of what it sent.
    private struct Talk {
        var machine: RedisMachine
        var now: UInt64 = 1_000_000_000_000

        init(_ login: RedisLogin = RedisLogin(), seed: UInt64 = 1) {
            machine = RedisMachine(login, channel: "c", random: SeededRandom(seed: seed)) { run in
                [Array("GREET".utf8), Array(run.utf8)]
            }
        }

        @discardableResult
        mutating func on(_ event: RedisMachine.Event) -> [Action] { machine.on(event, at: now) }

        @discardableResult
        mutating func on(_ event: FleetLinkEvent) -> [Action] { on(.link(event)) }

        @discardableResult
        mutating func says(_ text: String) -> [Action] { on(.received(Array(text.utf8))) }

        /// Time passes to the machine's own deadline.
        @discardableResult
        mutating func waits() -> [Action] {
            now = machine.deadline ?? now
            return on(.woken)
        }

        mutating func logIn(_ password: String? = nil) {
            on(.prepared(password: password.map { Array($0.utf8) }))
            on(.connected)
            says("%1\r\n+proto\r\n:3\r\n")
            says("$10\r\nrun_id:abc\r\n")
            says(">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
            #expect(says(":0\r\n") == [.changed(nil)])
        }

        mutating func ask(_ number: UInt64) -> [Action] { on(.asked([Array("GET".utf8)], number: number)) }
    }

    private func begun(_ login: RedisLogin = RedisLogin()) -> Talk {
        var talk = Talk(login)
        #expect(talk.on(.began) == [.prepare])
        return talk
    }

    private func served() -> Talk {
        var talk = begun()
        talk.logIn()
        return talk
    }

    private func sent(_ words: String...) -> [Action] {
        [.send(RESPWriter.bytes(of: words.map { Array($0.utf8) }))]
    }

    private static let down = SharedFault(.unavailable, "gone")
    private static let notConnected = SharedFault(.unavailable, "not connected")

    // MARK: - The login

    @Test func theLoginAsksOneQuestionAfterTheOther() {
        var talk = begun(RedisLogin(username: "me", database: 7))
        #expect(talk.on(.prepared(password: Array("pw".utf8))) == [.connect])
        #expect(talk.on(.connected) == sent("HELLO", "3", "AUTH", "me", "pw"))
        #expect(talk.says("%1\r\n+proto\r\n:3\r\n") == sent("SELECT", "7"))
        #expect(talk.says("+OK\r\n") == sent("INFO", "server"))
        #expect(talk.says("$25\r\n# Server\r\nrun_id:abc\r\nx:1\r\n") == sent("SUBSCRIBE", "c"))
        #expect(talk.says("+late\r\n").isEmpty, "a subscription is answered by a push alone")
        #expect(talk.says(">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n") == sent("GREET", "abc"))
        #expect(talk.says(">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n") == [.news(Array("hi".utf8))])
        #expect(talk.ask(1) == [.answer(1, .failure(Self.notConnected))])
        #expect(talk.says(":0\r\n") == [.changed(nil)])
        #expect(talk.ask(2) == sent("GET"))
    }

    @Test func withoutAPasswordThereIsNoAuthentication() {
        var talk = begun()
        talk.on(.prepared(password: nil))
        #expect(talk.on(.connected) == sent("HELLO", "3"))
    }

    @Test func aRefusedLoginIsTriedAgainAfterAPause() {
        var talk = begun()
        talk.on(.prepared(password: nil))
        talk.on(.connected)
        let fault = SharedFault(.refused, "the server refused: WRONGPASS no")
        #expect(talk.says("-WRONGPASS no\r\n") == [.close, .changed(fault)])
        #expect(talk.on(.woken).isEmpty)
        #expect(talk.waits() == [.prepare])
    }

    @Test func whatIsSilentDuringTheLoginIsLeft() {
        var talk = begun()
        talk.on(.prepared(password: nil))
        let began = talk.now
        talk.on(.connected)
        #expect(talk.waits() == [.close, .changed(SharedFault(.slow, "no answer to the login"))])
        #expect(talk.now == began + RedisMachine.connectTime)
    }

    @Test func aPasswordThatCannotBeReadIsNoConnection() {
        var talk = begun()
        #expect(talk.on(.lost(Self.down)) == [.changed(Self.down)])
        #expect(talk.waits() == [.prepare])
        #expect(talk.waits() == [.changed(SharedFault(.slow, "the password was not read in time"))])
    }

    // MARK: - Commands

    @Test func answersComeInTheOrderOfTheQuestions() {
        var talk = served()
        for number in 1...3 as ClosedRange<UInt64> { _ = talk.ask(number) }
        #expect(
            talk.says(":1\r\n_\r\n") == [
                .answer(1, .success(.number(ReceivedNumber(1)))), .answer(2, .success(.null)),
            ])
        #expect(talk.says("+x").isEmpty)
        #expect(talk.says("\r\n") == [.answer(3, .success(.text([120])))])
    }

    @Test func anErrorEndsTheConnectionAndAllThatWasAsked() {
        var talk = served()
        for number in 1...2 as ClosedRange<UInt64> { _ = talk.ask(number) }
        let fault = SharedFault(.refused, "the server refused: READONLY no")
        #expect(
            talk.says("-READONLY no\r\n+never\r\n") == [
                .answer(1, .failure(fault)), .close, .answer(2, .failure(fault)), .changed(fault),
            ])
        #expect(talk.ask(3) == [.answer(3, .failure(Self.notConnected))])
    }

    @Test(arguments: ["+nobody asked\r\n", "?\r\n", "*-2\r\n"])
    func whatIsNoAnswerEndsTheConnection(text: String) {
        var talk = served()
        let actions = talk.says(text)
        #expect(actions.first == .close)
        guard case .changed(let fault?) = actions.last else { return #expect(Bool(false)) }
        #expect(fault.kind == .invalid)
    }

    @Test func anAnswerThatDoesNotComeEndsTheConnection() {
        var talk = served()
        _ = talk.ask(1)
        talk.now += Self.second / 2
        _ = talk.ask(2)
        let fault = SharedFault(.slow, "no answer in 1000 ms")
        #expect(
            talk.waits() == [.close, .answer(1, .failure(fault)), .answer(2, .failure(fault)), .changed(fault)])
    }

    @Test func aQuietConnectionIsAskedWhetherItLives() {
        var talk = served()
        let before = talk.now
        #expect(talk.waits() == sent("PING"))
        #expect(talk.now == before + RedisMachine.quiet)
        #expect(talk.says("+PONG\r\n").isEmpty)
        #expect(talk.waits() == sent("PING"))
        #expect(talk.waits() == [.close, .changed(SharedFault(.slow, "no answer in 1000 ms"))])
    }

    @Test func commandsAreBounded() {
        var talk = served()
        for number in 0..<UInt64(RedisMachine.mostPending) { _ = talk.ask(number) }
        let full = SharedFault(.queueFull, "too many commands wait")
        #expect(talk.ask(9999) == [.answer(9999, .failure(full))])
        talk.says("_\r\n")
        #expect(talk.ask(10_000) == sent("GET"))
        var other = served()
        let large = [UInt8](repeating: 0, count: RedisMachine.mostOctets)
        #expect(other.on(.asked([large], number: 1)) == [.answer(1, .failure(full))])
    }

    // MARK: - Ends

    @Test func pausesGrowAndEndWithAConnectionThatHeld() {
        var talk = begun()
        var pauses: [UInt64] = []
        for _ in 0..<8 {
            talk.on(.lost(Self.down))
            let before = talk.now
            talk.waits()
            pauses.append(talk.now - before)
        }
        for (index, pause) in pauses.enumerated() {
            let longest = min(RedisMachine.firstPause << UInt64(index), RedisMachine.longestPause)
            #expect((longest / 2...longest).contains(pause), "pause \(index) lasted \(pause)")
        }
        talk.logIn()
        talk.now += 2 * Self.second
        talk.on(.lost(Self.down))
        let before = talk.now
        talk.waits()
        #expect(talk.now - before <= RedisMachine.firstPause)
    }

    @Test func whatIsUnderWayAtTheEndIsAnswered() {
        var talk = served()
        _ = talk.ask(1)
        let ending = SharedFault(.unavailable, "ending")
        #expect(talk.on(.ended) == [.answer(1, .failure(ending)), .close])
        #expect(talk.machine.deadline == nil)
        #expect(talk.ask(2) == [.answer(2, .failure(Self.notConnected))])
        #expect(talk.on(.connected).isEmpty)
    }

    // MARK: - Whatever the order

    /// Every sequence of four of these events, from the start and from a login: each command is answered once and by its own number, a connection is closed before the next
    /// is made, nothing is sent without one, and something is due as long as the machine lives.
    @Test(arguments: [false, true])
    func noOrderOfEventsLosesACommand(isServed: Bool) {
        let texts = ["_\r\n", "-NO\r\n", "%1\r\n+a\r\n:3\r\n$1\r\nx\r\n>1\r\n$9\r\nsubscribe\r\n:0\r\n", "?", ">1\r\n"]
        let kinds = 5 + texts.count
        for sequence in 0..<(kinds * kinds * kinds * kinds) {
            var talk = isServed ? served() : begun()
            var check = Walk(isConnecting: isServed)
            var left = sequence
            for step in 0..<4 {
                let kind = left % kinds
                left /= kinds
                switch kind {
                case 0: check.take(talk.on(.prepared(password: nil)))
                case 1 where check.isConnecting: check.take(talk.on(.connected))
                case 2: check.take(talk.on(.lost(Self.down)), lost: true)
                case 3: check.take(talk.waits())
                case 4: check.ask(UInt64(step), talk.ask(UInt64(step)))
                case 5...: check.take(talk.says(texts[kind - 5]))
                default: break
                }
                if talk.machine.deadline == nil { check.faults.append("nothing is due") }
            }
            check.take(talk.on(.ended))
            if !check.open.isEmpty { check.faults.append("without an answer: \(check.open)") }
            guard check.faults.isEmpty else { return #expect(Bool(false), "sequence \(sequence): \(check.faults)") }
        }
    }

    private struct Walk {
        var open: Set<UInt64> = []
        var isConnecting = false
        var faults: [String] = []

        mutating func ask(_ number: UInt64, _ actions: [Action]) {
            open.insert(number)
            take(actions)
        }

        mutating func take(_ actions: [Action], lost: Bool = false) {
            // A link that has lost its connection has closed it.
            if lost { isConnecting = false }
            for action in actions {
                switch action {
                case .connect:
                    if isConnecting { faults.append("a second connection") }
                    isConnecting = true
                case .close: isConnecting = false
                case .send: if !isConnecting { faults.append("sent without a connection") }
                case .answer(let number, _):
                    if open.remove(number) == nil { faults.append("\(number) is answered twice") }
                case .prepare, .news, .changed: break
                }
            }
        }
    }
}
