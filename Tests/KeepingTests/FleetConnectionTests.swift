import Configuration
import Glibc
import ScriptedKernel
import ScriptedWorld
import Synchronization
import Testing

@testable import DataPath
@testable import Fleet
@testable import Keeping
@testable import Reactor

/// The way to the shared server on a loop whose kernel the test plays.
@Suite struct FleetConnectionTests {
    private final class Scene {
        let kernel = FakeKernel()
        let loop: Loop
        let connection: FleetConnection
        var told: [String] = []
        var received: [UInt8] = []
        /// Called with each piece that has come.
        var reads: () -> Void = {}

        init(
            _ address: SharedStore.Address = .unix(path: "/run/s"), password: (@Sendable () throws -> [UInt8])? = nil,
            blocking: any BlockingWork = ImmediateWork(), trust: TrustAnchors? = nil
        ) throws {
            loop = try Loop(name: "keeper", kernel: kernel)
            connection = try FleetConnection(
                to: address, trust: trust, readPassword: password, loop: loop,
                resolver: ScriptedNames([:]), blocking: blocking)
            connection.report = { [unowned self] event in
                switch event {
                case .prepared(let password):
                    told.append("prepared \(password.map { String(decoding: $0, as: UTF8.self) } ?? "-")")
                case .connected: told.append("connected")
                case .received(let bytes):
                    received += bytes
                    reads()
                case .lost(let fault): told.append("lost \(fault)")
                case .woken: told.append("woken")
                }
            }
        }

        func turn() { for _ in 0..<6 { loop.turnOnce() } }

        func connect() -> Peer? {
            connection.connect()
            turn()
            return kernel.connections.last
        }
    }

    @Test func thePasswordIsReadBesideTheLoop() throws {
        let scene = try Scene(password: { Array("pw".utf8) })
        scene.connection.prepare()
        #expect(scene.told.isEmpty)
        scene.turn()
        #expect(scene.told == ["prepared pw"])
        let other = try Scene()
        other.connection.prepare()
        #expect(other.told == ["prepared -"])
    }

    @Test func bytesGoBothWays() throws {
        let scene = try Scene()
        let peer = try #require(scene.connect())
        #expect(scene.told == ["connected"])
        scene.connection.send(Array("one".utf8))
        scene.connection.send(Array("two".utf8))
        peer.send("three")
        scene.turn()
        #expect(peer.takeText() == "onetwo")
        #expect(scene.received == Array("three".utf8))
        #expect(scene.kernel.misuse.isEmpty)
    }

    /// More than a connection of the data path lets wait, through a window that opens slowly.
    @Test func muchOutputWaitsItsTurn() throws {
        let scene = try Scene()
        let peer = try #require(scene.connect())
        peer.window = 1000
        let large = (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        scene.connection.send(large)
        var got: [UInt8] = []
        for _ in 0..<2000 where got.count < large.count {
            scene.turn()
            got += peer.take()
            peer.window = 64 << 10
        }
        #expect(got == large)
        #expect(scene.told == ["connected"])
    }

    @Test func anEndIsToldOnce() throws {
        let scene = try Scene()
        let peer = try #require(scene.connect())
        peer.send("last")
        peer.finish()
        scene.turn()
        #expect(scene.received == Array("last".utf8))
        #expect(scene.told == ["connected", "lost the server closed the connection"])
        scene.connection.send([1])
        scene.turn()
        #expect(scene.told.count == 2)
        #expect(peer.isClosed)
    }

    @Test(arguments: [false, true]) func aServerThatIsNotThereIsTold(atOnce: Bool) throws {
        let scene = try Scene()
        scene.kernel.connectPlan = { _ in atOnce ? .failedAtOnce(111) : .failed(111) }
        _ = scene.connect()
        #expect(scene.told == ["lost unix:/run/s: no connection, nothing listens there"])
    }

    @Test func whatIsClosedTellsNothingMore() throws {
        let scene = try Scene()
        let peer = try #require(scene.connect())
        scene.connection.close()
        peer.send("late")
        scene.turn()
        #expect(scene.told == ["connected"])
        #expect(scene.received.isEmpty)
        #expect(peer.isClosed)
        // The next one is another.
        let next = try #require(scene.connect())
        #expect(next !== peer)
        #expect(scene.told == ["connected", "connected"])
    }

    @Test func theAlarmRingsOnceAtItsTime() throws {
        let scene = try Scene()
        scene.connection.wake(at: scene.kernel.clock + 1_000_000_000)
        scene.kernel.advance(seconds: 0.5)
        scene.turn()
        #expect(scene.told.isEmpty)
        scene.kernel.advance(seconds: 0.6)
        scene.turn()
        #expect(scene.told == ["woken"])
        scene.connection.wake(at: scene.kernel.clock + 1_000_000_000)
        scene.connection.wake(at: nil)
        scene.kernel.advance(seconds: 2)
        scene.turn()
        #expect(scene.told == ["woken"])
    }

    // MARK: - Why there is no connection

    private struct NoPassword: Error {}

    @Test func aPasswordThatCannotBeReadIsToldAndReadAgain() throws {
        let isThere = Mutex(false)
        let scene = try Scene(password: {
            guard isThere.withLock({ $0 }) else { throw NoPassword() }
            return Array("pw".utf8)
        })
        scene.connection.prepare()
        scene.turn()
        #expect(scene.told == ["lost the password cannot be read: NoPassword()"])
        isThere.withLock { $0 = true }
        scene.connection.prepare()
        scene.turn()
        #expect(scene.told.last == "prepared pw")
    }

    @Test func aThreadThatTakesNoMoreIsTold() throws {
        let blocking = ScriptedWork()
        blocking.thread = .full
        let scene = try Scene(password: { Array("pw".utf8) }, blocking: blocking)
        scene.connection.prepare()
        #expect(scene.told == ["lost too much blocking work waits"])
    }

    /// Two connections are prepared one after the other: the password of the first is of no use to the second.
    @Test func whatAnEarlierPreparationBringsCountsNoMore() throws {
        let blocking = ScriptedWork()
        blocking.thread = .stuck
        let number = Mutex(0)
        let scene = try Scene(
            password: {
                number.withLock { $0 += 1 }
                return Array("pw\(number.withLock { $0 })".utf8)
            }, blocking: blocking)
        scene.connection.prepare()
        scene.connection.prepare()
        blocking.goOn()
        scene.turn()
        #expect(scene.told == ["prepared pw2"])
        scene.connection.prepare()
        scene.connection.close()
        scene.turn()
        #expect(scene.told.count == 1)
    }

    @Test func aPathThatIsNoSocketsIsAMistake() throws {
        let fault = #expect(throws: GatewayFault.self) {
            try Scene(.unix(path: "/run/" + String(repeating: "s", count: 200)))
        }
        #expect(fault.map { "\($0)" }?.hasSuffix("too long for a socket") == true)
    }

    private static let server = SharedStore.Address.server(Origin(scheme: .redis, host: "shared.example", port: 6379))

    @Test func aNameWithoutAnAddressIsTold() throws {
        let scene = try Scene(Self.server)
        _ = scene.connect()
        #expect(scene.told == ["lost shared.example: the name has no address now"])
    }

    @Test func aServerThatDoesNotAnswerIsTold() throws {
        let scene = try Scene()
        scene.kernel.connectPlan = { _ in .silent }
        _ = scene.connect()
        #expect(scene.told.isEmpty)
        for _ in 0..<60 where scene.told.isEmpty {
            scene.kernel.advance(seconds: 0.25)
            scene.turn()
        }
        #expect(scene.told.count == 1 && scene.told[0].hasPrefix("lost unix:/run/s: no connection in "))
    }

    /// Broken while much is on its way to it: told once, and not in the middle of a command.
    @Test func aServerThatBreaksOffIsTold() throws {
        let scene = try Scene()
        let peer = try #require(scene.connect())
        peer.window = 1000
        scene.connection.send(Array(repeating: 1, count: 1 << 20))
        scene.turn()
        peer.reset()
        scene.connection.send([1])
        #expect(scene.told == ["connected"])
        scene.turn()
        #expect(scene.told.count == 2 && scene.told[1].hasPrefix("lost the "))
    }

    /// Others have their turn in between, and nothing is lost.
    @Test func muchInputIsReadInPieces() throws {
        let scene = try Scene()
        let peer = try #require(scene.connect())
        let large = (0..<(3 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        peer.send(large)
        for _ in 0..<200 where scene.received.count < large.count { scene.turn() }
        #expect(scene.received == large && scene.told == ["connected"])
    }

    // MARK: - In the middle of something

    @Test func bytesThatAreSentBeforeTheConnectionStandsGoWithIt() throws {
        let scene = try Scene()
        scene.kernel.connectPlan = { _ in .silent }
        let peer = try #require(scene.connect())
        scene.connection.send(Array("early".utf8))
        scene.turn()
        #expect(peer.received.isEmpty && scene.told.isEmpty)
        peer.accept()
        scene.turn()
        #expect(peer.takeText() == "early" && scene.told == ["connected"])
    }

    /// The user is in the middle of a command when the server turns out to be gone: it is told once, and after that.
    @Test func aWriteThatFailsIsToldAfterwards() throws {
        let scene = try Scene()
        let peer = try #require(scene.connect())
        peer.failWrites([EPIPE, EPIPE])
        scene.connection.send([1])
        scene.connection.send([2])
        #expect(scene.told == ["connected"])
        scene.turn()
        #expect(scene.told == ["connected", "lost the server closed the connection"])
        let next = try #require(scene.connect())
        scene.connection.send([3])
        scene.turn()
        #expect(next.take() == [3], "nothing of the lost connection is left")
    }

    /// The server has sent more than is read, and whoever reads it has seen enough.
    @Test(arguments: [1, 16]) func aUserThatClosesWhileItReadsHearsNothingMore(_ pieces: Int) throws {
        let scene = try Scene()
        let peer = try #require(scene.connect())
        var count = 0
        scene.reads = {
            count += 1
            if count == pieces { scene.connection.close() }
        }
        peer.send(Array(repeating: 7, count: 4 << 20))
        scene.turn()
        #expect(count == pieces && scene.told == ["connected"] && peer.isClosed)
    }

    @Test func aServerThatSpeaksNoTLSIsTold() throws {
        let scene = try Scene(Self.loopback, trust: TrustAnchors([.system], systemFile: nil))
        scene.connection.prepare()
        scene.turn()
        #expect(scene.told == ["prepared -"])
        let peer = try #require(scene.connect())
        #expect(scene.told.count == 1 && !peer.received.isEmpty, "a handshake has begun")
        peer.send("-ERR this is no TLS\r\n")
        scene.turn()
        #expect(scene.told.count == 2 && scene.told[1].hasPrefix("lost TLS: "), "\(scene.told)")
        #expect(scene.received.isEmpty && peer.isClosed)
    }

    private static let loopback = SharedStore.Address.server(Origin(scheme: .rediss, host: "127.0.0.1", port: 6379))
}
