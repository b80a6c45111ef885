internal import Handshakes

extension Keeper {
    func note(_ trace: RunTrace, of identity: KeptIdentity) { identity.lastRun = trace }
}
