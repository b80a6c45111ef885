import Gateway
import Testing

@testable import Admin
@testable import DataPath
@testable import Keeping

@Suite struct LoginSiteTests {
    let site: SampleSite

    init() throws { site = SampleSite(try sampleFacts(), token: Array("page-token".utf8)) }

    private func answer(_ method: String, _ target: String, _ entrance: AdminRequest.Entrance = .socket) -> AdminAnswer
    {
        site.site().answer(request(method, target, entrance, authorization: "Bearer page-token"))
    }

    private func text(_ answer: AdminAnswer) -> String { String(decoding: answer.body, as: UTF8.self) }

    @Test func oneThatWasBegunIsTold() throws {
        let begun = answer("POST", "/login?identity=tv&port=8765")
        #expect(begun.status == 202)
        let told = try #require(LoginDocument(parsing: text(begun)))
        #expect(told.progress == "at port 8765")
        #expect(told.prompt?.completeUrl == "https://idp.example.com/device?c=ABCD")
        #expect(!told.isOver)
        #expect(LoginDocument(parsing: text(answer("GET", "/login?flow=f1"))) != nil)
        #expect(text(answer("POST", "/login/cancel?flow=f1")).contains("cancelled"))
    }

    @Test func aPortIsANumberOrNone() throws {
        let told = try #require(LoginDocument(parsing: text(answer("POST", "/login?identity=tv&port=70000"))))
        #expect(told.progress == nil)
    }

    @Test func onlyTheSocketMayLogIn() {
        for path in [
            "/login?identity=tv", "/logout?identity=tv", "/login/redirect?flow=f1&answer=code", "/login/cancel?flow=f1",
        ] {
            #expect(answer("POST", path, .listen).status == 403)
            #expect(answer("POST", path, .probes).status == 404)
        }
        #expect(answer("GET", "/login?flow=f1", .listen).status == 403)
    }

    @Test func whatCannotBeBegunIsRefused() {
        #expect(answer("POST", "/login?identity=hr").status == 409)
        #expect(refusal(in: text(answer("POST", "/login?identity=hr"))) == "identity hr needs no person")
        #expect(answer("POST", "/logout?identity=hr").status == 404)
        #expect(answer("POST", "/login").status == 400)
        #expect(answer("GET", "/login?flow=f2").status == 404)
        #expect(answer("DELETE", "/login?flow=f1").status == 405)
    }

    @Test func anAnswerArrivesAsItWasReceived() throws {
        let reply = answer("POST", "/login/redirect?flow=f1&answer=code%3Da%252Bb%26state%3Ds")
        let told = try #require(RedirectReply(parsing: text(reply)))
        #expect(told == RedirectReply(isAnswer: true, text: "code=a%2Bb&state=s"))
    }
}
