import Glibc
import HTTP2
import Reactor
import Synchronization
import Telemetry
import TemporaryFolder
import Testing

@testable import DataPath

/// Parts of plans that are read, counted or kept: what is refused, and what stays in force.
@Suite struct PlanEdgeTests {
    private final class Stored: Sendable {
        let text = Mutex<String?>(nil)

        func set(_ next: String?) { text.withLock { $0 = next } }
    }

    private struct Unreadable: Error, CustomStringConvertible { let description = "no such file" }

    /// A secret that cannot be read, or is empty, neither admits everybody nor shuts those out who were admitted.
    @Test func aCallersTokenStaysInForceUntilThereIsAnother() {
        let secret = Stored()
        let token = CallerToken { use in
            guard let text = secret.text.withLock({ $0 }) else { throw Unreadable() }
            Array(text.utf8).withUnsafeBytes { use($0) }
        }
        func admits(_ text: String) -> Bool? { Array(text.utf8).withUnsafeBytes { token.admits($0) } }
        // Each fault is told once.
        #expect(token.reload() == "no such file" && token.reload() == nil && admits("a") == nil)
        secret.set("")
        #expect(token.reload() == "empty" && token.reload() == nil && admits("") == nil)
        secret.set("a")
        #expect(token.reload() == nil && admits("a") == true && admits("") == false && admits("aa") == false)
        secret.set("")
        #expect(token.reload() == "empty" && admits("a") == true && admits("") == false)
        secret.set(nil)
        #expect(token.reload() == "no such file" && admits("a") == true)
        secret.set("b")
        #expect(token.reload() == nil && admits("a") == false && admits("b") == true)
    }

    /// An address is one, however it is written and whatever its port.
    @Test(arguments: [
        ("192.0.2.7:1", "[::ffff:192.0.2.7]:2", true), ("[2001:db8::7]:1", "[2001:db8::7]:2", true),
        ("[2001:db8::7]:1", "[2001:db8::8]:1", false), ("192.0.2.7:1", "[::c000:207]:1", false),
    ])
    func callersAreCountedByTheirAddress(first: String, second: String, isOne: Bool) throws {
        let census = AddressCensus(limit: 1)
        let (one, other) = try (#require(SocketAddress(parsing: first)), #require(SocketAddress(parsing: second)))
        // A caller that was not counted leaves nothing.
        census.leave(other)
        #expect(census.enter(one) && census.enter(other) == !isOne)
        census.leave(one)
        #expect(census.enter(one))
        census.limit = 2
        #expect(census.enter(one) && !census.enter(one))
    }

    /// Servers of many names cannot make the memory of their nonces grow without end.
    @Test func noncesAreKeptByOriginAndBounded() {
        var nonces = UpstreamNonces()
        func keep(_ nonce: String, _ origin: String) -> Bool {
            Array(nonce.utf8).withUnsafeBytes { nonces.keep($0, from: origin) }
        }
        #expect(!keep("", "https://a") && !keep("a b", "https://a") && nonces["https://a"] == nil)
        #expect(keep("one", "https://a") && keep("two", "https://a") && nonces["https://a"] == "two")
        for number in 0..<255 { #expect(keep("n", "https://\(number)")) }
        #expect(nonces["https://a"] == "two")
        #expect(keep("n", "https://next") && nonces["https://next"] == "n" && nonces["https://a"] == nil)
    }

    @Test func aFileThatCannotBeAskedForIsRefused() throws {
        let folder = TemporaryFolder("public-file")
        defer { folder.remove() }
        func reason(_ path: String) -> String? {
            do throws(PublicFile.Fault) {
                _ = try PublicFile.read(path)
                return nil
            } catch { return error.reason }
        }
        #expect(reason(folder.path) == "Is a directory" && reason("\(folder.path)/none") == "No such file or directory")
        let path = "\(folder.path)/large"
        let descriptor = open(path, O_WRONLY | O_CREAT, 0o600)
        defer { close(descriptor) }
        #expect(ftruncate(descriptor, 1 << 20) == 0 && reason(path) == nil)
        #expect(ftruncate(descriptor, (1 << 20) + 1) == 0 && reason(path) == "larger than 1 MiB")
    }

    @Test func aGroupThatCannotBeGivenIsExplained() {
        let told = "\(ListenFault(address: "unix:/run/a.sock", call: "chown", errno: EPERM))"
        #expect(told.hasPrefix("cannot listen on unix:/run/a.sock: chown: ") && told.contains("socket.group"))
        // Where no advice is known, the system's word stands alone.
        #expect("\(ListenFault(address: "a", call: "listen", errno: EPERM))".hasSuffix("Operation not permitted"))
    }

    /// A caller of HTTP/2 whose own body broke off has cancelled; of others it learns that something went wrong.
    @Test func whoBrokeAnAnswerOffIsToldByTheReset() {
        #expect(Fault(.incompleteBody).resetCode == .cancel && Fault(.incompleteBody).logSide == .caller)
        #expect(Fault(.upstreamClosed).resetCode == .internalError && Fault(.upstreamClosed).logSide == .upstream)
        #expect(Fault(.outOfMemory).resetCode == .enhanceYourCalm && Fault(.outOfMemory).logSide == .gateway)
        #expect(Fault(.issuerUnavailable).logSide == .gateway)
    }

    /// Twelve octets that are not the signature of a PROXY header are somebody else's protocol.
    @Test func whatBeginsLikeAProxyHeaderIsNone() {
        let header = ProxyHeaderTests.binary([192, 0, 2, 7, 10, 0, 0, 1, 0x30, 0x39, 0, 80])
        func isRefused(_ octets: [UInt8]) -> Bool {
            if case .refused = ProxyHeader.read(octets.span, versions: [1, 2]) { true } else { false }
        }
        #expect(!isRefused(header))
        for place in 1..<13 {
            var other = header
            other[place] ^= 0x80
            #expect(isRefused(other), "\(place)")
            #expect(place == 12 || isRefused(Array(other.prefix(place + 1))), "at once, \(place)")
        }
    }

    /// A fault's detail stands in JSON, whatever names of routes or requests it holds.
    @Test func whatAFaultTellsIsEscaped() {
        let fault = Fault(.internalFault, detail: "a \"b\" \\ c")
        let text = String(
            decoding: fault.message(pseudonym: "gate", route: "r\"s\\t\n", headOnly: false, close: true), as: UTF8.self)
        let body = text.drop { $0 != "{" }
        #expect(body.contains("a \\\"b\\\" \\\\ c") && body.contains("r\\\"s\\\\t "))
    }
}
