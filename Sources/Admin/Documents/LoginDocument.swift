public import Keeping

/// A login or logout as the admin socket tells it and `--json` prints it.
public struct LoginDocument: AdminDocument, Equatable, Sendable {
    /// The identity's name in the configuration.
    public var identity: String
    /// Names it at the admin socket.
    public var flow: String
    /// `running`, `done`, `failed`, `expired` or `cancelled`.
    public var state: String
    /// The person's task; nil before it is known and when the login is over.
    public var prompt: Prompt?
    /// A sentence on the login's progress; nil where there is nothing to tell.
    public var progress: String?
    /// The login's outcome.
    public var detail: String?
    /// Why it failed, one word.
    public var reason: String?

    /// Where a person logs in.
    public struct Prompt: Codable, Equatable, Sendable {
        /// The address to open in a browser.
        public var url: String
        /// With the code in it.
        public var completeUrl: String?
        /// The code to type there (RFC 8628 §3.3); nil where the scheme has none.
        public var code: String?
        /// The browser will be led to the redirect address of this machine.
        public var awaitsRedirect: Bool
        /// Seconds until the login expires.
        public var secondsLeft: Int
    }

    /// The report in the words of the document.
    public init(_ report: LoginReport) {
        identity = report.identity
        flow = report.flow
        state = report.state.rawValue
        prompt = report.prompt.map {
            Prompt(
                url: $0.url, completeUrl: $0.completeURL, code: $0.code, awaitsRedirect: $0.awaitsRedirect,
                secondsLeft: $0.secondsLeft)
        }
        progress = report.progress
        detail = report.detail
        reason = report.reason
    }

    /// Done, failed, expired or cancelled.
    public var isOver: Bool { state != LoginReport.State.running.rawValue }
    /// The login succeeded.
    public var isDone: Bool { state == LoginReport.State.done.rawValue }
}

extension RedirectReply: AdminDocument {}

/// Why the gateway refused, out of the answer's body; nil where there is no such document.
public func refusal(in body: String) -> String? {
    ResetDocument(parsing: body)?.error
}

/// Why the body of `/readyz` says that traffic should not come; nil for anything else.
public func reasons(in body: String) -> String? {
    ReadinessDocument(parsing: body).flatMap { $0.reasons.isEmpty ? nil : $0.reasons.joined(separator: "; ") }
}
