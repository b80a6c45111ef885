import FoundationEssentials
import Gateway
import Testing

@testable import Admin
@testable import DataPath

@Suite struct AdminSiteTests {
    private func text(_ answer: AdminAnswer) -> String { String(decoding: answer.body, as: UTF8.self) }

    private func field(_ name: String, of answer: AdminAnswer) -> String? {
        answer.fields.first { $0.name == name }?.value
    }

    private func outcome(_ answer: AdminAnswer) throws -> ResetDocument {
        try JSONDecoder().decode(ResetDocument.self, from: Data(answer.body))
    }

    @Test(arguments: [
        ("/livez", 200, "text/plain; charset=utf-8"), ("/readyz", 200, "application/json"),
        ("/metrics", 200, "text/plain; version=0.0.4; charset=utf-8"), ("/status", 200, "application/json"),
        ("/", 200, "text/html; charset=utf-8"), ("/nothing", 404, "text/plain; charset=utf-8"),
        ("/livez/", 404, "text/plain; charset=utf-8"), ("/..", 404, "text/plain; charset=utf-8"),
    ])
    func answersEveryPath(path: String, status: Int, type: String) throws {
        let site = SampleSite(try sampleFacts()).site()
        for method in ["GET", "HEAD"] {
            for entrance in [AdminRequest.Entrance.listen, .socket] {
                let answer = site.answer(request(method, path, entrance))
                #expect(answer.status == status)
                #expect(answer.contentType == type)
                #expect(!answer.body.isEmpty)
            }
        }
    }

    @Test(arguments: ["/livez", "/readyz", "/metrics", "/status", "/"], ["POST", "DELETE", "get", "OPTIONS", ""])
    func onlyReads(path: String, method: String) throws {
        let answer = SampleSite(try sampleFacts()).site().answer(request(method, path))
        #expect(answer.status == 405)
        #expect(field("Allow", of: answer) == "GET, HEAD")
    }

    /// Beyond loopback what names identities, routes and this machine is for whoever brings the token.
    @Test func beyondLoopbackThePageNeedsTheToken() throws {
        let sample = SampleSite(try sampleFacts(), token: Array("page-token-sixteen".utf8))
        for path in ["/", "/status", "/run?identity=hr", "/store"] {
            for method in ["GET", "HEAD"] {
                let closed = sample.site(withToken: false, isOpenToRead: false).answer(request(method, path))
                #expect(closed.status == 403 && text(closed).contains("admin.token"))
                #expect(text(closed).contains("admin.open_status: true"))
                let site = sample.site(isOpenToRead: false)
                #expect(site.answer(request(method, path)).status == 401)
                #expect(site.answer(request(method, path, authorization: "Bearer wrong")).status == 401)
                let asked = site.answer(request(method, path))
                #expect(field("WWW-Authenticate", of: asked)?.hasPrefix("Basic ") == true)
                let told = site.answer(request(method, path, authorization: "Bearer page-token-sixteen")).status
                #expect(told != 401 && told != 403)
                let socket = sample.site(withToken: false, isOpenToRead: false).answer(request(method, path, .socket))
                #expect(socket.status != 403)
            }
        }
        for path in ["/livez", "/readyz", "/metrics"] {
            #expect(sample.site(withToken: false, isOpenToRead: false).answer(request("GET", path)).status == 200)
        }
    }

    @Test func readinessSaysWhy() throws {
        var facts = try sampleFacts()
        facts.isReady = false
        facts.reasons = ["identity hr has no token yet"]
        let answer = SampleSite(facts).site().answer(request("GET", "/readyz"))
        #expect(answer.status == 503)
        let document = try snakeCase().decode(ReadinessDocument.self, from: Data(answer.body))
        #expect(!document.ready)
        #expect(document.reasons == ["identity hr has no token yet"])
        #expect(document.store == "serving")
        #expect(document.identities["payroll"] == "quarantined")
        #expect(document.identities["hr"] == "refresh_due")
        #expect(document.identities.count == 7)
    }

    @Test func aQuarantineIsNoReasonToBeUnready() throws {
        #expect(SampleSite(try sampleFacts()).site().answer(request("GET", "/readyz")).status == 200)
    }

    @Test(arguments: [
        ("GET", "/livez", true, 200), ("HEAD", "/livez", false, 200), ("GET", "/readyz", true, 200),
        ("GET", "/readyz", false, 503),
        ("POST", "/livez", true, 405), ("GET", "/", true, 404), ("GET", "/metrics", true, 404),
        ("GET", "/status", true, 404),
        ("POST", "/reset?identity=hr", true, 404),
    ])
    func probesTellOneBit(method: String, target: String, isReady: Bool, status: Int) throws {
        var facts = try sampleFacts()
        facts.isReady = isReady
        let sample = SampleSite(facts, token: Array("secret".utf8))
        let answer = sample.site().answer(request(method, target, .probes, authorization: "Bearer secret"))
        #expect(answer.status == status)
        #expect(answer.body.isEmpty)
        #expect(sample.wasReset.isEmpty)
    }

    @Test(arguments: [
        ("GET", "/metrics", 200), ("HEAD", "/metrics", 200), ("POST", "/metrics", 405), ("GET", "/", 404),
        ("GET", "/status", 404), ("GET", "/readyz", 404), ("GET", "/livez", 404), ("GET", "/sign-in", 404),
        ("GET", "/place", 404), ("GET", "/run?identity=hr", 404), ("POST", "/reset?identity=hr", 404),
        ("POST", "/reload", 404), ("POST", "/tokens/purge?all=true", 404), ("POST", "/store/rotate", 404),
    ])
    func theMetricsAddressOpensNothingElse(method: String, target: String, status: Int) throws {
        let sample = SampleSite(try sampleFacts(), token: Array("secret".utf8))
        let answer = sample.site().answer(request(method, target, .metrics, authorization: "Bearer secret"))
        #expect(answer.status == status)
        #expect(String(decoding: answer.body, as: UTF8.self).contains("cardea_build_info") == (status == 200))
        #expect(sample.wasReset.isEmpty && sample.wasPurged.isEmpty && sample.wasReloaded == 0)
    }

    // MARK: - Reset

    @Test func theSocketResetsWithoutAToken() throws {
        let sample = SampleSite(try sampleFacts())
        let answer = sample.site(withToken: false).answer(request("POST", "/reset?identity=payroll", .socket))
        #expect(answer.status == 200)
        #expect(try outcome(answer) == ResetDocument(error: nil, identities: ["payroll"]))
        #expect(sample.wasReset == ["payroll"])
    }

    @Test func withoutAConfiguredTokenNothingChanges() throws {
        let sample = SampleSite(try sampleFacts())
        let answer = sample.site(withToken: false).answer(
            request("POST", "/reset?identity=payroll", authorization: "Bearer "))
        #expect(answer.status == 403)
        #expect(try outcome(answer).error == "changes need admin.token")
        #expect(sample.wasReset.isEmpty)
    }

    @Test(
        arguments: [
            (nil, 401), ("", 401), ("Bearer", 401), ("Bearer ", 401), ("Bearer wrong", 401), ("Bearer s3cre", 401),
            ("Bearer s3crets3cret", 401),
            ("Basic s3cret", 401), ("s3cret", 401), ("Bearer s3cret ", 401), ("Bearer s3cret", 200),
            ("bearer  s3cret", 200),
        ] as [(String?, Int)])
    func theAddressResetsWithTheTokenOnly(authorization: String?, status: Int) throws {
        let sample = SampleSite(try sampleFacts(), token: Array("s3cret".utf8))
        let answer = sample.site().answer(request("POST", "/reset?identity=hr", authorization: authorization))
        #expect(answer.status == status)
        #expect((field("WWW-Authenticate", of: answer) != nil) == (status == 401))
        #expect(sample.wasReset == (status == 200 ? ["hr"] : []))
        #expect(!text(answer).contains("s3cret"))
    }

    @Test(arguments: [nil, []] as [[UInt8]?])
    func anUnreadableTokenAdmitsNobody(token: [UInt8]?) throws {
        let sample = SampleSite(try sampleFacts(), token: token)
        for authorization in ["Bearer x", "Bearer \u{0}"] {
            #expect(
                sample.site().answer(request("POST", "/reset?identity=hr", authorization: authorization)).status == 503)
        }
        #expect(sample.wasReset.isEmpty)
    }

    @Test(arguments: ["/reset", "/reset?identity=", "/reset?name=hr", "/reset?identity=%4", "/reset?identity=%FF"])
    func aResetNamesItsIdentity(target: String) throws {
        #expect(SampleSite(try sampleFacts()).site().answer(request("POST", target, .socket)).status == 400)
    }

    @Test func anUnknownNameIsToldTheKnownOnes() throws {
        let answer = SampleSite(try sampleFacts()).site().answer(request("POST", "/reset?identity=hrr", .socket))
        #expect(answer.status == 404)
        #expect(try outcome(answer).identities == ["hr", "billing", "reports", "tv", "payroll", "archive", "search"])
    }

    @Test(arguments: ["GET", "HEAD", "PUT", "DELETE"])
    func aResetIsAPost(method: String) throws {
        let sample = SampleSite(try sampleFacts())
        let answer = sample.site().answer(request(method, "/reset?identity=hr", .socket))
        #expect(answer.status == 405)
        #expect(field("Allow", of: answer) == "POST")
        #expect(sample.wasReset.isEmpty)
    }

    @Test(
        arguments: [
            ("identity=a%20b", "a b"), ("identity=a+b", "a b"), ("x=1&identity=%C3%BC&identity=z", "ü"),
            ("identity", ""), ("", nil),
            ("identity=%", nil), ("identity=%zz", nil), ("Identity=a", nil), ("%69dentity=a%26b%3Dc", "a&b=c"),
            ("identity=a=b", "a=b"),
        ] as [(String, String?)])
    func readsQueries(query: String, value: String?) {
        #expect(queryValue("identity", in: query) == value)
    }

    @Test(arguments: [
        ("a", "a", true), ("a", "b", false), ("", "a", false), ("a", "", false), ("", "", false), ("ab", "a", false),
        ("aa", "a", false),
    ])
    func comparesTokens(received: String, expected: String, isEqual: Bool) {
        #expect(AdminToken.isEqual(Array(received.utf8), Array(expected.utf8)) == isEqual)
    }

    @Test func aStoreTaskIsStartedOnceAndFollowed() throws {
        let site = SampleSite(try sampleFacts()).site()
        #expect(site.answer(request("GET", "/store", .socket)).status == 404)
        #expect(site.answer(request("GET", "/store/rotate", .socket)).status == 405)
        #expect(site.answer(request("POST", "/store/rotate", .listen)).status == 401)
        let started = site.answer(request("POST", "/store/rotate", .socket))
        #expect(started.status == 202)
        #expect(site.answer(request("POST", "/store/verify", .socket)).status == 409)
        let followed = site.answer(request("GET", "/store", .socket))
        #expect(followed.status == 200 && followed.body == started.body)
        #expect(text(followed).contains(#""is_done":false"#) && text(followed).contains(#""task":"rotate""#))
    }

    @Test func theLastRunIsToldByName() throws {
        let site = SampleSite(try sampleFacts()).site()
        let answer = site.answer(request("GET", "/run?identity=hr"))
        #expect(answer.status == 200)
        let text = String(decoding: answer.body, as: UTF8.self)
        #expect(text.contains(#""taken":[{"bytes":33,"name":"user"}]"#))
        #expect(text.contains(#""milliseconds":12.345"#))
        #expect(
            String(decoding: site.answer(request("GET", "/run?identity=x")).body, as: UTF8.self)
                == "{\"identity\":\"x\"}\n")
        #expect(site.answer(request("GET", "/run")).status == 400)
        #expect(site.answer(request("POST", "/run?identity=hr")).status == 405)
    }

    @Test func theLastFailuresAreToldByRoute() throws {
        let site = SampleSite(try sampleFacts()).site()
        func document(_ target: String) throws -> FailuresDocument {
            let answer = site.answer(request("GET", target))
            #expect(answer.status == 200)
            return try #require(FailuresDocument(parsing: String(decoding: answer.body, as: UTF8.self)))
        }
        let all = try document("/failures")
        #expect(all.since == "2023-11-14T22:13:20.000Z" && all.sinceSeconds == 60)
        #expect(all.routes.map(\.route) == ["hr", "gone"] && all.routes.map(\.identity) == ["hr", nil])
        let one = try document("/failures?route=hr")
        #expect(one.routes == [all.routes[0]])
        let kind = one.routes[0].kinds[0]
        #expect((kind.firstSecondsAgo, kind.lastSecondsAgo) == (59, 5) && kind.count == 7)
        #expect(
            kind.title == "The credential is not sent again"
                && kind.read == "docs/how-to/incident.md#identity-quarantined")
        #expect(one.routes[0].kinds[1].title == "The upstream's own answer" && one.routes[0].kinds[1].read == nil)
        // A route without a failure, one that is no longer configured, and one that never was.
        #expect(try document("/failures?route=plain").routes == [])
        #expect(try document("/failures?route=gone").routes[0].kinds[0].title == "The caller left")
        #expect(site.answer(request("GET", "/failures?route=x")).status == 404)
        #expect(site.answer(request("POST", "/failures")).status == 405)
        // It names routes and addresses: where the page needs the token, so does this.
        let closed = SampleSite(try sampleFacts(), token: Array("the-admins-token".utf8)).site(isOpenToRead: false)
        #expect(closed.answer(request("GET", "/failures")).status == 401)
        #expect(closed.answer(request("GET", "/failures", .socket)).status == 200)
        #expect(closed.answer(request("GET", "/failures", .metrics)).status == 404)
    }
}
