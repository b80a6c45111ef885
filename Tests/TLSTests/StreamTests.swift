import Glibc
import Testing

@testable import TLS

@Suite struct StreamTests {
    let files: Certificates

    init() throws {
        signal(SIGPIPE, SIG_IGN)
        files = try Certificates.shared.get()
    }

    private func configurations(
        _ maximum: TLSVersion = .v1_3
    ) throws -> (client: TLSClientConfiguration, server: TLSServerConfiguration) {
        (
            try TLSClientConfiguration(authorities: [.file(files.path("ca.pem"))]),
            try TLSServerConfiguration(
                certificate: files.bytes("good.pem"), key: files.bytes("good.key"), maximumVersion: maximum)
        )
    }

    @Test(arguments: [TLSVersion.v1_2, .v1_3])
    func `carries bytes both ways and ends with close_notify`(version: TLSVersion) throws {
        var wires = Wires()
        let both = try configurations(version)
        let client = try TLSConnection(client: both.client, serverName: "good.test", descriptor: wires.one)
        let server = try TLSConnection(server: both.server, descriptor: wires.two)
        #expect(shake(client, server).client == .done)
        #expect(client.version == version)
        #expect(client.receive().0 == .wantsRead)
        #expect(!client.hasBufferedInput)
        #expect(client.send("hello") == .bytes(5))
        #expect(server.receive(2).1 == "he")
        #expect(server.hasBufferedInput)
        #expect(server.receive().1 == "llo")
        #expect(server.send("") == .bytes(0))
        #expect(server.send("one") == .bytes(3) && server.send("two") == .bytes(3))
        // Both records came in one read of the socket: the second is there although the socket has nothing left.
        #expect(client.receive().1 == "one" && client.hasBufferedInput && client.receive().1 == "two")
        server.shutdown()
        wires.closeTwo()
        #expect(client.receive().0 == .closed && client.receive().0 == .closed)
        client.shutdown()
    }

    @Test(arguments: [TLSVersion.v1_2, .v1_3])
    func `an end without close_notify is truncation`(version: TLSVersion) throws {
        var wires = Wires()
        let both = try configurations(version)
        let client = try TLSConnection(client: both.client, serverName: "good.test", descriptor: wires.one)
        let server = try TLSConnection(server: both.server, descriptor: wires.two)
        #expect(shake(client, server).client == .done)
        #expect(server.send("half") == .bytes(4))
        wires.closeTwo()
        #expect(client.receive().1 == "half")
        #expect(client.receive().0 == .truncated)
        guard case .failed(let fault) = client.receive().0 else { Issue.record("usable after truncation"); return }
        #expect(fault.kind == .closed)
        client.shutdown()
    }

    @Test func `the end during the handshake is told apart`() throws {
        var wires = Wires()
        let client = try TLSConnection(client: configurations().client, serverName: "good.test", descriptor: wires.one)
        #expect(client.handshake() == .wantsRead)
        wires.closeTwo()
        guard case .failed(let fault) = client.handshake() else { Issue.record("no fault"); return }
        // A unix socket with unread data resets; TCP may do either.
        #expect(fault.kind == .closed || fault.kind == .system(ECONNRESET))
        client.shutdown()
    }

    @Test func `what is not TLS is a protocol error`() throws {
        let wires = Wires()
        let client = try TLSConnection(client: configurations().client, serverName: "good.test", descriptor: wires.one)
        #expect(client.handshake() == .wantsRead)
        write(wires.two, "HTTP/1.1 400 Bad Request\r\n\r\n", 28)
        guard case .failed(let fault) = client.handshake() else { Issue.record("no fault"); return }
        #expect(fault.kind == .protocolError && fault.message.contains("good.test"))
    }

    @Test func `a full socket takes part of the bytes, and the rest from another place in memory`() throws {
        let wires = Wires()
        let both = try configurations()
        let client = try TLSConnection(client: both.client, serverName: "good.test", descriptor: wires.one)
        let server = try TLSConnection(server: both.server, descriptor: wires.two)
        #expect(shake(client, server).client == .done)
        let sent = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 ^ $0 >> 8) }
        var received: [UInt8] = []
        var offset = 0
        var blocked = false
        var buffer = [UInt8](repeating: 0, count: 30_000)
        while received.count < sent.count {
            if offset < sent.count {
                let copy = Array(sent[offset...])
                switch copy.withUnsafeBytes({ client.write($0) }) {
                case .bytes(let count):
                    offset += count
                    continue
                case .wantsWrite: blocked = true
                case let result: Issue.record("\(result)"); return
                }
            }
            reading: while true {
                switch buffer.withUnsafeMutableBytes({ server.read(into: $0) }) {
                case .bytes(let count): received += buffer.prefix(count)
                case .wantsRead: break reading
                case let result: Issue.record("\(result)"); return
                }
            }
        }
        #expect(blocked && received == sent)
    }

    @Test(arguments: [TLSVersion.v1_2, .v1_3])
    func `a session is resumed, in TLS 1-3 each ticket once`(version: TLSVersion) throws {
        let both = try configurations(version)
        let keys = try #require(both.server.tickets)
        keys.advance(now: 0)
        func visit(_ name: String) throws -> Bool {
            let wires = Wires()
            let client = try TLSConnection(client: both.client, serverName: name, descriptor: wires.one)
            let server = try TLSConnection(server: both.server, descriptor: wires.two)
            #expect(shake(client, server).client == .done)
            _ = client.receive()
            return client.resumed
        }
        #expect(try !visit("good.test"))
        let tickets = try both.client.sessionCount(for: "good.test")
        #expect(tickets == (version == .v1_3 ? 2 : 1))
        #expect(try visit("good.test"))
        // A ticket that an older key has sealed brings a new one, which counts as well. That of TLS 1.2 serves again and again.
        if version == .v1_3 { #expect(keys.advance(now: TicketKeys.period)) }
        #expect(try visit("good.test") && visit("GOOD.test."))
        #expect(try both.client.sessionCount(for: "good.test") <= 4)
        // A session of one name proves nothing about another.
        #expect(try !visit("127.0.0.1"))
    }

    @Test func `an error of one connection is not read as that of the next`() throws {
        let both = try configurations()
        let bad = Wires()
        let broken = try TLSConnection(client: both.client, serverName: "good.test", descriptor: bad.one)
        _ = broken.handshake()
        write(bad.two, "not TLS at all", 14)
        _ = broken.handshake()
        let wires = Wires()
        let client = try TLSConnection(client: both.client, serverName: "good.test", descriptor: wires.one)
        let server = try TLSConnection(server: both.server, descriptor: wires.two)
        #expect(shake(client, server).client == .done)
        #expect(client.receive().0 == .wantsRead)
    }
}
