import CLinux
import Glibc
import Telemetry
import Testing

@testable import Reactor

@Suite struct SocketAddressTests {
    @Test(arguments: [
        ("192.0.2.1:80", "192.0.2.1:80"), ("[2001:DB8:0::1]:443", "[2001:db8::1]:443"), ("[::1]:0", "[::1]:0"),
        ("unix:/run/a.sock", "unix:/run/a.sock"), ("[fe80::1%1]:80", "[fe80::1%1]:80"),
        ("0.0.0.0:65535", "0.0.0.0:65535"),
    ])
    func parsesAndWrites(text: String, written: String) throws {
        let address = try #require(SocketAddress(parsing: text))
        #expect(address.description == written)
        #expect(SocketAddress(parsing: written) == address)
        #expect(address.hashValue == SocketAddress(parsing: written)?.hashValue)
    }

    @Test(arguments: [
        "", ":", ":80", "example.com:80", "192.0.2.1", "192.0.2.1:", "192.0.2.1:65536", "192.0.2.1:+80", "192.0.2.1:-1",
        "192.0.2:80", "192.0.2.01:80", "0x7f.1:80", "::1:80", "[::1:80", "::1]:80", "[::1]80", "[]:80", "[::1%]:80",
        "[::1%no-such-interface]:80", "unix:", "127.0.0.1\u{0}:80", "[127.0.0.1]:80", "192.0.2.1:٨٠",
    ])
    func refuses(text: String) {
        #expect(SocketAddress(parsing: text) == nil)
    }

    @Test func unixPathsAreBounded() throws {
        let longest = "/" + String(repeating: "a", count: 106)
        #expect(SocketAddress(unixPath: longest)?.unixPath == longest)
        #expect(SocketAddress(unixPath: longest + "a") == nil)
        #expect(SocketAddress(unixPath: "a\u{0}b") == nil)
        let address = try #require(SocketAddress(unixPath: "/a"))
        #expect(address.port == nil && address.family == .unix && address != SocketAddress(unixPath: "/ab"))
        let length = address.withStorage { storage, length in
            (storage.pointee.ss_family == sa_family_t(AF_UNIX), length)
        }
        #expect(length.0 && length.1 == 5)
    }

    @Test(arguments: [
        ("127.0.0.1", true, false, false, false), ("127.255.1.2", true, false, false, false),
        ("::1", true, false, false, false), ("::ffff:127.0.0.1", true, false, false, false),
        ("128.0.0.1", false, false, false, false), ("::2", false, false, false, false),
        ("169.254.1.1", false, true, false, false), ("169.254.169.254", false, true, true, false),
        ("::ffff:169.254.169.254", false, true, true, false), ("fe80::1", false, true, false, false),
        ("febf::1", false, true, false, false), ("fec0::1", false, false, false, false),
        ("fd00:ec2::254", false, false, true, false), ("0.0.0.0", false, false, false, true),
        ("::", false, false, false, true), ("::ffff:0.0.0.0", false, false, false, true),
    ])
    func tellsKinds(literal: String, loopback: Bool, linkLocal: Bool, metadata: Bool, unspecified: Bool) throws {
        let address = try #require(SocketAddress(host: literal, port: 1))
        #expect(address.isLoopback == loopback && address.isLinkLocal == linkLocal)
        #expect(address.isCloudMetadata == metadata && address.isUnspecified == unspecified)
    }

    @Test func localMeansThisNamespace() throws {
        let here = LocalAddresses([try #require(SocketAddress(host: "10.1.2.3", port: 0))])
        #expect(try #require(SocketAddress(host: "10.1.2.3", port: 99)).isLocal(in: here))
        #expect(try #require(SocketAddress(host: "::ffff:10.1.2.3", port: 99)).isLocal(in: here))
        #expect(try !#require(SocketAddress(host: "10.1.2.4", port: 99)).isLocal(in: here))
        #expect(try #require(SocketAddress(host: "127.9.9.9", port: 99)).isLocal(in: LocalAddresses([])))
        #expect(try #require(SocketAddress(unixPath: "/a")).isLocal(in: LocalAddresses([])))
        #expect(try #require(SocketAddress(host: "127.0.0.1", port: 1)).isLocal(in: .snapshot()))
    }

    @Test func shortKernelAnswersAreRefused() throws {
        let address = try #require(SocketAddress(host: "::1", port: 80))
        address.withStorage { storage, length in
            #expect(SocketAddress(storage: storage.pointee, length: length) == address)
            #expect(SocketAddress(storage: storage.pointee, length: length - 1) == nil)
            #expect(SocketAddress(storage: storage.pointee, length: 0) == nil)
        }
        #expect(SocketAddress(storage: sockaddr_storage(), length: 128) == nil)
    }

    @Test func portsChangeInPlace() throws {
        var address = try #require(SocketAddress(host: "::1", port: 80))
        address.port = 0xabcd
        #expect(address.description == "[::1]:43981" && address.port == 0xabcd)
    }

    @Test func logAddressesKeepTheBytes() throws {
        #expect(
            try #require(SocketAddress(host: "192.0.2.1", port: 8)).logAddress
                == LogAddress(family: .ipv4, low: 0xc000_0201, port: 8))
        #expect(
            try #require(SocketAddress(host: "2001:db8::1", port: 8)).logAddress
                == LogAddress(family: .ipv6, high: 0x2001_0db8_0000_0000, low: 1, port: 8))
    }
}
