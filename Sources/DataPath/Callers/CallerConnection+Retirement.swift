internal import Reactor

/// The consequences of a reload and of a drain for a connection that is there.
extension CallerConnection {
    /// The next answer says that it is the last one. A caller without a request gets a moment to send one: closed at once, its connection
    /// might cross a request that is on its way, and not every caller sends that again.
    func retire() {
        guard !isLast else { return }
        isLast = true
        if stage == .reading, start == end { expectRequest() }
    }

    func expectRequest() {
        isFlushing = false
        expect(by: loop.now + (isLast ? data.farewell : DataLoop.idleCallerTimeout), kind: Deadline.idle)
    }

    /// After a reload: the next request is for whatever now stands at the address that it came to. Of an address that is gone it is served by
    /// the routes of old, as the last one.
    func renewListener() {
        hop = nil
        if let next = data.listener(succeeding: listener) { listener = next } else { isLast = true }
    }
}
