/// A login or logout as whoever started it sees it. Holds nothing that the person may not see.
public struct LoginReport: Sendable, Equatable {
    /// Names it; cannot be guessed.
    public var flow: String
    /// The identity's name in the configuration.
    public var identity: String
    /// How the login stands.
    public var state: State
    /// The person's part in the login; nil until that is known, and after the end.
    public var prompt: Prompt?
    /// How far it is.
    public var progress: String?
    /// The outcome: one safe sentence.
    public var detail: String?
    /// Why it failed: a word of `GrantFailure.Reason`.
    public var reason: String?

    /// All but `running` are final.
    public enum State: String, Sendable { case running, done, failed, expired, cancelled }

    /// Where a person logs in.
    public struct Prompt: Sendable, Equatable {
        /// The address to open in a browser.
        public var url: String
        /// The address with the code in it (RFC 8628 §3.3.1); nil where there is none.
        public var completeURL: String?
        /// The code to type there; nil where the scheme has none.
        public var code: String?
        /// The browser comes back with an answer, which belongs to `redirected`.
        public var awaitsRedirect: Bool
        /// Until the page is of no use any more.
        public var secondsLeft: Int
    }
}

/// The answer to the wish to log in or out.
public enum LoginStart: Sendable {
    case started(LoginReport)
    /// There is no identity of that name.
    case unknown
    /// The reason: no person is needed for a login, too many are under way, or the store cannot be read or changed by this process.
    case refused(String)
}

/// The meaning of a request to the redirect address, for whoever sent it.
public struct RedirectReply: Codable, Sendable, Equatable {
    /// The request was the answer that the login waited for, whatever it says.
    public var isAnswer: Bool
    /// The meaning in words: one safe sentence.
    public var text: String

    /// For who comes when nothing is awaited any more.
    public static let over = RedirectReply(isAnswer: false, text: "the login is over")
}
