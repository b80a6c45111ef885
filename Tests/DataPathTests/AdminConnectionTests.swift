import Glibc
import Reactor
import ScriptedKernel
import Synchronization
import Testing

@testable import DataPath

/// Connections of operators and monitors: who is answered, and with what.
@Suite struct AdminConnectionTests {
    private final class Site: AdminResponder {
        let body: String
        let requests = Mutex<[AdminRequest]>([])

        init(_ body: String) { self.body = body }

        func answer(_ request: AdminRequest) -> AdminAnswer {
            requests.withLock { $0.append(request) }
            return AdminAnswer(200, "text/plain", body, fields: [("X-Site", "ours")])
        }
    }

    private final class Play {
        let kernel = FakeKernel()
        let loop: Loop
        let site: Site
        let server: AdminServer
        let listener: Int32

        let address: SocketAddress

        init(
            _ entrance: AdminRequest.Entrance = .listen, body: String = "read", hosts: [String] = [],
            opens: Bool = true
        ) throws {
            loop = try Loop(name: "admin", kernel: kernel)
            site = Site(body)
            server = AdminServer(loop: loop, responder: site, hosts: hosts) { $0(nil) }
            listener = kernel.listen()
            address = try #require(SocketAddress(parsing: "127.0.0.1:1"))
            server.hold(listener, of: address, entrance: entrance)
            if opens { #expect(server.open()) }
            settle()
        }

        func settle() {
            var quiet = 0
            while quiet < 3 {
                loop.turnOnce()
                quiet = kernel.isQuiet ? quiet + 1 : 0
            }
        }

        func pass(seconds: Double) {
            kernel.advance(seconds: seconds)
            settle()
        }

        func call(_ text: String, window: Int = .max) throws -> Peer {
            let caller = try #require(kernel.call(listener))
            caller.window = window
            caller.send(text)
            settle()
            return caller
        }
    }

    private static func get(_ host: String, _ fields: String = "") -> String {
        "GET /read?x HTTP/1.1\r\nHost: \(host)\r\n\(fields)\r\n"
    }

    // MARK: - Who is served

    @Test(arguments: [
        ("localhost", 200), ("LOCALHOST:9090", 200), ("127.0.0.1:9090", 200), ("[::1]:9090", 200), ("[::1]", 200),
        ("gate.example.com", 200), ("evil.test", 421), ("[evil]", 400), ("localhost.evil.test", 421),
    ])
    func aForeignNameIsNotServed(_ host: String, _ status: Int) throws {
        let play = try Play(hosts: ["Gate.example.com"])
        let caller = try play.call(Self.get(host))
        #expect(caller.receivedText.hasPrefix("HTTP/1.1 \(status) "))
        #expect(play.site.requests.withLock { $0.map(\.path) } == (status == 200 ? ["/read"] : []))
    }

    @Test func thePagesOfOthersAreNotAdmitted() throws {
        let play = try Play()
        let ours = Self.get("localhost:90", "Origin: http://LOCALHOST:90\r\n")
        for (request, isAdmitted) in [
            (ours, true), (Self.get("localhost:90", "Sec-Fetch-Site: same-origin\r\n"), true),
            (Self.get("localhost:90", "Origin: http://localhost:91\r\n"), false),
            (Self.get("localhost:90", "Origin: http://localhost:90\r\nOrigin: http://evil.test\r\n"), false),
            (Self.get("localhost:90", "Origin: null\r\n"), false),
            (Self.get("localhost:90", "Sec-Fetch-Site: cross-site\r\n"), false),
        ] {
            let before = play.site.requests.withLock { $0.count }
            let caller = try play.call(request)
            #expect(caller.receivedText.hasPrefix(isAdmitted ? "HTTP/1.1 200 " : "HTTP/1.1 403 "), "\(request)")
            #expect(play.site.requests.withLock { $0.count } == before + (isAdmitted ? 1 : 0))
        }
        #expect(play.site.requests.withLock { $0.allSatisfy(\.isOwnPage) })
    }

    /// The name of a target in absolute form, where there is no other (RFC 9112 §3.2.2).
    @Test func theTargetsNameIsLookedAtToo() throws {
        let play = try Play()
        let evil = try play.call("GET http://evil.test/ HTTP/1.0\r\n\r\n")
        #expect(evil.receivedText.hasPrefix("HTTP/1.1 421 ") && play.site.requests.withLock { $0.isEmpty })
        let good = try play.call("GET http://localhost/x HTTP/1.0\r\nOrigin: http://localhost\r\n\r\n")
        #expect(good.receivedText.hasPrefix("HTTP/1.1 200 ") && good.isClosed)
        #expect(play.site.requests.withLock { $0.map(\.isOwnPage) } == [true])
    }

    /// The socket's file may be open to more than the gateway's own user, its commands are not.
    @Test func theSocketIsOurUsersAlone() throws {
        let play = try Play(.socket)
        let caller = try play.call(Self.get("anything"))
        // The kernel of tests says that every caller is user 1000.
        let isOurs = geteuid() == 1000
        #expect(caller.receivedText.hasPrefix("HTTP/1.1 200 ") == isOurs && caller.isClosed != isOurs)
    }

    // MARK: - Requests

    @Test func whatIsNoRequestIsAnsweredAndClosed() throws {
        let play = try Play()
        let broken = try play.call("GET\r\n\r\n")
        #expect(broken.receivedText.hasPrefix("HTTP/1.1 400 Bad Request\r\n") && broken.isClosed)
        #expect(broken.receivedText.contains("\r\nConnection: close\r\n"))
        let large = try play.call("GET / HTTP/1.1\r\nX: " + String(repeating: "x", count: 40_000))
        #expect(large.receivedText.hasPrefix("HTTP/1.1 431 ") && large.isClosed)
        #expect(play.site.requests.withLock { $0.isEmpty })
    }

    @Test func anAnswerToHEADIsItsHeadAlone() throws {
        let play = try Play()
        let caller = try play.call("HEAD /read HTTP/1.1\r\nHost: localhost\r\n\r\n" + Self.get("localhost"))
        let answers = caller.takeText().split(separator: "HTTP/1.1 200 OK\r\n", omittingEmptySubsequences: false)
        try #require(answers.count == 3)
        #expect(answers[1].contains("\r\nContent-Length: 4\r\n") && answers[1].hasSuffix("\r\n\r\n"))
        #expect(answers[2].hasSuffix("\r\n\r\nread") && !caller.isClosed)
    }

    @Test(arguments: ["Connection: close\r\n", "Content-Length: 1\r\n"])
    func theLastAnswerIsWrittenToItsEnd(_ field: String) throws {
        let play = try Play(body: String(repeating: "r", count: 200_000))
        let caller = try play.call(Self.get("localhost", field), window: 1000)
        #expect(caller.receivedCount == 1000 && !caller.isClosed)
        // Octets behind the request are not read.
        caller.send(Self.get("localhost"))
        caller.window = 100_000
        play.settle()
        #expect(!caller.isClosed)
        caller.window = .max
        play.settle()
        #expect(caller.isClosed && caller.receivedText.hasSuffix("\r\n\r\n" + play.site.body))
        #expect(play.site.requests.withLock { $0.count } == 1 && play.server.buffers.outputBytes == 0)
    }

    @Test func whoeverIsGoneIsClosed() throws {
        let play = try Play()
        let lost = try #require(play.kernel.call(play.listener))
        lost.failWrites([EPIPE])
        lost.send(Self.get("localhost"))
        play.settle()
        let reset = try play.call("GET")
        reset.reset()
        let finished = try play.call("GET")
        finished.finish()
        play.settle()
        #expect(lost.isClosed && reset.isClosed && finished.isClosed && play.kernel.misuse == [])
        #expect(play.server.buffers.pool.taken == 0)
    }

    /// Answers that nobody reads are bounded in all.
    @Test func tooManyUnreadAnswersAreTold() throws {
        let play = try Play(body: String(repeating: "r", count: 70 << 20))
        let first = try play.call(Self.get("localhost"), window: 100)
        let second = try play.call(Self.get("localhost"))
        #expect(second.receivedText.hasPrefix("HTTP/1.1 503 ") && second.isClosed && !first.isClosed)
        first.reset()
        play.settle()
        let third = try play.call(Self.get("localhost"), window: 100)
        #expect(third.receivedText.hasPrefix("HTTP/1.1 200 "))
    }

    /// The token is looked at where the commands are, and a query is no part of the path.
    @Test func theRequestIsToldWhole() throws {
        let play = try Play()
        let caller = try play.call(Self.get("localhost", "Authorization: Bearer abc\r\n"))
        #expect(caller.takeText().contains("\r\nX-Site: ours\r\n"))
        let request = try #require(play.site.requests.withLock { $0.last })
        #expect(request.method == "GET" && request.path == "/read" && request.query == "x")
        #expect(request.authorization == "Bearer abc" && !request.isOwnPage)
        let bare = AdminRequest(method: "GET", path: "/", query: "", entrance: .socket, authorization: nil)
        #expect(!bare.isOwnPage)
    }

    /// Kubelets ask by the address of a pod, and get nothing but its health.
    @Test func probesAreAnsweredByAnyName() throws {
        let play = try Play(.probes)
        let caller = try play.call(Self.get("evil.test", "Origin: http://evil.test\r\n"))
        #expect(caller.receivedText.hasPrefix("HTTP/1.1 200 "))
        #expect(play.site.requests.withLock { $0.map(\.entrance) } == [.probes])
    }

    /// A browser's address from a login may be longer than a head elsewhere, and still has its bound.
    @Test func theSocketTakesLongerRequests() throws {
        let play = try Play(.socket)
        play.kernel.callerUser = geteuid()
        let target = "/" + String(repeating: "x", count: 10_000)
        let caller = try play.call("GET \(target) HTTP/1.1\r\nHost: any\r\n\r\n")
        #expect(caller.takeText().hasPrefix("HTTP/1.1 200 ") && !caller.isClosed)
        #expect(play.site.requests.withLock { $0.map(\.path) } == [target])
        let endless = try play.call("GET /" + String(repeating: "x", count: 20_000))
        #expect(endless.receivedText.hasPrefix("HTTP/1.1 431 ") && endless.isClosed)
        let elsewhere = try Play()
        let other = try elsewhere.call("GET \(target) HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(other.receivedText.hasPrefix("HTTP/1.1 414 ") && other.isClosed)
    }

    // MARK: - Many

    /// Monitors behind one address must not lock others out; callers of a unix socket have no address to be counted by.
    @Test(arguments: [("192.0.2.1", 1), ("", 0)])
    func oneAddressHasItsShare(address: String, closed: Int) throws {
        let play = try Play()
        play.kernel.callerAddress = address
        var callers: [Peer] = []
        for _ in 0...AdminServer.addressLimit {
            callers.append(try play.call(Self.get("localhost")))
            play.pass(seconds: 0.01)
        }
        #expect(callers.allSatisfy { $0.receivedText.hasSuffix("read") })
        // The one that has asked for nothing the longest.
        #expect(callers.count(where: \.isClosed) == closed && callers[0].isClosed == (closed == 1))
    }

    @Test func aConnectionWithoutAPlaceInTheLoopIsClosed() throws {
        let play = try Play()
        play.kernel.watchErrors = [ENOSPC]
        let lost = try play.call(Self.get("localhost"))
        #expect(lost.isClosed && lost.receivedCount == 0)
        let served = try play.call(Self.get("localhost"))
        #expect(served.receivedText.hasSuffix("read") && play.kernel.misuse == [])
    }

    // MARK: - Beginning and leaving

    /// Sockets are held before anybody is answered, so that whoever connects meanwhile waits.
    @Test func callersThatCameBeforeTheStartAreAnswered() throws {
        let play = try Play(opens: false)
        #expect(play.server.addresses == [play.address] && play.server.sockets.isEmpty)
        let early = try play.call(Self.get("localhost"))
        #expect(early.receivedCount == 0)
        #expect(play.server.open())
        play.settle()
        #expect(early.receivedText.hasSuffix("read") && play.server.addresses == [play.address])
        #expect(play.server.sockets.map(\.descriptor) == [play.listener])
        #expect(play.server.sockets.map(\.address) == [play.address])
    }

    @Test func aSocketThatCannotBeWatchedIsTold() throws {
        let play = try Play(opens: false)
        play.kernel.watchErrors = [ENOSPC]
        #expect(!play.server.open())
    }

    /// Another process answers at the address from now on, and who is connected is sent there.
    @Test func whoIsConnectedIsSentToTheNextProcess() throws {
        let play = try Play()
        let caller = try play.call(Self.get("localhost"))
        #expect(!caller.takeText().contains("Connection: close"))
        let other = try #require(SocketAddress(parsing: "127.0.0.1:2"))
        play.server.leave([other])
        #expect(play.server.addresses == [play.address] && play.kernel.call(play.listener) != nil)
        play.server.leave([play.address])
        #expect(play.server.addresses.isEmpty && play.server.sockets.isEmpty)
        #expect(play.kernel.call(play.listener) == nil, "the socket is the other process's alone")
        caller.send(Self.get("localhost"))
        play.settle()
        #expect(caller.takeText().contains("\r\nConnection: close\r\n") && caller.isClosed)
        #expect(play.kernel.misuse == [])
    }

    /// A look at an answer's reader is none at the connection's end: the next request has its whole time.
    @Test func aReaderThatIsDoneHasTimeForItsNextRequest() throws {
        let play = try Play(body: String(repeating: "r", count: 200_000))
        let caller = try play.call(Self.get("localhost"), window: 1000)
        caller.window = .max
        play.settle()
        #expect(caller.takeText().hasSuffix("\r\n\r\n" + play.site.body))
        for _ in 0..<29 { play.pass(seconds: 1) }
        #expect(!caller.isClosed)
        play.pass(seconds: 1.5)
        #expect(caller.isClosed && play.server.buffers.pool.taken == 0)
    }

    // MARK: - Out of descriptors

    @Test func callersThatCouldNotBeAcceptedAreTakenLater() throws {
        let play = try Play()
        play.kernel.failAccepts(play.listener, [EINTR, ECONNABORTED, EMFILE])
        let caller = try play.call(Self.get("localhost"))
        #expect(caller.receivedCount == 0)
        play.pass(seconds: 0.25)
        #expect(caller.takeText().hasSuffix("read"))
    }
}
