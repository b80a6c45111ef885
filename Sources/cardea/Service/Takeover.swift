import Gateway
import Glibc
import Reactor
import World

/// The new process's side of an upgrade in place, on the main thread at its start. Wherever the old process is gone, this one goes on as
/// after any start: the sockets are here, and the store is nobody's.
struct Takeover {
    private let channel: HandOverChannel
    private(set) var sockets: [HandedSocket] = []

    enum Word {
        static let sockets = "sockets", all = "all", store = "store", prepared = "prepared", serve = "serve"
        static let failed = "failed", end = "end"
        /// Before an address.
        static let spare = "spare "
    }

    /// Takes the sockets; nil where this process takes over from nobody.
    init?() {
        guard let channel = HandOverChannel.ofThisStart() else { return nil }
        self.channel = channel
        while case .message(let message) = channel.receive(waits: true) {
            var lines = message.text.split(separator: "\n").map(String.init)
            guard !lines.isEmpty, lines.removeFirst() == Word.sockets else { return }
            for (address, descriptor) in zip(lines, message.descriptors) {
                let isSpare = address.hasPrefix(Word.spare)
                sockets.append(
                    HandedSocket(
                        address: isSpare ? String(address.dropFirst(Word.spare.count)) : address,
                        descriptor: descriptor,
                        isSpare: isSpare))
            }
        }
    }

    /// The old process's call, before the other end is given away: what is sent waits there.
    static func send(_ sockets: [HandedSocket], over channel: HandOverChannel) -> Bool {
        var rest = sockets[...]
        while !rest.isEmpty {
            let batch = rest.prefix(HandOverChannel.descriptorLimit)
            rest = rest.dropFirst(batch.count)
            let addresses = batch.map { ($0.isSpare ? Word.spare : "") + $0.address }
            let text = ([Word.sockets] + addresses).joined(separator: "\n")
            guard channel.send(text, descriptors: batch.map(\.descriptor)) else { return false }
        }
        return channel.send(Word.all)
    }

    /// Returns when the store is this process's to open.
    func awaitStore() { ask(Word.store) { $0 == Word.store } }

    /// Returns when the old process accepts nobody any more on `addresses`.
    func awaitTurn(serving addresses: [String]) {
        ask(([Word.prepared] + addresses).joined(separator: "\n")) { $0 == Word.serve }
    }

    /// Comes back when this process is the one that serves.
    func takeOver(_ gateway: Gateway) {
        // Tokens that a start waits for are waited for; the old process serves meanwhile, and has an end to its patience.
        while !gateway.isPrepared() {
            switch channel.receive(waits: false) {
            case .end: return
            case .message(let message) where message.text == Word.end: _exit(ExitStatus.unavailable)
            case .message, .nothing: SystemTime().pause(milliseconds: 5)
            }
        }
        awaitTurn(serving: gateway.servedAddresses)
    }

    private func ask(_ question: String, until isAnswered: (String) -> Bool) {
        guard channel.send(question) else { return }
        while case .message(let message) = channel.receive(waits: true) {
            if isAnswered(message.text) { return }
            // Given up: the old process serves on.
            if message.text == Word.end { _exit(ExitStatus.unavailable) }
        }
    }

    func fail(_ reason: String) { channel.send(Word.failed + "\n" + reason) }
}
