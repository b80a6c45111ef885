import Reactor
import Testing

@testable import DataPath

/// The PROXY header, byte by byte and as a listener takes it.
@Suite struct ProxyHeaderTests {
    private func read(_ bytes: [UInt8], _ versions: Set<Int> = [1, 2]) -> ProxyHeader.Reading {
        ProxyHeader.read(bytes.span, versions: versions)
    }

    private func read(_ text: String, _ versions: Set<Int> = [1, 2]) -> ProxyHeader.Reading {
        read(Array(text.utf8), versions)
    }

    static func binary(command: UInt8 = 0x21, family: UInt8 = 0x11, _ body: [UInt8]) -> [UInt8] {
        [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a, command, family]
            + [UInt8(body.count >> 8), UInt8(body.count & 0xff)] + body
    }

    private static let v4: [UInt8] = [192, 0, 2, 7, 10, 0, 0, 1, 0x30, 0x39, 0, 80]

    @Test func `a line gives the caller's address and nothing of what follows`() throws {
        let line = "PROXY TCP4 192.0.2.7 10.0.0.1 12345 80\r\n"
        let caller = try #require(SocketAddress(parsing: "192.0.2.7:12345"))
        #expect(read(line + "GET / ") == .complete(ProxyHeader(origin: .caller(caller), length: line.utf8.count)))
        let six = "PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n"
        let other = try #require(SocketAddress(parsing: "[2001:db8::1]:1"))
        #expect(read(six) == .complete(ProxyHeader(origin: .caller(other), length: six.utf8.count)))
        #expect(read("PROXY UNKNOWN\r\n") == .complete(ProxyHeader(origin: .unknown, length: 15)))
        #expect(read("PROXY UNKNOWN anything at all\r\n") == .complete(ProxyHeader(origin: .unknown, length: 31)))
    }

    @Test func `every beginning of a header is incomplete, and only that`() {
        for whole in [Array("PROXY TCP4 192.0.2.7 10.0.0.1 12345 80\r\n".utf8), Self.binary(Self.v4 + [4, 0, 1, 0])] {
            for count in 0..<whole.count { #expect(read(Array(whole.prefix(count))) == .incomplete, "\(count)") }
            guard case .complete(let header) = read(whole + [1, 2, 3]) else {
                Issue.record("not read")
                continue
            }
            #expect(header.length == whole.count)
        }
    }

    @Test(arguments: [
        "GET / HTTP/1.1\r\n", "PROXX", "PROXY TCP4 192.0.2.7 10.0.0.1 12345\r\n",
        "PROXY TCP4 192.0.2.7 10.0.0.1 12345 80\n",
        "PROXY  TCP4 192.0.2.7 10.0.0.1 12345 80\r\n", "PROXY TCP4 192.0.2.7 10.0.0.1 99999 80\r\n",
        "PROXY TCP4 2001:db8::1 10.0.0.1 1 80\r\n", "PROXY TCP6 192.0.2.7 10.0.0.1 1 80\r\n", "PROXY TCP4 a b 1 2\r\n",
        "PROXY UDP4 192.0.2.7 10.0.0.1 1 80\r\n", "PROXY TCP6 fe80::1%1 ::1 1 2\r\n", "PROXY TCP6 [::2] ::1 1 2\r\n",
        "\n",
        "PROXY TCP4 192.0.2.7 10.0.0.1 +1 80\r\n", "PROXY TCP4 192.0.2.7 10.0.0.1 1 80 \r\n",
    ])
    func `what is no header is refused`(text: String) { #expect(read(text) == .refused) }

    @Test func `a line has a length at most`() {
        #expect(read("PROXY UNKNOWN " + String(repeating: "x", count: 91) + "\r\n") != .refused)
        #expect(read("PROXY UNKNOWN " + String(repeating: "x", count: 92) + "\r\n") == .refused)
    }

    @Test func `a binary header gives the address, or says that there is none`() throws {
        let caller = try #require(SocketAddress(parsing: "192.0.2.7:12345"))
        #expect(read(Self.binary(Self.v4)) == .complete(ProxyHeader(origin: .caller(caller), length: 28)))
        #expect(read(Self.binary(command: 0x20, Self.v4)) == .complete(ProxyHeader(origin: .proxy, length: 28)))
        #expect(read(Self.binary(family: 0x00, [])) == .complete(ProxyHeader(origin: .unknown, length: 16)))
        let six = Array(repeating: UInt8(0), count: 15) + [9] + Array(repeating: UInt8(0), count: 16) + [0, 7, 0, 8]
        let other = try #require(SocketAddress(parsing: "[::9]:7"))
        #expect(read(Self.binary(family: 0x21, six)) == .complete(ProxyHeader(origin: .caller(other), length: 52)))
    }

    @Test func `a broken binary header is refused`() {
        #expect(read(Self.binary(command: 0x11, Self.v4)) == .refused)
        #expect(read(Self.binary(command: 0x22, Self.v4)) == .refused)
        #expect(read(Self.binary(family: 0x41, Self.v4)) == .refused)
        #expect(read(Self.binary(Array(Self.v4.dropLast()))) == .refused)
        #expect(read(Self.binary(family: 0x21, Self.v4)) == .refused)
        #expect(read(Self.binary(Self.v4 + Array(repeating: 0, count: 4096))) == .refused)
    }

    @Test func `a version that is not configured is refused`() {
        #expect(read("PROXY UNKNOWN\r\n", [2]) == .refused)
        #expect(read(Self.binary(Self.v4), [1]) == .refused)
    }
}
