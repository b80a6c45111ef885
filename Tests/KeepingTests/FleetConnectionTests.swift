import Configuration
import ScriptedKernel
import ScriptedWorld
import Synchronization
import Testing

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

        init(password: (@Sendable () throws -> [UInt8])? = nil) throws {
            loop = try Loop(name: "keeper", kernel: kernel)
            connection = try FleetConnection(
                to: .unix(path: "/run/s"), trust: nil, readPassword: password, loop: loop,
                resolver: ScriptedNames([:]), blocking: ImmediateWork())
            connection.report = { [unowned self] event in
                switch event {
                case .prepared(let password):
                    told.append("prepared \(password.map { String(decoding: $0, as: UTF8.self) } ?? "-")")
                case .connected: told.append("connected")
                case .received(let bytes): received += bytes
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
}
