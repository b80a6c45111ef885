/// The passwords that a gateway has said not to send any more, by user, and those of them that its next processes find in the store.
struct HeldBackPasswords {
    private struct Word {
        let password: String
        let process: ProcessName
        /// The moment at which operators were told, in nanoseconds.
        let time: UInt64
        /// A process that said so has ended, and its disk had the time to keep the mark.
        var isKept = false
    }

    private var words: [String: Word] = [:]
    private var diskWellAt: UInt64 = 0

    mutating func told(of user: String, _ password: String, _ process: ProcessName, at time: UInt64) {
        guard words[user]?.password != password else { return }
        words[user] = Word(password: password, process: process, time: time)
    }

    mutating func diskIsWell(at time: UInt64) { diskWellAt = time }

    mutating func ended(_ process: ProcessName, at time: UInt64) {
        for user in words.keys {
            guard let word = words[user], word.process == process else { continue }
            if time > max(word.time, diskWellAt) + .seconds(1) { words[user]?.isKept = true }
        }
    }

    /// Whether a process begins with the knowledge that this password is not to be sent.
    func isKnown(_ password: String, of user: String, to process: ProcessName) -> Bool {
        guard let word = words[user], word.password == password, word.isKept else { return false }
        return process.life > word.process.life
    }
}
