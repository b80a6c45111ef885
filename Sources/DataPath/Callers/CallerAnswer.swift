internal import HTTP1

/// The answer of an exchange: what the upstream's head says, how the body is framed on either side, and how far it has come.
struct CallerAnswer: ~Copyable {
    var body = BodyReader.none
    /// The framing toward the caller.
    var framing = BodyFraming.none
    /// The framing that the upstream's head announced.
    var headFraming = BodyFraming.none
    var headLength = 0
    var status = 0
    /// Interim answers (1xx) that came before it.
    var interims = 0
    /// Octets of the final answer's head have been written.
    var hasBegun = false
    /// The upstream keeps its connection after this answer.
    var isPersistent = false
    /// The answer is held until its body has been seen.
    var look: AnswerLook?

    @inline(__always) init() {}
}
