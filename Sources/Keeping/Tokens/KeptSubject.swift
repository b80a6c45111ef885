internal import Handshakes
internal import HotCache

/// The state of a token for one end user or one URL beyond that of other tokens.
struct KeptSubject {
    /// The slot that stands for all users of the key.
    let space: Slot
    /// Its key leads to its slot: loops find it, and it counts.
    var isAdmitted = false
    /// The caller's own token, as it came last: what is exchanged. In memory only, wiped when it goes.
    var token: Secret?
}
