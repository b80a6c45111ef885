public import Numbers

/// How many steps a session has taken, as the fleet counts them: 0 to 2^53, where it stops. Scripts of the server count in doubles, which
/// tell no neighbours apart beyond that.
public struct SessionVersion: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The version of a session before its first step.
    public static let none = SessionVersion(0)
    private static let most: Int64 = 1 << 53
    /// More steps than the others can have taken while the server could not be asked.
    private static let unseen: Int64 = 1 << 20

    private let number: Int64

    private init(_ number: Int64) { self.number = min(number, Self.most) }

    /// Nil for what no gateway of ours counts to.
    public init?(_ received: ReceivedNumber) {
        guard let number = received.within(0...Self.most) else { return nil }
        self.number = number
    }

    /// In the old format anybody who writes to the server says which: from the highest that is taken the sealed ones can still count on.
    init?(plain received: ReceivedNumber) {
        guard let number = received.within(0...Self.most / 2) else { return nil }
        self.number = number
    }

    /// The version of the commit that follows.
    public var next: SessionVersion { SessionVersion(number + 1) }
    /// Beyond what the others may have come to meanwhile.
    public var beyondTheUnseen: SessionVersion { SessionVersion(number + Self.unseen) }

    /// An older version is less.
    public static func < (left: SessionVersion, right: SessionVersion) -> Bool { left.number < right.number }
    /// Decimal.
    public var description: String { String(number) }

    // MARK: - In rows and envelopes

    /// Eight, big-endian.
    public var octets: [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * Int64($0))) } }

    /// Nil for anything but eight octets of a version.
    public init?(octets: some Collection<UInt8>) {
        guard octets.count == 8 else { return nil }
        self.init(ReceivedNumber(octets.reduce(Int64(0)) { $0 << 8 | Int64($1) }))
    }
}
