internal import Glibc

/// Why a configuration that is valid cannot be served.
public struct GatewayFault: Error, Sendable, CustomStringConvertible {
    /// A sentence for an operator, without a secret.
    public let description: String
    /// A second try a moment later may succeed, with nothing changed.
    public let isPassing: Bool
    /// Something cannot be read by this user, and may well be by another one.
    package let isOfThisUser: Bool

    /// - Parameter isPassing: trying again a moment later may help.
    public init(_ description: String, isPassing: Bool = false) {
        self.init(description, isPassing: isPassing, isOfThisUser: false)
    }

    package init(_ description: String, isPassing: Bool = false, isOfThisUser: Bool) {
        self.description = description
        self.isPassing = isPassing
        self.isOfThisUser = isOfThisUser
    }

    package init(_ fault: ListenFault) {
        // A process that ends still holds its address, and one that a network gives comes late at boot.
        let isPassing = fault.errno == EADDRINUSE && !fault.meetsFile || fault.errno == EADDRNOTAVAIL
        self.init("\(fault)", isPassing: isPassing)
    }
}
