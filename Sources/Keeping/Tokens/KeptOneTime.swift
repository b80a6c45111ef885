internal import DataPath
internal import Handshakes

/// The keeper's memory of credentials that are good once: who waits, and how fast their issuers may be asked.
struct KeptOneTime {
    var tickets: Set<Ticket> = []
    /// Readings of secrets, of whatever kind of credential.
    var readings = SecretTurns()
    /// No more wait than there are tickets.
    var calls = CallQueue()
    /// By origin.
    var paces: [String: CallPace] = [:]
}
