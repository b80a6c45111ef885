import Testing

@testable import DataPath

/// The actions of an upstream's pool, event by event.
@Suite struct UpstreamPoolTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var bounds: PoolBounds
        var addresses: [UInt8] = [1]
        var events: [PoolScene.Event]
        /// Everything that is done for the events, in order.
        var done: [String]

        init(
            _ name: String, _ bounds: PoolBounds, at addresses: [UInt8] = [1], _ events: [PoolScene.Event],
            _ done: [String]
        ) {
            (testDescription, self.bounds, self.addresses, self.events, self.done) = (
                name, bounds, addresses, events, done
            )
        }
    }

    private static func made(_ numbers: Int..., http2: Bool = false) -> [PoolScene.Event] {
        numbers.map { _ in .want } + [.turn] + numbers.flatMap { [.connects($0), http2 ? .http2($0) : .http1($0)] }
    }

    static let connections = [
        Case(
            "the last one used is the first one taken", .http1(), made(0, 1) + [.done(1), .done(0), .want, .want],
            ["dial 0 1", "dial 1 1", "use 0", "use 1"]),
        Case(
            "a new one where a new one is wanted", .http1(), made(0) + [.done(0), .wantNew, .turn],
            ["dial 0 1", "dial 1 1"]),
        Case("a stale one is not taken", .http1(), made(0) + [.done(0), .wantOnce, .turn], ["dial 0 1", "dial 1 1"]),
        Case(
            "of the idle ones at another address none is taken", .http1(), at: [1, 2],
            made(0) + [.done(0), .want, .turn],
            ["dial 0 12", "dial 1 21"]),
        Case(
            "the oldest goes", .http1(idle: 1), made(0, 1) + [.done(0), .done(1)], ["dial 0 1", "dial 1 1", "0 closed"]),
        Case(
            "nothing is kept of a retired upstream", .http1(), made(0) + [.retire, .done(0)], ["dial 0 1", "0 closed"]),
        Case("nothing is dialled for one that has left", .http1(), [.want, .lost(0), .turn], ["0 closed"]),
        Case(
            "a caller's own connection is nobody else's",
            .http1(), [.bind(7), .turn, .connects(0), .http1(0), .done(0), .wantOf(8), .wantOf(7), .closeIdle],
            ["dial 0 1", "use 0"]),
    ]

    static let bounded = [
        Case(
            "beyond the limit one waits and the next is refused", .http1(1, waiters: 1),
            made(0) + [.want, .want, .turn],
            ["dial 0 1", "refuse 2 busy", "2 closed"]),
        Case(
            "the connection that is free goes to the one that waits", .http1(1, waiters: 1),
            made(0) + [.want, .done(0), .turn], ["dial 0 1", "1 with 0", "0 closed"]),
        Case(
            "one that ends makes room", .http1(1, waiters: 1), made(0) + [.want, .lost(0), .turn, .turn],
            ["dial 0 1", "0 closed", "dial 1 1"]),
        Case(
            "one that waits for a new one gets a new one", .http1(1, waiters: 1),
            made(0) + [.wantNew, .done(0), .turn, .turn], ["dial 0 1", "0 closed", "dial 1 1"]),
        Case(
            "an idle one gives way", .http1(1), made(0) + [.done(0), .wantNew, .turn],
            ["dial 0 1", "0 closed", "dial 1 1"]),
        Case(
            "a handshake between two messages gives way only to one that cannot wait", .http1(1, waiters: 1),
            [.bind(7), .turn, .connects(0), .http1(0), .asked(0), .want, .want, .turn],
            ["dial 0 1", "0 closed", "dial 2 1"]),
        Case(
            "and to one that waits when it rests", .http1(1, waiters: 1),
            [.bind(7), .turn, .connects(0), .http1(0), .asked(0), .want, .turn, .rests(0), .turn, .turn],
            ["dial 0 1", "0 closed", "dial 1 1"]),
    ]

    static let sharing = [
        Case(
            "one asks and the others wait for its word", .either(), [.want, .want, .turn, .connects(0), .http2(0)],
            ["dial 0 1", "0 on s0", "1 on s0"]),
        Case(
            "without HTTP/2 each gets its own", .either(), [.want, .want, .turn, .connects(0), .http1(0), .turn],
            ["dial 0 1", "dial 1 1"]),
        Case(
            "the next one asks where the first is lost", .either(), [.want, .want, .turn, .fails(0), .turn],
            ["dial 0 1", "0 closed", "dial 1 1"]),
        Case(
            "the shared connection with the fewest requests", .either(),
            made(0, http2: true) + [.full(0), .want, .turn, .connects(1), .http2(1), .room(0), .want],
            ["dial 0 1", "0 on s0", "dial 1 1", "1 on s1", "2 on s0"]),
        Case(
            "a second one to the same address takes the place of the first", .either(),
            made(0, http2: true) + [.stalls(0), .want, .turn, .connects(1), .http2(1), .done(0)],
            ["dial 0 1", "0 on s0", "dial 1 1", "1 on s1", "0 closed", "s0 ends"]),
        Case(
            "what is there carries one that finds no way", .either(), at: [1, 2],
            made(0, http2: true) + [.want, .turn, .fails(1)], ["dial 0 12", "0 on s0", "dial 1 21", "1 on s0"]),
        Case(
            "a shared connection whose address has just been given up carries nothing more", .either(), at: [1, 2],
            made(0, http2: true) + [.want, .turn, .connects(1), .http2(1), .full(0), .full(1)]
                + [.want, .turn, .room(0), .fails(2)],
            ["dial 0 12", "0 on s0", "dial 1 21", "1 on s1", "dial 2 12", "2 closed"]),
        Case(
            "shared connections count against the limit", .either(1, waiters: 1),
            made(0, http2: true) + [.full(0), .want, .turn, .room(0), .turn], ["dial 0 1", "0 on s0", "1 on s0"]),
        // The first of these waits in line and is the one that asks: when it goes out on the shared connection after all, the other must
        // not wait for its word.
        Case(
            "one that asks and then need not tells the others", .either(1, waiters: 1),
            made(0, http2: true) + [.full(0), .want, .want, .room(0), .turn],
            ["dial 0 1", "0 on s0", "1 on s0", "2 on s0"]),
        Case(
            "a shared connection without requests gives way to a request that needs HTTP/1.1", .either(1, waiters: 1),
            made(0, http2: true) + [.done(0), .bind(7), .turn, .turn],
            ["dial 0 1", "0 on s0", "0 closed", "s0 ends", "dial 1 1"]),
        Case(
            "and one that was busy, as soon as it is not", .either(1, waiters: 1),
            made(0, http2: true) + [.bind(7), .turn, .done(0), .turn, .turn, .turn],
            ["dial 0 1", "0 on s0", "0 closed", "s0 ends", "dial 1 1"]),
        Case(
            "an upgrade waits for SETTINGS", .either(),
            made(0, http2: true) + [.wantUpgrade, .offers(0), .wantUpgrade],
            ["dial 0 1", "0 on s0", "1 on s0", "2 on s0"]),
        Case(
            "and goes over HTTP/1.1 where they do not offer it", .either(),
            made(0, http2: true) + [.wantUpgrade, .offersNot(0), .turn], ["dial 0 1", "0 on s0", "dial 1 1"]),
        Case(
            "or is refused where HTTP/2 is insisted on", .http2(),
            made(0, http2: true) + [.wantUpgrade, .offersNot(0), .turn],
            ["dial 0 1", "0 on s0", "refuse 1 noUpgrade", "1 closed"]),
        Case(
            "a shared connection that ends tells what waits for its word", .either(),
            made(0, http2: true) + [.wantUpgrade, .ends(0)],
            ["dial 0 1", "0 on s0", "s0 ends", "0 closed", "refuse 1 sharedConnectionGone", "1 closed"]),
        Case(
            "one that began a shared connection to leave HTTP waits as well", .either(),
            [.wantUpgrade, .want, .turn, .connects(0), .http2(0), .offersNot(0), .turn],
            ["dial 0 1", "1 on s0", "dial 0 1"]),
    ]

    static let addresses = [
        Case("a name is awaited", .http1(), at: [], [.want, .turn, .found([1]), .turn], ["dial 0 1"]),
        Case(
            "a name without addresses is said", .http1(), at: [], [.want, .found([]), .want, .turn],
            ["refuse 0 unresolvable", "0 closed", "refuse 1 unresolvable", "1 closed"]),
        Case(
            "an address that is gone loses its idle connections", .http1(), at: [],
            [.want] + [.found([1]), .turn, .connects(0)]
                + [.http1(0), .done(0), .found([2])], ["dial 0 1", "0 closed"]),
        Case(
            "one that is not healthy, too", .http1(), at: [1, 2],
            made(0) + [.done(0), .unhealthy([1]), .want, .turn], ["dial 0 12", "0 closed", "dial 1 21"]),
        Case(
            "the last healthy one keeps them", .http1(), made(0) + [.done(0), .unhealthy([1]), .want],
            ["dial 0 1", "use 0"]),
        Case(
            "an attempt at another address", .http1(), at: [1, 2],
            [.want, .turn, .connects(0), .redials(0), .want, .turn],
            ["dial 0 12", "dial 1 21"]),
    ]

    @Test(arguments: connections + bounded + sharing + addresses) func isDone(_ known: Case) {
        let scene = PoolScene(known.bounds, addresses: known.addresses)
        for event in known.events { scene.take(event) }
        #expect(scene.log == known.done)
        #expect(scene.broken + scene.faults == [])
    }
}

extension PoolBounds {
    static func http1(_ sockets: Int = 9, waiters: Int = 0, idle: Int = 9, owned: Int = 9) -> PoolBounds {
        var bounds = made(.http1, sockets, waiters, idle)
        bounds.owned = owned
        return bounds
    }

    static func either(_ sockets: Int = 9, waiters: Int = 0) -> PoolBounds { made(.either, sockets, waiters, 9) }

    static func http2(_ sockets: Int = 9, waiters: Int = 0) -> PoolBounds { made(.http2, sockets, waiters, 9) }

    private static func made(
        _ protocols: UpstreamPlan.Protocols, _ sockets: Int, _ waiters: Int, _ idle: Int
    ) -> PoolBounds {
        var bounds = PoolBounds()
        bounds.protocols = protocols
        bounds.usesTLS = protocols != .http1
        bounds.sockets = sockets
        bounds.waiters = waiters
        bounds.idle = idle
        return bounds
    }
}
