internal import DataPath
internal import Handshakes

/// A login or logout that the keeper runs: what the handshake says to the person, and what the person's end brings back.
/// Touched on the keeper's loop only.
final class KeptLogin: @unchecked Sendable {
    let flow: String
    let identity: KeptIdentity
    let redirectPort: UInt16?
    private(set) var state = LoginReport.State.running
    var prompt: LoginPrompt?
    var progress: String?
    private(set) var detail: String?
    private(set) var reason: String?
    var task: Task<Void, Never>?
    /// The material that the login brought did not reach the shared server.
    var isUntold = false
    /// An upstream has asked for another authentication, and the person is asked for it.
    var isStepUp = false
    /// A logout came while what it brought was being kept.
    var isOvertaken = false
    /// Nanoseconds of CLOCK_BOOTTIME; whoever started it is gone when this is long ago.
    var lastAsked: UInt64
    /// When it ended.
    private(set) var endedAt: UInt64?
    let alarm: Alarm
    /// The continuation of the pause or of the wait for the browser.
    private var wait: CheckedContinuation<Result<Secret, Handshakes.GrantFailure>, Never>?
    private var judge: (@Sendable (String) -> RedirectVerdict)?

    init(flow: String, identity: KeptIdentity, redirectPort: UInt16?, alarm: Alarm, at now: UInt64) {
        self.flow = flow
        self.identity = identity
        self.redirectPort = redirectPort
        self.alarm = alarm
        lastAsked = now
    }

    func wait(
        _ continuation: CheckedContinuation<Result<Secret, Handshakes.GrantFailure>, Never>,
        judge: (@Sendable (String) -> RedirectVerdict)?
    ) {
        guard state == .running else { return continuation.resume(returning: .failure(.loginCancelled)) }
        wait = continuation
        self.judge = judge
    }

    func resume(_ result: Result<Secret, Handshakes.GrantFailure>) {
        judge = nil
        let waiting = wait
        wait = nil
        waiting?.resume(returning: result)
    }

    /// The first answer counts; a second finds nobody who waits for it.
    func redirected(_ query: String) -> RedirectReply {
        guard state == .running, let judge else {
            return RedirectReply(isAnswer: false, text: "nothing waits for this answer")
        }
        switch judge(query) {
        case .refused(let reason): return RedirectReply(isAnswer: false, text: reason)
        case .accepted(let code):
            resume(.success(code))
            return RedirectReply(
                isAnswer: true, text: "the answer has arrived; what came of it stands where the login was started")
        case .failed(let failure):
            resume(.failure(failure))
            return RedirectReply(isAnswer: true, text: "the login failed; the reason stands where it was started")
        }
    }

    func end(_ state: LoginReport.State, detail: String?, reason: String? = nil, at now: UInt64) {
        guard self.state == .running else { return }
        self.state = state
        self.detail = detail
        self.reason = reason
        prompt = nil
        progress = nil
        endedAt = now
        // A step that is under way brings an outcome that nobody keeps.
        resume(.failure(.loginCancelled))
    }

    func report(at now: UInt64) -> LoginReport {
        LoginReport(
            flow: flow, identity: identity.plan.name, state: state,
            prompt: prompt.map { prompt in
                LoginReport.Prompt(
                    url: prompt.url, completeURL: prompt.completeURL, code: prompt.code,
                    awaitsRedirect: prompt.awaitsRedirect,
                    secondsLeft: Int(clamping: (prompt.deadline - min(prompt.deadline, now)) / 1_000_000_000))
            }, progress: progress, detail: detail, reason: reason)
    }
}
