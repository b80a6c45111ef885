import Reactor
import Testing

@testable import DataPath

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

    /// Translators and tunnels lead from an IPv6 address to the IPv4 address inside.
    @Test(arguments: [
        ("64:ff9b::c000:207", true), ("64:ff9b::7f00:1", false), ("64:ff9b::a9fe:a9fe", false),
        ("64:ff9b::a01:203", false), ("64:ff9b::", false), ("64:ff9b::e000:1", false), ("64:ff9b::6464:64c8", false),
        ("2002:c000:207::1", true), ("2002:7f00:1::1", false), ("2002:a9fe:a9fe::", false), ("2002:a01:203::", false),
        ("::c000:207", true), ("::7f00:1", false), ("::a9fe:a9fe", false), ("::2", false),
        ("64:ff9b:1::c000:207", false), ("64:ff9b:1:fffe::c000:207", false), ("64:ff9b:2::1", true),
        ("0.1.2.3", false), ("0.0.0.1", false), ("::ffff:192.0.2.7", true), ("::ffff:169.254.169.254", false),
        ("::ffff:0.1.2.3", false), ("::ffff:10.1.2.3", false),
        // Translated (RFC 2765).
        ("::ffff:0:192.0.2.7", true), ("::ffff:0:127.0.0.1", false), ("::ffff:0:169.254.169.254", false),
        ("::ffff:0:10.1.2.3", false), ("::ffff:0:0.1.2.3", false), ("::ffff:0:224.0.0.1", false),
        // ISATAP, with and without the bits u and g, behind prefixes of all kinds.
        ("2001:db8::5efe:192.0.2.7", true), ("2001:db8::5efe:127.0.0.1", false),
        ("2001:db8::200:5efe:127.0.0.1", false),
        ("2001:db8::200:5efe:192.0.2.7", true), ("2001:db8::300:5efe:169.254.169.254", false),
        ("fd00::5efe:10.1.2.3", false), ("fe80::5efe:192.0.2.7", false), ("2001:db8::100:5efe:0.0.0.0", false),
        ("2001:db8::400:5efe:127.0.0.1", true), ("2001:db8::5efe:ffff:7f00:1", true),
        // Teredo: server 192.0.2.7 or our own, client 192.0.2.8, 127.0.0.1, 169.254.169.254 or our own.
        ("2001:0:c000:207:8000:63bf:3fff:fdf7", true), ("2001:0:c000:207:8000:63bf:80ff:fffe", false),
        ("2001:0:c000:207:8000:63bf:5601:5601", false), ("2001:0:c000:207:8000:63bf:f5fe:fdfc", false),
        ("2001:0:7f00:1:8000:63bf:3fff:fdf7", false), ("2001:0:a01:203:8000:63bf:3fff:fdf7", false),
        ("2001:0:c000:207:8000:63bf:7f00:1", true), ("2001:1::1", true),
        // Two forms in one address: each counts.
        ("2002:7f00:1::5efe:192.0.2.7", false), ("2002:c000:207::5efe:127.0.0.1", false),
        ("2002:c000:207::5efe:192.0.2.7", true), ("64:ff9b:1::5efe:192.0.2.7", false),
    ])
    func whatStandsInsideCounts(text: String, isOpen: Bool) throws {
        let own = LocalAddresses([try #require(SocketAddress(host: "10.1.2.3", port: 9))])
        #expect(try #require(SocketAddress(host: text, port: 80)).isOpenDestination(own) == isOpen)
    }

    /// The places that RFC 6052 section 2.4 gives for 192.0.2.33, and the same with 127.0.0.1.
    @Test(arguments: [
        ("2001:db8::", 32, "2001:db8:c000:221::", "2001:db8:7f00:1::"),
        ("2001:db8:100::", 40, "2001:db8:1c0:2:21::", "2001:db8:17f:0:1::"),
        ("2001:db8:122::", 48, "2001:db8:122:c000:2:2100::", "2001:db8:122:7f00:0:100::"),
        ("2001:db8:122:300::", 56, "2001:db8:122:3c0:0:221::", "2001:db8:122:37f:0:1::"),
        ("2001:db8:122:344::", 64, "2001:db8:122:344:c0:2:2100::", "2001:db8:122:344:7f:0:100::"),
        ("2001:db8:122:344::", 96, "2001:db8:122:344::192.0.2.33", "2001:db8:122:344::127.0.0.1"),
        ("64:ff9b:1:fffe::", 96, "64:ff9b:1:fffe::192.0.2.33", "64:ff9b:1:fffe::127.0.0.1"),
        ("2001:db8::", 32, "2001:db8:c000:221::5efe:192.0.2.33", "2001:db8:c000:221::5efe:127.0.0.1"),
    ])
    func configuredTranslatorsAreLookedInto(prefix: String, bits: Int, open: String, closed: String) throws {
        let network = try #require(SocketAddress(host: prefix, port: 1)).ipBytes
        let translators = [AddressRange(network: network, prefixLength: bits)]
        let own = LocalAddresses([])
        #expect(try #require(SocketAddress(host: open, port: 80)).isOpenDestination(own, translators: translators))
        #expect(try !#require(SocketAddress(host: closed, port: 80)).isOpenDestination(own, translators: translators))
    }
}
