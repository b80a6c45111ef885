import COpenSSL
import Glibc
import Testing

@testable import TLS

/// A peer whose records bring no data and have no end: OpenSSL reads on within one call, and nobody else has a turn.
@Suite struct FloodTests {
    /// A wire in memory. Where it is empty, `refill` has the peer say more.
    private final class Duct: TLSWire {
        private var incoming: [UInt8] = []
        weak var peer: Duct?
        var refill: (() -> Void)?
        /// Octets that were read.
        private(set) var given = 0
        /// Octets after which it is clear that nobody stops the flood.
        private static let enough = 4 << 20

        func receive(into buffer: UnsafeMutableRawBufferPointer) -> Int {
            if incoming.isEmpty, given < Self.enough { refill?() }
            guard !incoming.isEmpty else { return Int(-EAGAIN) }
            let count = min(buffer.count, incoming.count)
            buffer.copyBytes(from: incoming[..<count])
            incoming.removeFirst(count)
            given += count
            return count
        }

        func transmit(_ bytes: UnsafeRawBufferPointer) -> Int {
            peer?.incoming += bytes
            return bytes.count
        }
    }

    private struct Play {
        let clientDuct = Duct()
        let serverDuct = Duct()
        let client: TLSConnection
        let server: TLSConnection

        init() throws {
            let files = try Certificates.shared.get()
            (clientDuct.peer, serverDuct.peer) = (serverDuct, clientDuct)
            client = try TLSConnection(
                client: TLSClientConfiguration(authorities: [.file(files.path("ca.pem"))]), serverName: "good.test",
                wire: clientDuct)
            server = try TLSConnection(
                server: TLSServerConfiguration(certificate: files.bytes("good.pem"), key: files.bytes("good.key")),
                wire: serverDuct)
            #expect(shake(client, server).server == .done)
        }
    }

    private func updateKeys(_ connection: TLSConnection) {
        _ = SSL_key_update(connection.handle, SSL_KEY_UPDATE_NOT_REQUESTED)
        _ = SSL_do_handshake(connection.handle)
    }

    private func giveTicket(_ connection: TLSConnection) {
        _ = SSL_new_session_ticket(connection.handle)
        _ = SSL_do_handshake(connection.handle)
    }

    private func isProtocolError(_ result: TLSIO) -> Bool {
        guard case .failed(let fault) = result else { return false }
        return fault.kind == .protocolError && fault.message.contains("without data")
    }

    @Test func aServerThatOnlyChangesKeysIsLeft() throws {
        let play = try Play()
        let (duct, server) = (play.clientDuct, play.server)
        duct.refill = { updateKeys(server) }
        #expect(isProtocolError(play.client.receive().0))
        #expect((64 << 10...256 << 10).contains(duct.given))
        #expect(isProtocolError(play.client.receive().0))
    }

    @Test func aClientThatOnlyChangesKeysIsLeft() throws {
        let play = try Play()
        let (duct, client) = (play.serverDuct, play.client)
        duct.refill = { updateKeys(client) }
        #expect(isProtocolError(play.server.receive().0) && duct.given <= 256 << 10)
    }

    @Test func aServerThatOnlyGivesTicketsIsLeft() throws {
        let play = try Play()
        let (duct, server) = (play.clientDuct, play.server)
        duct.refill = { giveTicket(server) }
        #expect(isProtocolError(play.client.receive().0) && duct.given <= 64 << 10)
    }

    /// The bound is for one read: whoever sends data as well may change keys for ever.
    @Test func keysMayChangeAsOftenAsThereIsData() throws {
        let play = try Play()
        for _ in 0..<3 {
            for _ in 0..<2000 { updateKeys(play.server) }
            #expect(play.server.send("data") == .bytes(4))
            #expect(play.client.receive().1 == "data")
        }
        for _ in 0..<30 { giveTicket(play.server) }
        #expect(play.server.send("more") == .bytes(4) && play.client.receive().1 == "more")
    }
}
