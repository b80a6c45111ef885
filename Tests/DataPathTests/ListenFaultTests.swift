import Glibc
import Testing

@testable import DataPath

/// What an operator reads where an address cannot be had: of each kind of address what helps there.
@Suite struct ListenFaultTests {
    @Test(arguments: [
        ("127.0.0.1:80", EACCES, "CAP_NET_BIND_SERVICE"),
        ("unix:/run/a.sock", EACCES, "may not make a file in that folder"),
        ("127.0.0.1:8080", EADDRINUSE, "another process listens there"),
        ("unix:/run/a.sock", EADDRINUSE, "or left its socket where this user may not remove it"),
        ("unix:/no/a.sock", ENOENT, "create the folder"),
        ("192.0.2.1:80", EADDRNOTAVAIL, "this machine has no such address"),
    ])
    func theAdviceFitsTheAddress(address: String, errno: Int32, advice: String) {
        let told = "\(ListenFault(address: address, call: "bind", errno: errno))"
        #expect(told.hasPrefix("cannot listen on \(address): bind: ") && told.contains(advice))
        #expect(told.contains("folder") == (address.hasPrefix("unix:") && errno != EADDRINUSE))
    }
}
