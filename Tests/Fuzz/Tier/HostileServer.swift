import Numbers

@testable import Fleet

/// An input as what a shared server does, one section for each question of a gateway.
///
/// The first octet has the format in its lowest two bits, and whether the login is the input's own to answer; the second is how many octets
/// come at once. Behind each mark (0xF5) stands a letter: a question that is asked next (a small letter, `HostileServer.questions`), or a
/// bulk string that only a gateway of the fleet can have made (a capital letter, `HostileServer.known`).
struct HostileServer {
    var format = FleetFormat.new
    var answersLogin = true
    var piece = 0
    var sections: [Section] = []

    struct Section {
        var question: UInt8
        var reply: [UInt8]
    }

    static let mark: UInt8 = 0xF5

    init?(_ input: UnsafeBufferPointer<UInt8>, _ known: [UInt8: [UInt8]]) {
        guard input.count >= 3 else { return nil }
        format = [FleetFormat.new, .both, .old, .new][Int(input[0] & 3)]
        answersLogin = input[0] & 4 == 0
        piece = Int(input[1])
        var section = Section(question: 0, reply: [])
        var position = 2
        while position < input.count {
            let octet = input[position]
            position += 1
            guard octet == Self.mark, position < input.count else {
                section.reply.append(octet)
                continue
            }
            let letter = input[position]
            position += 1
            if let made = known[letter] {
                section.reply += Array("$\(made.count)\r\n".utf8) + made + [13, 10]
            } else {
                sections.append(section)
                section = Section(question: letter, reply: [])
            }
        }
        sections.append(section)
    }
}

/// The way to a server that is the input.
final class HostileLink: FleetLink {
    var now: UInt64 = 1_000_000_000
    var report: (FleetLinkEvent) -> Void = { _ in }
    private(set) var isConnected = false
    private var wakeTime: UInt64?
    private var events: [FleetLinkEvent] = []

    func prepare() { events.append(.prepared(password: Array("secret".utf8))) }
    func connect() {
        isConnected = true
        events.append(.connected)
    }
    func send(_ bytes: [UInt8]) { precondition(isConnected && !bytes.isEmpty, "sent without a connection") }
    func close() {
        isConnected = false
        // Nothing more is told of it.
        events.removeAll()
    }
    func wake(at time: UInt64?) { wakeTime = time }

    /// Tells what has been put off: nothing is told within a call.
    func settle() {
        while !events.isEmpty { report(events.removeFirst()) }
    }

    func receive(_ bytes: [UInt8]) {
        settle()
        guard isConnected, !bytes.isEmpty else { return }
        report(.received(bytes))
        settle()
    }

    func lose() {
        settle()
        guard isConnected else { return }
        isConnected = false
        report(.lost(SharedFault(.unavailable, "lost")))
        settle()
    }

    /// Moves the clock to where the tier is to be woken.
    func pass() {
        settle()
        guard let time = wakeTime else { return }
        now = max(now, time)
        report(.woken)
        settle()
    }
}
