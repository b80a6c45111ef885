import Reactor
import Testing

@testable import Gateway

@Suite struct DestinationTests {
    @Test(arguments: [
        ("a.test:443", "a.test", 443), ("A.Test:80", "a.test", 80), ("[2001:db8::1]:8443", "2001:db8::1", 8443),
        ("192.0.2.1:1", "192.0.2.1", 1),
    ])
    func anAuthorityNamesAPlace(text: String, host: String, port: Int) throws {
        let destination = try #require(Destination(authority: text.utf8, defaultPort: nil))
        #expect(destination.host == host)
        #expect(Int(destination.port) == port)
    }

    @Test(arguments: [
        "a.test", "a.test:", "a.test:0", "a.test:65536", ":443", "a b:443", "2001:db8::1:443", "[2001:db8::1]",
        "[a.test]:1",
        "user@a.test:443", "a/b:443", "[::1:443", "",
    ])
    func whatIsNoneIsRefused(text: String) {
        #expect(Destination(authority: text.utf8, defaultPort: nil) == nil)
    }

    @Test(arguments: [
        ("192.0.2.7", true), ("2001:db8::9", true), ("127.0.0.1", false), ("::1", false), ("::ffff:127.0.0.1", false),
        ("169.254.169.254", false), ("fe80::1", false), ("0.0.0.0", false), ("::", false), ("224.0.0.1", false),
        ("255.255.255.255", false), ("ff02::1", false), ("100.100.100.200", false), ("fd00:ec2::254", false),
        ("10.1.2.3", false),
    ])
    func ownAndSpecialAddressesAreClosed(text: String, isOpen: Bool) throws {
        let own = LocalAddresses([try #require(SocketAddress(host: "10.1.2.3", port: 9))])
        let address = try #require(SocketAddress(host: text, port: 80))
        #expect(address.isOpenDestination(own) == isOpen)
    }
}
