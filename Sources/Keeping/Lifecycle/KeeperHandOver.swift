/// How far the keeper is with giving its part to another process.
package struct KeeperHandOver {
    /// False while another process grants: no flight starts, no secret is tried, nothing is looked up in the store.
    var mayGrant = true
    /// Set for `check --live`: no step is made that may replace a refresh token, which is the running gateway's to spend.
    package var sparesRefreshTokens = false
    /// Tasks that have begun and not ended: flights, readings of secrets, marks on their way to the disk.
    var works = 0
    /// Whom to tell when none is left.
    var whenQuiet: (@Sendable () -> Void)?
    /// The store's state before it was given away.
    var stateBefore: StoreHealth.State?
}
