internal import Glibc

/// Why an address could not be listened on.
public struct ListenFault: Error, Sendable, CustomStringConvertible {
    /// The address as configured.
    public let address: String
    /// The name of the system call.
    public let call: String
    /// The error number that it left.
    public let errno: Int32
    /// Something that is no socket stands at the path.
    var meetsFile = false

    private var isFile: Bool { address.hasPrefix("unix:") }

    /// A sentence with what an operator can do.
    public var description: String {
        let advice =
            switch errno {
            case EADDRINUSE where meetsFile:
                "; a file that is no socket stands there: remove it, or choose another path"
            case EADDRINUSE where isFile:
                "; another process listens there, or left its socket where this user may not remove it"
            case EADDRINUSE: "; another process listens there"
            case EPERM where call == "chown":
                "; the process is not in that group: add its user to it, or leave socket.group out"
            case EACCES where isFile: "; this user may not make a file in that folder"
            case EACCES:
                "; a port below 1024 wants the capability CAP_NET_BIND_SERVICE (AmbientCapabilities= in a unit), or take a higher one"
            case ENOENT where isFile: "; create the folder, owned by the user that runs the gateway"
            case EADDRNOTAVAIL: "; this machine has no such address"
            default: ""
            }
        return "cannot listen on \(address): \(call): \(String(cString: strerror(errno)))\(advice)"
    }
}
