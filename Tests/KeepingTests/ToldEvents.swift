@testable import Telemetry

extension EventLog {
    /// Takes what operators were told since the last look: each event in one line, with its fields behind it.
    func takeTold() -> [String] {
        var told: [String] = []
        while let event = next() {
            let fields = event.fields.map { " \($0.key)=\($0.value.words)" }.joined()
            told.append("\(event.message)\(fields)")
        }
        return told
    }
}

extension LogValue {
    fileprivate var words: String {
        switch self {
        case .name(let name): name
        case .word(let word): "\(word)"
        case .count(let count): "\(count)"
        default: "\(self)"
        }
    }
}
