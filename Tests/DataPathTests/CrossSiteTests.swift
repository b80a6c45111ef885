import ScriptedKernel
import TLS
import Testing

@testable import Scenes

/// Requests of web pages: those of other sites are refused, by the `Origin` and `Sec-Fetch-Site` that no script can change.
@Suite struct CrossSiteTests {
    /// - Returns: the status that a caller gets, 200 from the upstream where the request was passed on.
    private static func status(_ request: String, _ plan: String = Plans.open()) throws -> Int? {
        let scene = try Scene(plan)
        let caller = scene.call(request)
        if let upstream = scene.upstreams.first {
            upstream.send(Wire.ok("x"))
            scene.settle()
        } else {
            #expect(caller.receivedText.contains("problems/cross-site"))
        }
        defer { scene.end() }
        return caller.status
    }

    // MARK: - Origin

    /// RFC 6454 section 6.1: scheme, host and port, where the port of the scheme may be left out.
    @Test(arguments: [
        ("localhost", "http://localhost", true), ("localhost", "HTTP://LocalHost", true),
        ("localhost", "http://localhost:80", true), ("localhost:80", "http://localhost", true),
        ("127.0.0.1:8080", "http://127.0.0.1:8080", true), ("[::1]:8080", "http://[::1]:8080", true),
        ("localhost:8080", "http://localhost:8081", false), ("localhost:8080", "http://localhost", false),
        ("localhost", "http://localhosT.", false), ("localhost", "http://localhosx", false),
        ("localhost", "https://localhost", false), ("localhost", "http://evil.example", false),
        ("localhost", "null", false), ("localhost", "http://", false), ("localhost", "", false),
        ("localhost", "http://localhost:443", false), ("localhost", "ftp:///localhost", false),
    ])
    func aPageIsAtHomeWhereTheVeryAddressWasCalled(host: String, origin: String, isOwn: Bool) throws {
        let request = "GET / HTTP/1.1\r\nHost: \(host)\r\nOrigin: \(origin)\r\n\r\n"
        #expect(try Self.status(request) == (isOwn ? 200 : 403))
    }

    /// The target's authority is where the request is for (RFC 9112 section 3.2.2).
    @Test func theTargetNamesTheHostOfARequestInAbsoluteForm() throws {
        let request = "GET http://localhost:8080/ HTTP/1.1\r\nHost: localhost:8080\r\nOrigin: http://localhost:808"
        #expect(try Self.status(request + "0\r\n\r\n") == 200)
        #expect(try Self.status(request + "1\r\n\r\n") == 403)
    }

    @Test func everyOriginOfARequestHasToBeItsOwn() throws {
        let own = "Origin: http://localhost\r\n"
        #expect(try Self.status(Wire.get("/", own + own)) == 200)
        #expect(try Self.status(Wire.get("/", own + "Origin: http://evil.example\r\n")) == 403)
    }

    /// Whoever sends no Host has named no address that a page could be at home at.
    @Test func aPageIsNowhereAtHomeWithoutAHost() throws {
        #expect(try Self.status("GET / HTTP/1.0\r\nOrigin: http://localhost\r\n\r\n") == 403)
        #expect(try Self.status("GET / HTTP/1.0\r\n\r\n") == 200)
    }

    /// With every Host taken, a page of any name that leads here would be at home.
    @Test func nobodyIsAtHomeWhereEveryNameIsTaken() throws {
        let plan = Plans.open("hosts: [any]")
        let request = "GET / HTTP/1.1\r\nHost: evil.example\r\n"
        #expect(try Self.status(request + "Origin: http://evil.example\r\n\r\n", plan) == 403)
        #expect(try Self.status(request + "\r\n", plan) == 200)
    }

    @Test func aPageUnderTLSHasTheSchemeAndPortOfTLS() throws {
        let scene = try Scene(ArrivalTests.secure("hosts: [good.test]"))
        for (host, origin, status) in [
            ("good.test", "https://good.test", 200), ("good.test:443", "https://good.test", 200),
            ("good.test", "https://good.test:443", 200), ("good.test", "http://good.test", 403),
            ("good.test", "https://good.test:80", 403), ("good.test:8443", "https://good.test:8444", 403),
        ] {
            let caller = try SecureCaller(scene, scene.call())
            #expect(caller.shake() == .done)
            #expect(caller.send("GET / HTTP/1.1\r\nHost: \(host)\r\nOrigin: \(origin)\r\n\r\n"))
            if status == 200 { try #require(scene.upstreams.last).send(Wire.ok("x")) }
            scene.settle()
            #expect(caller.receive().hasPrefix("HTTP/1.1 \(status) "), "\(host) \(origin)")
        }
        scene.end()
    }

    // MARK: - Sec-Fetch-Site

    @Test(arguments: [
        ("same-origin", true), ("none", true), ("same-site", false), ("cross-site", false), ("", false),
        ("None", false), ("same-origin, none", false),
    ])
    func theSiteOfAPageIsToldByItsBrowser(site: String, isTaken: Bool) throws {
        #expect(try Self.status(Wire.get("/", "Sec-Fetch-Site: \(site)\r\n")) == (isTaken ? 200 : 403))
        // Of two the other one may be meant.
        let both = "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: \(site)\r\n"
        #expect(try Self.status(Wire.get("/", both)) == (isTaken ? 200 : 403))
        // A page at home by its Origin is judged by the other field all the same.
        let own = "Origin: http://localhost\r\nSec-Fetch-Site: \(site)\r\n"
        #expect(try Self.status(Wire.get("/", own)) == (isTaken ? 200 : 403))
    }

    @Test func pagesOfOtherSitesAreTakenWhereTheRouteSaysSo() throws {
        let plan = Plans.open("callers: {allow: [127.0.0.0/8], browsers: true}")
        let fields = "Origin: https://evil.example\r\nSec-Fetch-Site: cross-site\r\n"
        #expect(try Self.status(Wire.get("/", fields), plan) == 200)
    }
}
