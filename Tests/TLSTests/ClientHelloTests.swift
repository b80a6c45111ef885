import Glibc
import TLS
import Testing

/// The reader of hellos, on what OpenSSL sends and on what nobody should.
@Suite struct ClientHelloTests {
    /// The first message of a real client.
    private static func hello(_ name: String, alpn: [String] = ["h2", "http/1.1"]) throws -> [UInt8] {
        let wires = Wires()
        let client = try TLSConnection(
            client: TLSClientConfiguration(alpn: alpn), serverName: name, descriptor: wires.one)
        #expect(client.handshake() == .wantsRead)
        var bytes = [UInt8](repeating: 0, count: 16384)
        let count = Glibc.read(wires.two, &bytes, bytes.count)
        return Array(bytes.prefix(max(0, count)))
    }

    private func read(_ bytes: [UInt8]) -> ClientHello.Reading { ClientHello.read(bytes.span) }

    private static func expected(_ name: String?, _ protocols: [String] = ["h2", "http/1.1"]) -> ClientHello.Reading {
        var hello = ClientHello()
        hello.serverName = name
        hello.protocols = protocols
        return .complete(hello)
    }

    @Test func `reads name and protocols of a real hello`() throws {
        #expect(try read(Self.hello("Api.Example.test")) == Self.expected("api.example.test"))
        #expect(try read(Self.hello("192.0.2.1", alpn: [])) == Self.expected(nil, []))
    }

    @Test func `every beginning is incomplete, and bytes behind it do not matter`() throws {
        let hello = try Self.hello("api.example.test")
        for count in 0..<hello.count { #expect(read(Array(hello.prefix(count))) == .incomplete, "\(count)") }
        #expect(read(hello + [22, 3, 3, 0, 1, 0]) == Self.expected("api.example.test"))
    }

    @Test(arguments: [1, 3, 100])
    func `a message may be cut into records`(piece: Int) throws {
        let message = Array(try Self.hello("api.example.test").dropFirst(5))
        var records: [UInt8] = []
        for start in stride(from: 0, to: message.count, by: piece) {
            let part = message[start..<min(start + piece, message.count)]
            records += [22, 3, 1, UInt8(part.count >> 8), UInt8(part.count & 0xff)] + part
        }
        #expect(read(records) == Self.expected("api.example.test"))
    }

    @Test func `what is no TLS is told apart`() {
        for bytes in [Array("GET / HTTP/1.1\r\n\r\n".utf8), [0x80, 0x2e, 1], [22, 2], [0]] {
            #expect(read(bytes) == .notTLS)
        }
        #expect(read([22, 3, 1, 0, 0]) == .unreadable)
        #expect(read([22, 3, 1, 0xff, 0xff]) == .unreadable)
        #expect(read([22, 3, 1, 0, 4, 2, 0, 0, 0]) == .unreadable)
        #expect(read([22, 3, 1, 0, 4, 1, 0xff, 0, 0]) == .unreadable)
    }

    /// Cut and changed hellos never trap, and a hello that says nothing of a name gives none.
    @Test func `damage is refused or harmless`() throws {
        let hello = try Self.hello("api.example.test")
        for index in 5..<hello.count {
            for change: UInt8 in [0, 1, 0x7f, 0xff] {
                var bytes = hello
                bytes[index] = change
                _ = read(bytes)
            }
        }
    }
}
