internal import HTTP1
internal import Numbers
internal import Octets

/// The server's answer to a preauthorization (docs/design/wire/mobilefirst.md#challenges), reduced to what is decided by. Names of checks,
/// counts and times; of messages only that there is one.
struct MobileFirstAnswer {
    enum Meaning {
        case granted
        case challenged
        case failed
        case unknownClient
        case conflict
        /// - judged: whether answers sent with the call may have been looked at.
        case other(GrantFailure, judged: Bool)
    }

    var meaning: Meaning
    var challenges: [(check: String, Challenge)] = []
    var successes: [String] = []
    var failures: [String] = []
    /// Milliseconds since 1970.
    var serverTime: Int64?

    struct Challenge {
        /// The server's own count, to which nothing is ever added.
        var attempts: Attempts = .untold
        /// Somebody has failed before.
        var tellsError = false
        /// A notice that wants to be acknowledged.
        var notice: [UInt8]?

        enum Attempts: Equatable { case untold, left(Int), unreadable }
    }

    /// More checks in one answer are no answer.
    static let mostChecks = 32
}

// MARK: - Reading

extension MobileFirstAnswer {
    init(_ answer: IssuerAnswer) {
        let step = "preauthorize"
        let reason = "\(step): status \(answer.status)"
        let tree = try? JSONTree(answer.body)
        let parts = ["challenges", "successes", "failures"].map { tree?.members([$0]) ?? [] }
        self.init(meaning: .granted)
        guard parts.allSatisfy({ $0.count <= Self.mostChecks }) else {
            meaning = .other(.issuerAnswerInvalid(reason: "\(reason): too many checks"), judged: true)
            return
        }
        challenges = parts[0].map { ($0.name, Challenge($0.value)) }
        successes = parts[1].map(\.name)
        failures = parts[2].map(\.name)
        if case .number(let digits)? = try? tree?.value(at: ["successes", "clockSynchronization", "serverTimeStamp"]) {
            serverTime = ReceivedNumber(json: digits)?.within(0...100_000_000_000_000)
        }
        meaning = Self.meaning(
            answer, tree, reason, isChallenge: !challenges.isEmpty, isFailure: !failures.isEmpty)
    }

    private static func meaning(
        _ answer: IssuerAnswer, _ tree: JSONTree?, _ reason: String, isChallenge: Bool, isFailure: Bool
    ) -> Meaning {
        switch answer.status {
        case 200 where !isFailure && !isChallenge: return .granted
        case 200 where isFailure, 222 where isFailure, 403 where isFailure: return .failed
        case 401 where isChallenge && asks(answer): return .challenged
        case 400 where code(tree) == "INVALID_CLIENT_ID": return .unknownClient
        case 409 where answer.header("MFP-Conflict") != nil: return .conflict
        case 401, 403: return .other(.policyDenied(reason: reason), judged: true)
        case 408, 425, 429:
            return .other(answer.unavailable(reason), judged: false)
        // The server may have failed after it had looked.
        case 500..<600:
            return .other(answer.unavailable(reason), judged: true)
        case 300..<400:
            return .other(.configuration(reason: "\(reason): redirected instead of answered"), judged: true)
        case 404, 405, 413, 415: return .other(.configuration(reason: reason), judged: false)
        case 400..<500: return .other(.configuration(reason: reason), judged: true)
        default: return .other(.issuerAnswerInvalid(reason: reason), judged: true)
        }
    }

    private static func asks(_ answer: IssuerAnswer) -> Bool {
        let lines = answer.headers.filter { Array($0.name.utf8).matches("WWW-Authenticate") }
        return AuthChallenge.list(lines.map { Array($0.value.utf8) }).contains { $0.scheme.matches("MFP-Challenge") }
    }

    static func code(_ tree: JSONTree?) -> String? { tree?.text(["errorCode"])?.asErrorCode }
}

extension MobileFirstAnswer.Challenge {
    init(_ tree: JSONTree) {
        if let told = try? tree.value(at: ["remainingAttempts"]) {
            switch told {
            case .null: break
            // A page of the documentation reads it as a text.
            case .number(let bytes), .string(let bytes):
                attempts = ReceivedNumber(decimal: bytes)?.within(Int.min...Int.max).map { .left($0) } ?? .unreadable
            default: attempts = .unreadable
            }
        }
        switch try? tree.value(at: ["errorMsg"]) {
        case nil, .null?: break
        default: tellsError = true
        }
        if case .string(let type)? = try? tree.value(at: ["messageType"]), type.elementsEqual("NOTIFY".utf8),
            let id = (try? tree.value(at: ["messageId"]))?.scalar, (1...256).contains(id.count),
            !id.contains(where: \.isControl)
        {
            notice = id
        }
    }
}

extension MobileFirstAnswer {
    /// A check's name as operators may see it: it came from the server.
    static func shown(_ check: String) -> String {
        let isName =
            (1...64).contains(check.utf8.count)
            && check.utf8.allSatisfy { $0.isLetterOrDigit || "_.-".utf8.contains($0) }
        return isName ? check : "a check of an unreadable name"
    }

    static func shown(_ checks: [String]) -> String { checks.prefix(8).map(shown).joined(separator: ", ") }
}
