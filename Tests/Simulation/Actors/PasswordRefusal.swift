/// A password that was refused, and who has read that.
struct PasswordRefusal {
    let password: String
    let reader: ProcessName
    /// Nanoseconds; nil until the refusal was read.
    var readAt: UInt64?

    /// Requests that were written before a refusal was read, by another loop.
    private static let slack: UInt64 = .milliseconds(100)

    /// A process knows of its own refusals; a later one of the same gateway by the store.
    /// - Parameter time: when it wrote.
    func wasKnown(to process: ProcessName, at time: UInt64, in world: World) -> Bool {
        guard let readAt, time > readAt + Self.slack, world.redis?.hasLostData != true else { return false }
        if reader == process { return true }
        let gateway = world.gateways[process.gateway]
        return reader.gateway == process.gateway && reader.life < process.life && World.hasStore(world.seed)
            && gateway.disk.hasKeptItsWord && gateway.upgrade == nil && readAt + .seconds(1) < gateway.bornAt
    }
}
