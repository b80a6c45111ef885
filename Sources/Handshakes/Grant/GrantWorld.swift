internal import TLS
package import World

/// The clock and the randomness that handshakes use: parameters, so that a test can know what goes out.
package struct GrantWorld: Sendable {
    /// Milliseconds since 1970.
    let wallMilliseconds: @Sendable () -> Int64
    /// Gives as many octets as are asked for, fit for keys.
    let random: @Sendable (Int) -> [UInt8]

    /// Seconds since 1970.
    var wallSeconds: Int64 { wallMilliseconds() / 1000 }
}

extension GrantWorld {
    /// The clock and the randomness of the process, unless others are handed over.
    package init(time: any TimeSource = SystemTime(), random: any RandomSource = SystemRandom()) {
        self.init(wallMilliseconds: { time.wallMilliseconds() }, random: { random.bytes($0) })
    }
}
