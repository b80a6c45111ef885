internal import Handshakes
internal import Tokens

/// Authentication that upstreams ask of persons (RFC 9470), and the one that their last logins were made with, by identity. In memory alone: an
/// upstream that still wants it says so again.
struct StepUps {
    private var wishes: [IdentityDigest: Wish] = [:]
    private var logins: [IdentityDigest: Login] = [:]

    /// Nanoseconds for which a wish stands after it was said last. Somebody may have logged in at another gateway meanwhile.
    static let memory: UInt64 = 86_400_000_000_000

    private struct Wish {
        var stepUp: StepUp
        var saidAt: UInt64
    }

    private struct Login {
        let acrValues: [String]
        /// When the person was authenticated, in nanoseconds of `CLOCK_BOOTTIME`; nil: nobody knows.
        let at: UInt64?
    }

    /// The demand that the next login is to meet; nil: none.
    func wish(of digest: IdentityDigest, at now: UInt64) -> StepUp? {
        guard let wish = wishes[digest], now < wish.saidAt &+ Self.memory else { return nil }
        return wish.stepUp
    }

    /// Whether the last login was made for this, as far as is known: then another one would change nothing.
    func isMet(_ asked: StepUp, by digest: IdentityDigest, at now: UInt64) -> Bool {
        guard let login = logins[digest] else { return false }
        let isOfClass = asked.acrValues.isEmpty || asked.acrValues.contains { login.acrValues.contains($0) }
        guard isOfClass, let age = asked.maxAge else { return isOfClass }
        return login.at.map { now - min(now, $0) <= UInt64(age) * 1_000_000_000 } ?? false
    }

    /// - Returns: whether it is the first wish.
    mutating func ask(_ asked: StepUp, of digest: IdentityDigest, at now: UInt64) -> Bool {
        guard var stepUp = wish(of: digest, at: now) else {
            wishes[digest] = Wish(stepUp: asked, saidAt: now)
            return true
        }
        stepUp.join(asked)
        wishes[digest] = Wish(stepUp: stepUp, saidAt: now)
        return false
    }

    /// A login has come.
    /// - Parameters:
    ///   - authenticated: what it was made with; nil: nothing was asked for.
    ///   - obtainedAt: of its material.
    mutating func loggedIn(_ digest: IdentityDigest, _ authenticated: Authenticated?, at obtainedAt: UInt64) {
        let at = authenticated?.age.map { obtainedAt - min(obtainedAt, UInt64($0) * 1_000_000_000) }
        logins[digest] = Login(acrValues: authenticated?.acrValues ?? [], at: at)
        // A wish that came while the person was on the way may be another one.
        if let wish = wishes[digest], isMet(wish.stepUp, by: digest, at: obtainedAt) { wishes[digest] = nil }
    }

    /// A logout, or the word of an operator.
    mutating func forget(_ digest: IdentityDigest) {
        wishes[digest] = nil
        logins[digest] = nil
    }

    /// Lets go of identities that are configured no more.
    mutating func keep(_ isConfigured: (IdentityDigest) -> Bool) {
        wishes = wishes.filter { isConfigured($0.key) }
        logins = logins.filter { isConfigured($0.key) }
    }
}
