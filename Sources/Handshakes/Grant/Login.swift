/// A scheme that may need a person, once: what the login brings is kept, and everything after it goes on without one.
public protocol InteractiveHandshake: Handshake {
    /// Whether this identity's session can only be had from a person. `acquire` then throws `.interactionRequired` where there is none.
    var needsPerson: Bool { get }

    /// How the browser comes back to this client; nil for schemes whose person may use any device.
    var redirect: LoginRedirect? { get }

    /// Whether the issuer can be reached, and offers what a login needs. Asks for nothing that a person would have to grant.
    func reach(environment: any GrantEnvironment) async throws(GrantFailure)

    /// Leads a person through the login and returns what is to be kept. Runs on the executor of its caller, for minutes; whatever it
    /// holds by then that others could change is read again by whoever keeps the outcome.
    ///
    /// Throws `.loginExpired` when the person was too slow, `.policyDenied` when the person or the issuer said no.
    func login(
        _ wanted: Wanted, dialogue: any LoginDialogue, environment: any GrantEnvironment
    ) async throws(GrantFailure) -> LoginGrant
}

/// The outcome of a login.
public struct LoginGrant: Sendable {
    /// The session: `isHuman`, mostly with a refresh token.
    public var material: LayerMaterial
    /// A sentence that the person should read, beside that it is done.
    public var remark: String?
    /// The authentication that the login was made with; nil: none was asked for.
    public var authenticated: Authenticated?
}

/// The person's end of a login, as a handshake sees it: a terminal, behind the admin socket or in the same process.
public protocol LoginDialogue: Sendable {
    /// The port of this machine's loopback where the browser's way back is awaited; nil where the address is pasted instead.
    var redirectPort: UInt16? { get }

    /// Shows what the person has to do, in place of what was shown before.
    func show(_ prompt: LoginPrompt) async

    /// Shows in a short sentence how far the login is.
    func progress(_ text: String) async

    /// Waits so many nanoseconds. Throws when the login was given up.
    func pause(_ nanoseconds: UInt64) async throws(GrantFailure)

    /// Waits for the browser to come back. Called once.
    /// - Parameters:
    ///   - patience: nanoseconds, then `.loginExpired` is thrown.
    ///   - judge: says of a query (as received, without its `?`) whether it is the answer. Called on the keeper's loop.
    func redirected(
        within patience: UInt64, judge: @escaping @Sendable (_ query: String) -> RedirectVerdict
    ) async throws(GrantFailure) -> Secret
}

/// The task of the person. Everything here may be shown: printable ASCII, bounded.
public struct LoginPrompt: Sendable, Equatable {
    /// The page to open.
    public var url: String
    /// The same page with the code in it, where the issuer offers one: for QR codes (RFC 8628 §3.3.1).
    public var completeURL: String?
    /// To be entered on the page.
    public var code: String?
    /// The browser comes back with an answer.
    public var awaitsRedirect = false
    /// Nanoseconds of CLOCK_BOOTTIME until which the page works.
    public var deadline: UInt64
}

/// The verdict on a request to the redirect address.
public enum RedirectVerdict: Sendable {
    /// The answer, with what it brings.
    case accepted(Secret)
    /// Not the answer: whoever sent it is told so, and the wait goes on. Otherwise any page could end a login.
    case refused(String)
    /// The answer, and the end of the login.
    case failed(GrantFailure)
}

/// Where the browser is sent back to.
public struct LoginRedirect: Sendable, Equatable {
    /// nil: this machine's loopback, at a port that the system gives (RFC 8252 §7.3).
    public var port: UInt16?
    /// With its `/`.
    public var path: String
    /// Whether this machine can be the one that it leads to. Otherwise the address has to be pasted.
    public var isLoopback: Bool
}

extension GrantFailure {
    /// The person did not get through in time.
    public static let loginExpired = GrantFailure.timedOut(step: "login")
    /// The login was given up at our end.
    public static let loginCancelled = GrantFailure.timedOut(step: "login cancelled")
}
