internal import DataPath
package import TokenStore
internal import Tokens

/// An upgrade, as the keeper of the old process lives through it. Two processes that grant at a time would send a password twice and use a
/// refresh token twice; so this one stops, ends what it has begun, gives the store away, and goes on only when the other one is dead.
extension Keeper {
    static let upgrading = Fault(.upgrading, retryAfter: 1)

    /// Tokens that are held are served, work that is under way ends; whatever needs a grant or the store is told to come again.
    /// - Parameter completion: called once on the keeper's loop, when the last outcome is on its way to the disk. Not called after
    ///   `grantAgain`.
    package func stopGranting(_ completion: @escaping @Sendable () -> Void) {
        handOver.mayGrant = false
        handOver.whenQuiet = completion
        for token in tokens.all.inOrder { apply(token.machine.suspended(at: now), to: token) }
        checkQuiet()
    }

    /// After anything that may have ended something.
    func checkQuiet() {
        guard handOver.works == 0, let completion = handOver.whenQuiet else { return }
        // The one try of a secret is with a loop: its outcome decides over a mark.
        guard !tokens.all.contains(where: { $0.probation?.isTrying == true }) else { return }
        handOver.whenQuiet = nil
        if store != nil {
            // The other process will read what stands.
            putAgain()
            handOver.stateBefore = health.state
            // The state is that of a store which another process owns from the start: no step is made that only its owner may make.
            health.state = .locked("handed over to another process")
        }
        completion()
    }

    /// The store is not given away any more, if it has not been.
    package func keepStore() { handOver.whenQuiet = nil }

    /// The other process is dead. What it has written is younger than what is here.
    package func grantAgain(_ rows: [StoredRow], _ state: StoreHealth.State?) {
        handOver.mayGrant = true
        keepStore()
        if handOver.stateBefore != nil, let state { health.state = state }
        handOver.stateBefore = nil
        for row in store?.visible(rows) ?? [] { restore(row, replacing: true) }
        if store != nil { tokens.expectRows() }
        for token in tokens.all.inOrder { apply(token.machine.resumed(at: now), to: token) }
        warmUp([], routes)
    }
}
