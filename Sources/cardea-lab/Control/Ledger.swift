import Glibc
import Synchronization

/// Everything the protected systems remember, behind one lock: accounts, tokens, counts, and why something was refused.
final class Ledger: Sendable {
    struct RequestContext: Sendable {
        let gate: String
        let level: Int
        /// The absolute URL whose 401 carried the context.
        let url: String
        let expires: UInt64
        var used = false
    }

    struct AccessToken: Sendable {
        let gate: String
        let level: Int
        let expires: UInt64
    }

    struct BearerToken: Sendable {
        let scopes: Set<String>
        let expires: UInt64
    }

    struct State: Sendable {
        var password: String
        var failures = 0
        var locked = false
        var contexts = BoundedTable<RequestContext>(capacity: 20_000)
        var handles = BoundedTable<String>(capacity: 1_000)
        var userTokens = BoundedTable<String>(capacity: 1_000)
        var accessTokens = BoundedTable<AccessToken>(capacity: 10_000)
        var bearerTokens = BoundedTable<BearerToken>(capacity: 10_000)
        var mobileTokens = BoundedTable<MobileHubServer.Token>(capacity: 10_000)
        var thirdParty = BoundedTable<MobileHubServer.ThirdParty>(capacity: 1_000)
        var refreshTokens = BoundedTable<Set<String>>(capacity: 1_000)
        var secrets = BoundedTable<Bool>(capacity: 50_000)
        var counts: [String: Int] = [:]
        var refusals: [String] = []
        var recent: [String] = []
    }

    let settings: Settings
    private let state: Mutex<State>

    init(settings: Settings) {
        self.settings = settings
        var first = State(password: settings.password)
        for secret in [settings.password, settings.clientSecret, settings.apiKey, settings.pin] {
            first.secrets.insert(secret, true)
        }
        state = Mutex(first)
    }

    func withState<Result: Sendable>(_ body: (inout sending State) -> sending Result) -> Result {
        state.withLock { body(&$0) }
    }
}

// MARK: - Counting

extension Ledger {
    func count(_ kind: String) {
        state.withLock { $0.counts[kind, default: 0] += 1 }
    }

    /// Remembers in words why a request was refused; the words never hold a secret.
    func refuse(_ why: String) {
        state.withLock {
            $0.counts["refusals", default: 0] += 1
            $0.refusals.append(why)
            if $0.refusals.count > 200 { $0.refusals.removeFirst() }
        }
    }

    func record(_ site: String, _ request: Request) {
        state.withLock {
            $0.counts["\(site)_requests", default: 0] += 1
            $0.recent.append("\(site) \(request.method) \(request.target)")
            if $0.recent.count > 500 { $0.recent.removeFirst(100) }
        }
    }

    /// A new random value that is listed as a secret from now on.
    func mint(_ bytes: Int, percentEncoded: Bool = false) -> String {
        let value = Random.text(bytes: bytes, percentEncoded: percentEncoded)
        state.withLock { $0.secrets.insert(value, true) }
        return value
    }
}

// MARK: - The account

extension Ledger {
    enum Verdict: Sendable { case accepted, wrong, locked }

    /// Judges a password as a directory does: every wrong one counts, and the third locks the account.
    func login(user: String, password: String, refused: Bool) -> Verdict {
        state.withLock {
            $0.counts["password_attempts", default: 0] += 1
            if $0.locked { return .locked }
            if !refused, user == settings.user, password == $0.password {
                $0.failures = 0
                return .accepted
            }
            $0.counts["password_rejected", default: 0] += 1
            $0.failures += 1
            if $0.failures >= 3 { $0.locked = true }
            return $0.locked ? .locked : .wrong
        }
    }
}

// MARK: - Time and chance

enum Moment {
    /// Milliseconds of CLOCK_MONOTONIC.
    static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1000 + UInt64(time.tv_nsec) / 1_000_000
    }

    /// Sleeps in short pieces until the time is over or `stop` says so.
    static func wait(milliseconds: Int, until stop: () -> Bool = { false }) {
        let end = now() + UInt64(max(0, milliseconds))
        while now() < end, !stop() {
            usleep(UInt32(min(20, end - min(end, now()))) * 1000)
        }
    }
}

enum Random {
    /// Random text: base64url without padding, or base64 with `+`, `/`, `=` percent-encoded as Oracle's token values
    /// are.
    static func text(bytes count: Int, percentEncoded: Bool = false) -> String {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let base64 = Base64.encode(bytes)
        var text = ""
        for character in base64 {
            switch character {
            case "+": text += percentEncoded ? "%2B" : "-"
            case "/": text += percentEncoded ? "%2F" : "_"
            case "=": text += percentEncoded ? "%3D" : ""
            default: text.append(character)
            }
        }
        return text
    }
}
