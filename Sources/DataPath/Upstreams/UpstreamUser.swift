/// Who uses an upstream connection right now: an exchange of a caller, or a call to an issuer.
package protocol UpstreamUser: AnyObject {
    /// The connection is ready to take a request.
    func upstreamConnected(_ connection: UpstreamConnection)
    /// Bytes, or the end of them, may be read; output may have drained.
    func upstreamReady(_ connection: UpstreamConnection)
    /// The connection is lost. It has been torn down and must not be used again.
    func upstreamLost(_ connection: UpstreamConnection, _ fault: Fault)
    /// Its deadline passed; the user decides what that means.
    func upstreamTimedOut(_ connection: UpstreamConnection)
}
