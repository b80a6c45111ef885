/// `store.shared`: the Redis or Valkey of a fleet.
public struct SharedStore: Sendable, Equatable {
    /// Where the server is.
    public enum Address: Sendable, Equatable {
        case server(Origin)
        case unix(path: String)
    }

    /// How values, versions and news stand on the server: `old` as earlier releases know it, `new` sealed with version, end and news.
    public enum Format: String, Sendable, CaseIterable { case old, both, new }

    /// `store.shared`'s address.
    public var address: Address
    /// The number for `SELECT`.
    public var database: Int
    /// The name of an ACL user; nil: the default user.
    public var username: String?
    /// Read when a connection is made; nil: no password.
    public var password: SecretReference?
    /// Authorities that the server's certificate is checked by.
    public var authorities = [ClientTLS.Authority.system]
    /// Whether the password may go without TLS beyond this machine.
    public var allowsCleartext = false
    /// `store.shared.format`.
    public var format = Format.both

    /// The scheme is `rediss`.
    public var usesTLS: Bool { if case .server(let origin) = address { origin.scheme == .rediss } else { false } }
}

extension SharedStore: CustomStringConvertible {
    /// Where the server is, without its password.
    public var description: String {
        switch address {
        case .server(let origin): origin.description
        case .unix(let path): "unix:\(path)"
        }
    }
}
