import FoundationEssentials
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
        var refreshTokens = BoundedTable<Set<String>>(capacity: 1_000)
        var secrets = BoundedTable<Bool>(capacity: 50_000)
        var counts: [String: Int] = [:]
        var refusals: [String] = []
        var recent: [String] = []
    }

    let settings: Settings
    let faults = Faults()
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

    func keepSecret(_ value: String) { state.withLock { $0.secrets.insert(value, true) } }

    /// A new random value that is listed as a secret from now on.
    func mint(_ bytes: Int, percentEncoded: Bool = false) -> String {
        let value = Random.text(bytes: bytes, percentEncoded: percentEncoded)
        keepSecret(value)
        return value
    }
}

// MARK: - Accounts and tokens

extension Ledger {
    enum Verdict: Sendable { case accepted, wrong, locked }

    /// Judges a password as a directory does: every wrong one counts, and the third locks the account.
    /// - Parameter operation: the name by which `wrong_password` may be limited to it.
    func login(_ user: String?, _ password: String?, at operation: String) -> Verdict {
        let isRefused = faults.take("wrong_password", on: operation) != nil
        return state.withLock {
            $0.counts["password_attempts", default: 0] += 1
            if $0.locked { return .locked }
            if !isRefused, user == settings.user, password == $0.password {
                $0.failures = 0
                return .accepted
            }
            $0.counts["password_rejected", default: 0] += 1
            $0.failures += 1
            if $0.failures >= 3 { $0.locked = true }
            return $0.locked ? .locked : .wrong
        }
    }

    func change(password: String) {
        state.withLock {
            $0.password = password
            $0.secrets.insert(password, true)
        }
    }

    /// Milliseconds of a new token's life, which `token_lifetime_ms` changes.
    func life(_ usual: Int = 3_600_000) -> UInt64 {
        UInt64(max(0, faults.take("token_lifetime_ms")?.number ?? usual))
    }

    /// A new bearer token, and for how many seconds it is good.
    func bearerToken(_ prefix: String = "", bytes: Int, for scopes: Set<String>) -> (value: String, seconds: Int) {
        let token = prefix + mint(bytes)
        let life = life()
        state.withLock { $0.bearerTokens.insert(token, BearerToken(scopes: scopes, expires: Moment.now() + life)) }
        return (token, Int(life / 1000))
    }

    func refreshToken(for scopes: Set<String>) -> String {
        let token = mint(32)
        state.withLock { $0.refreshTokens.insert(token, scopes) }
        return token
    }

    /// The scopes for which a bearer token is good now; nil for one that is unknown, or refused by `reject_tokens`.
    func scopes(of token: String, for request: Request) -> Set<String>? {
        guard let known = state.withLock({ $0.bearerTokens[token] }), known.expires > Moment.now(),
            faults.take("reject_tokens", path: request.path) == nil
        else { return nil }
        return known.scopes
    }

    /// Whether there was such a token.
    @discardableResult
    func forget(_ token: String) -> Bool {
        state.withLock { state in
            let had = (state.bearerTokens.remove(token) != nil, state.refreshTokens.remove(token) != nil)
            return had.0 || had.1
        }
    }

    func revoke() {
        state.withLock {
            $0.accessTokens.removeAll()
            $0.bearerTokens.removeAll()
        }
    }

    func reset(tokens: Bool) {
        faults.clear()
        state.withLock {
            $0.counts.removeAll()
            $0.refusals.removeAll()
            $0.recent.removeAll()
            $0.failures = 0
            $0.locked = false
            $0.password = settings.password
            guard tokens else { return }
            $0.userTokens.removeAll()
            $0.handles.removeAll()
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

    /// Milliseconds since 1970.
    static func wall() -> Int64 { Int64(Date.now.timeIntervalSince1970 * 1000) }

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
        let bytes = (0..<count).map { _ in UInt8.random(in: 0...255) }
        guard percentEncoded else { return Base64.encodeURL(bytes) }
        return Base64.encode(bytes).replacing("+", with: "%2B").replacing("/", with: "%2F").replacing("=", with: "%3D")
    }
}
