internal import Glibc
internal import Reactor

extension SocketAddress {
    /// `AF_INET`, `AF_INET6` or `AF_UNIX`.
    var socketFamily: Int32 {
        switch family {
        case .ipv4: AF_INET
        case .ipv6: AF_INET6
        case .unix: AF_UNIX
        }
    }
}
