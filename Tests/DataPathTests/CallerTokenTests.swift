import Glibc
import ScriptedKernel
import TemporaryFolder
import Testing

@testable import DataPath
@testable import Scenes

/// The gateway's own token, which callers of a route have to bring (`callers.token`).
@Suite struct CallerTokenTests {
    /// The secret of scenes is `secret`.
    private static let gateway = Plans.open("callers: {token: env:V}")
    private static let proxy = """
        listeners:
          edge: {address: "127.0.0.1:8080", mode: forward_proxy, unmatched: tunnel}
        routes:
          - {listen: edge, match: {host: api.test}, to: "http://127.0.0.1:9000", use: none, callers: {token: env:V}}

        """

    @Test(arguments: [
        "Authorization: Bearer secret", "authorization: bEaReR    secret", "Authorization: Basic dTpzZWNyZXQ=",
        "Authorization: BASIC  OnNlY3JldA==",
    ])
    func aTokenAdmitsAndGoesNoFurther(field: String) throws {
        let scene = try Scene(Self.gateway)
        let caller = scene.call(Wire.get("/a", "\(field)\r\nX-A: b\r\n"))
        let upstream = try #require(scene.upstreams.first)
        #expect(upstream.takeText() == Wire.forwarded("GET", "/a", "X-A: b\r\n"))
        upstream.send(Wire.ok("x"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("x"))
        scene.end()
    }

    @Test(arguments: [
        "", "Authorization: secret\r\n", "Authorization: Bearer\r\n", "Authorization: Bearer wrong\r\n",
        "Authorization: Bearer secret2\r\n", "Authorization: Bearer secre\r\n", "Authorization: Digest secret\r\n",
        "Authorization: Basic secret\r\n", "Authorization: Basic c2VjcmV0\r\n", "Authorization: Basic dTp3cm9uZw==\r\n",
        "Authorization: Basic ====\r\n",
        // What is longer than any name and password is not decoded.
        "Authorization: Basic " + String(repeating: "YWFh", count: 339) + "OnNlY3JldA==\r\n",
        // Nothing says which of two counts.
        "Authorization: Bearer secret\r\nAuthorization: Bearer secret\r\n", "Proxy-Authorization: Bearer secret\r\n",
    ])
    func aRequestWithoutTheTokenIsRefused(fields: String) throws {
        let scene = try Scene(Self.gateway)
        let caller = scene.call(Wire.get("/a", fields))
        #expect(caller.status == 401 && scene.upstreams.isEmpty && !caller.sawEnd)
        let answer = caller.takeText()
        #expect(answer.contains("problems/caller-token-refused") && answer.contains("\r\nWWW-Authenticate: "))
        // The connection goes on for one who finds the token.
        caller.send(Wire.get("/b", "Authorization: Bearer secret\r\n"))
        scene.settle()
        #expect(try #require(scene.upstreams.first).takeText() == Wire.forwarded("GET", "/b"))
        scene.end()
    }

    /// A proxy's callers bring it in a field of its own (RFC 9110 §11.7.2): the other one is the upstream's.
    @Test func aProxysTokenStandsInItsOwnField() throws {
        let scene = try Scene(Self.proxy)
        func get(_ fields: String) -> String { "GET http://api.test/a HTTP/1.1\r\nHost: api.test\r\n\(fields)\r\n" }
        for fields in ["", "Authorization: Bearer secret\r\n", "Proxy-Authorization: Basic dTp3cm9uZw==\r\n"] {
            let caller = scene.call(get(fields))
            #expect(caller.status == 407 && scene.upstreams.isEmpty)
            #expect(caller.receivedText.contains("problems/proxy-token-refused"))
            #expect(caller.receivedText.contains("\r\nProxy-Authenticate: "))
        }
        let caller = scene.call(get("Authorization: Bearer theirs\r\nProxy-Authorization: Basic dTpzZWNyZXQ=\r\n"))
        let upstream = try #require(scene.upstreams.first)
        #expect(upstream.takeText() == Wire.forwarded("GET", "/a", "Authorization: Bearer theirs\r\n"))
        upstream.send(Wire.ok("x"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("x"))
        scene.end()
    }

    /// Whom one route refuses has no right to the proxy as such.
    @Test func theTokenIsWantedForOtherPlacesToo() throws {
        let scene = try Scene(Self.proxy)
        let connect = "CONNECT 203.0.113.5:443 HTTP/1.1\r\nHost: 203.0.113.5:443\r\n"
        let refused = scene.call(connect + "\r\n")
        #expect(refused.status == 407 && refused.sawEnd && scene.upstreams.isEmpty)
        let plain = scene.call("GET http://203.0.113.5/ HTTP/1.1\r\nHost: 203.0.113.5\r\n\r\n")
        #expect(plain.status == 407 && scene.upstreams.isEmpty)
        let admitted = scene.call(connect + "Proxy-Authorization: Bearer secret\r\n\r\n")
        #expect(admitted.takeText() == "HTTP/1.1 200 Connection Established\r\n\r\n")
        #expect(try #require(scene.upstreams.first).receivedCount == 0)
        scene.end()
    }

    /// A route that nobody can show the token for is closed, and says whose fault that is.
    @Test func aTokenThatCannotBeReadAdmitsNobody() throws {
        let folder = TemporaryFolder("token")
        let path = "\(folder.path)/token"
        let scene = try Scene(Plans.open("callers: {token: \"file:\(path)\"}"))
        for token in ["secret", "wrong"] {
            let caller = scene.call(Wire.get("/a", "Authorization: Bearer \(token)\r\n"))
            #expect(caller.status == 503 && scene.upstreams.isEmpty)
            #expect(caller.receivedText.contains("problems/secret-unreadable"))
            #expect(caller.receivedText.contains("\r\nRetry-After: 1\r\n"))
        }
        // Whoever brings none could not be admitted by any token.
        #expect(scene.call(Wire.get("/a")).status == 401)
        let file = open(path, O_WRONLY | O_CREAT, 0o600)
        #expect(write(file, "secret", 6) == 6)
        close(file)
        let token = try #require(scene.plan.routes[0].admission.token)
        #expect(token.reload() == nil)
        #expect(scene.call(Wire.get("/a", "Authorization: Bearer wrong\r\n")).status == 401)
        _ = scene.call(Wire.get("/b", "Authorization: Bearer secret\r\n"))
        #expect(try #require(scene.upstreams.first).takeText() == Wire.forwarded("GET", "/b"))
        // What cannot be read any more leaves the token before in force.
        #expect(unlink(path) == 0 && token.reload() != nil)
        _ = scene.call(Wire.get("/c", "Authorization: Bearer secret\r\n"))
        #expect(try #require(scene.upstreams.last).takeText() == Wire.forwarded("GET", "/c"))
        scene.end()
    }
}
