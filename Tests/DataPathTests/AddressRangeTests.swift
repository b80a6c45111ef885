import Reactor
import Testing

@testable import DataPath

@Suite struct AddressRangeTests {
    @Test(arguments: [
        ("10.0.0.0", 8, "10.255.0.1", true), ("10.0.0.0", 8, "11.0.0.1", false), ("0.0.0.0", 0, "9.9.9.9", true),
        ("0.0.0.0", 0, "::1", false), ("fd00::", 8, "fdff::1", true), ("fd00::", 8, "fe00::1", false),
        ("2001:db8:0:1::", 64, "2001:db8:0:1:ffff::", true), ("2001:db8::1", 128, "2001:db8::2", false),
        ("10.0.0.0", 8, "::ffff:10.1.2.3", true), ("127.0.0.1", 32, "127.0.0.1", true), ("::", 0, "fe80::1", true),
        ("10.0.0.0", 9, "10.128.0.0", false),
    ])
    func `a range holds what begins as it does`(network: String, bits: Int, address: String, isHeld: Bool) throws {
        let network = try #require(SocketAddress(host: network, port: 0))
        let address = try #require(SocketAddress(host: address, port: 1))
        #expect(AddressRange(network: network.ipBytes, prefixLength: bits).contains(address) == isHeld)
    }
}
