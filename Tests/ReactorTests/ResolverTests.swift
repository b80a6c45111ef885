import Synchronization
import Telemetry
import Testing

@testable import Reactor

@Suite struct ResolverTests {
    /// Answers of several questions; `await`ed by polling nothing: a continuation resumes when all are there.
    private func ask(_ resolver: Resolver, _ host: String, port: UInt16 = 80) async -> Result<
        [SocketAddress], ResolveFault
    > {
        await withCheckedContinuation { waiting in
            resolver.resolve(host: host, port: port) { waiting.resume(returning: $0) }
        }
    }

    @Test func literalsNeedNoLookup() async throws {
        let resolver = try Resolver { _, _ in .failure(.notFound) }
        let answer = await ask(resolver, "[::1]", port: 8)
        #expect(answer == .success([try #require(SocketAddress(host: "::1", port: 8))]))
    }

    @Test func asksOnItsThread() async throws {
        let address = try #require(SocketAddress(host: "10.0.0.1", port: 81))
        let resolver = try Resolver { host, port in
            host == "a.example" && port == 81 ? .success([address]) : .failure(.unavailable)
        }
        #expect(await ask(resolver, "a.example", port: 81) == .success([address]))
        #expect(await ask(resolver, "b.example") == .failure(.unavailable))
    }

    @Test(arguments: ["", "-a", ".", "a b", "a\u{0}b", "ä.example", "a/b", "a:80", String(repeating: "a", count: 254)])
    func refusesWhatIsNoName(host: String) async throws {
        let resolver = try Resolver { _, _ in .failure(.notFound) }
        #expect(await ask(resolver, host) == .failure(.invalidName))
    }

    @Test func isBoundedAndAnswersEveryQuestion() async throws {
        // The lookup waits on a lock that the test holds: the queue fills behind it.
        let gate = Gate()
        let resolver = try Resolver(capacity: 2) { _, _ in
            gate.pass()
            return .failure(.notFound)
        }
        let answers = Mutex<[ResolveFault]>([])
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            let deliver: Resolver.Delivery = { outcome in
                guard case .failure(let fault) = outcome else { return }
                let count = answers.withLock {
                    $0.append(fault)
                    return $0.count
                }
                if count == 10 { done.resume() }
            }
            for _ in 0..<10 { resolver.resolve(host: "slow.example", port: 1, deliver: deliver) }
            gate.open()
        }
        let seen = answers.withLock { $0 }
        #expect(seen.count == 10)
        #expect(seen.count { $0 == .overloaded } >= 7)
        #expect(seen.count { $0 == .notFound } >= 2)
    }

    @Test func theSystemKnowsLocalhost() async throws {
        let resolver = try Resolver()
        let addresses = try await ask(resolver, "localhost", port: 7).get()
        #expect(!addresses.isEmpty && addresses.allSatisfy { $0.isLoopback && $0.port == 7 })
        #expect(Set(addresses).count == addresses.count)
    }

    @Test func saysWhichFaultsPass() {
        #expect(ResolveFault(status: -3) == .unavailable && ResolveFault(status: -2) == .notFound)
        #expect(ResolveFault(status: -5) == .notFound && ResolveFault(status: -11) == .failed(-11))
    }
}

/// Closed until it is opened once.
private final class Gate: Sendable {
    private let isOpen = Atomic<Bool>(false)

    func open() { isOpen.store(true, ordering: .releasing) }
    func pass() { while !isOpen.load(ordering: .acquiring) {} }
}
