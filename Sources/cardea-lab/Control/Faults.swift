import Synchronization

/// The faults that a test asked for. A fault is set through the control interface under its name:
/// `true` lasts until the next reset, a number is its value, and an object states everything:
/// `{"value": …, "times": 1, "path": "/prefix", "on": "access"}`.
final class Faults: Sendable {
    struct Fault: Sendable {
        let number: Int?
        let text: String?
        var times: Int?
        let path: String?
        /// The operation it is limited to: `challenge`, `answer`, `register`, `authenticate`, `access`, `token`.
        let operation: String?

        init(_ stated: JSON) {
            let value = stated.members == nil ? stated : stated["value"]
            number = value?.integer
            text = value?.text
            times = stated["times"]?.integer
            path = stated["path"]?.text
            operation = stated["on"]?.text
        }
    }

    /// Every name that may be set, with what it does, as `faults.txt` has it. An unknown name is refused, so that a test cannot misspell
    /// its fault.
    static let known: [String: String] = Dictionary(
        uniqueKeysWithValues: String(decoding: PackageResources.faults_txt, as: UTF8.self)
            .split(separator: "\n").filter { !$0.hasPrefix("#") }
            .map { line in
                let halves = line.split(separator: ": ", maxSplits: 1)
                return (String(halves[0]), String(halves[1]))
            })

    private let table = Mutex<[String: Fault]>([:])

    /// The fault of this name if it is set and applies; uses up one of its times.
    func take(_ name: String, path: String = "", on operation: String? = nil) -> Fault? {
        table.withLock { table in
            guard var fault = table[name] else { return nil }
            if let prefix = fault.path, !path.hasPrefix(prefix) { return nil }
            if let wanted = fault.operation, wanted != "any", wanted != operation { return nil }
            if let times = fault.times {
                guard times > 0 else { return nil }
                fault.times = times - 1
                table[name] = fault
            }
            return fault
        }
    }

    /// The same as `take`, for faults of an answer's delivery, which leave challenges alone unless told otherwise.
    func takeDelivery(_ name: String, path: String, isChallenge: Bool) -> Fault? {
        let limited = table.withLock { $0[name]?.operation != nil }
        if !limited && isChallenge { return nil }
        return take(name, path: path, on: isChallenge ? "challenge" : "answer")
    }

    func isSet(_ name: String) -> Bool { table.withLock { $0[name] != nil } }

    func clear() { table.withLock { $0.removeAll() } }

    func set(_ changes: JSON) throws(Refusal) {
        guard let members = changes.members else {
            throw Refusal(400, "", "an object of names and values is wanted")
        }
        if let unknown = members.keys.first(where: { Faults.known[$0] == nil }) {
            throw Refusal(400, "", "unknown fault '\(unknown)'")
        }
        table.withLock { table in
            for (name, value) in members { table[name] = value.isSet ? Fault(value) : nil }
        }
    }
}
