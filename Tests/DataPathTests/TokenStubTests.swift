import Glibc
import HTTP2
import Reactor
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// Token requests of callers that insist on one: a placeholder is the answer, or the error that RFC 6749 has for the request.
@Suite struct TokenStubTests {
    private static let form = "application/x-www-form-urlencoded"
    private static let grant = "grant_type=client_credentials"

    private static func plan(_ stub: String = "{lifetime: 90s}", _ top: String = "") -> String {
        "routes: [{listen: \"127.0.0.1:8080\", match: {path: /oauth/token}, token_stub: \(stub)}]\n\(top)"
    }

    private static func head(
        _ fields: String = "", method: String = "POST", version: String = "1.1", type: String? = form
    ) -> String {
        "\(method) /oauth/token HTTP/\(version)\r\nHost: localhost\r\n"
            + (type.map { "Content-Type: \($0)\r\n" } ?? "") + fields + "\r\n"
    }

    private static func request(_ body: String, _ fields: String = "", type: String? = form) -> String {
        head(fields + "Content-Length: \(body.utf8.count)\r\n", type: type) + body
    }

    /// The whole answer to a token request.
    private static func answer(_ status: String, _ body: String, lines: String = "", writtenBody: Bool = true) -> String
    {
        "HTTP/1.1 \(status)\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n"
            + "Cache-Control: no-store\r\nPragma: no-cache\r\n\(lines)\r\n" + (writtenBody ? body : "")
    }

    private static let token =
        "{\"access_token\":\"cardea-placeholder-admits-nobody\",\"token_type\":\"Bearer\",\"expires_in\":90}\n"

    private static func error(_ code: String, _ reason: String) -> String {
        "{\"error\":\"\(code)\",\"error_description\":\"\(reason)\"}\n"
    }
    private static let unsupported = error("unsupported_grant_type", "this grant is not answered here")
    private static let invalid = error("invalid_request", "the form needs one grant_type")
    private static let noForm = error("invalid_request", "a token request is application/x-www-form-urlencoded")

    // MARK: - Answers

    /// RFC 6749 section 5.1, on a connection that goes on.
    @Test func aTokenRequestIsAnsweredWithThePlaceholder() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Self.request("client_secret=s3cret&" + Self.grant) + Self.request(Self.grant))
        #expect(caller.takeText() == Self.answer("200 OK", Self.token) + Self.answer("200 OK", Self.token))
        #expect(!caller.isClosed && scene.upstreams.isEmpty && scene.keeper.reports.isEmpty)
        scene.end()
    }

    /// RFC 8693 section 2.2.1 has one member more.
    @Test func anExchangeIsToldTheTypeOfItsToken() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Self.request("grant_type=urn:ietf:params:oauth:grant-type:token-exchange"))
        let member = ",\"issued_token_type\":\"urn:ietf:params:oauth:token-type:access_token\"}\n"
        #expect(caller.takeText() == Self.answer("200 OK", Self.token.dropLast(2) + member))
        scene.end()
    }

    @Test(arguments: [
        ("{}", "grant_type=authorization_code&code=x", unsupported),
        ("{grants: [password]}", grant, unsupported), ("{}", "scope=read", invalid), ("{}", "", invalid),
        ("{}", "grant_type=password&grant_type=password", invalid),
    ])
    func aFormThatIsNotAnsweredIsToldWhy(stub: String, body: String, expected: String) throws {
        let scene = try Scene(Self.plan(stub))
        let caller = scene.call(Self.request(body) + Self.request("grant_type=password"))
        let text = caller.takeText()
        let refusal = Self.answer("400 Bad Request", expected)
        // The connection is whole behind a refusal, and the next request of it is served.
        #expect(text.hasPrefix(refusal + "HTTP/1.1 200 OK\r\n") && text.hasSuffix(",\"expires_in\":3600}\n"))
        scene.end()
    }

    @Test(arguments: [nil, "application/json", "application/x-www-form-urlencode", "text/plain; a=\(form)"])
    func aRequestThatAnnouncesNoFormIsInvalid(type: String?) throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Self.request(Self.grant, type: type))
        #expect(caller.takeText() == Self.answer("400 Bad Request", Self.noForm, lines: "Connection: close\r\n"))
        scene.end()
    }

    /// RFC 9110 section 8.3.1: parameters, blanks and case make no other type.
    @Test(arguments: ["Application/X-WWW-Form-URLEncoded", "\(form); charset=utf-8", "\(form) ;a=b"])
    func aFormMayBeAnnouncedInOtherSpellings(type: String) throws {
        let scene = try Scene(Self.plan())
        #expect(scene.call(Self.request(Self.grant, type: type)).takeText() == Self.answer("200 OK", Self.token))
        scene.end()
    }

    @Test func aMethodThatIsNoPostIsToldTheMethodsThatAre() throws {
        let scene = try Scene(Self.plan())
        let allow = "Allow: POST, OPTIONS\r\n"
        let refusal = Self.error("invalid_request", "a token request is a POST")
        let status = "405 Method Not Allowed"
        #expect(scene.call(Self.head(method: "OPTIONS")).takeText() == Self.answer("200 OK", "", lines: allow))
        #expect(scene.call(Self.head(method: "GET")).takeText() == Self.answer(status, refusal, lines: allow))
        // The answer to a HEAD tells the length of a body that is not sent.
        #expect(
            scene.call(Self.head(method: "HEAD")).takeText()
                == Self.answer(status, refusal, lines: allow, writtenBody: false))
        scene.end()
    }

    @Test(arguments: [("1.1", "Connection: close\r\n"), ("1.0", "")])
    func aCallerThatAsksForTheEndGetsItBehindItsToken(version: String, fields: String) throws {
        let scene = try Scene(Self.plan())
        let length = "Content-Length: \(Self.grant.utf8.count)\r\n"
        let caller = scene.call(Self.head(fields + length, version: version) + Self.grant)
        #expect(caller.takeText() == Self.answer("200 OK", Self.token, lines: "Connection: close\r\n"))
        #expect(caller.sawEnd)
        scene.end()
    }

    // MARK: - Bodies

    /// The line of a chunk may come in part, and more often than once.
    @Test(arguments: [1, 7, 1 << 20])
    func aFormInChunksIsReadWhateverItsPieces(piece: Int) throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Self.head("Transfer-Encoding: chunked\r\n"))
        caller.mostPerRead = piece
        caller.send("7\r\ngrant_t\r\n")
        scene.settle()
        #expect(caller.receivedCount == 0)
        caller.send("16;x=\"y\"\r\nype=client_credentials\r\n0\r\nX-T: 1\r\n\r\n" + Self.request(Self.grant))
        scene.settle()
        #expect(caller.takeText() == Self.answer("200 OK", Self.token) + Self.answer("200 OK", Self.token))
        scene.end()
    }

    @Test func aFormBehindAHeadThatFillsItsBlockIsRead() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call()
        caller.send(Self.wholeBlock("Content-Length: \(Self.grant.utf8.count)\r\n"))
        scene.settle()
        caller.send(Self.grant)
        scene.settle()
        #expect(caller.takeText() == Self.answer("200 OK", Self.token))
        scene.end()
    }

    /// A head of exactly as many octets as a block has.
    private static func wholeBlock(_ fields: String) -> String {
        let bare = head("X-Fill: \r\n" + fields)
        return head("X-Fill: \(String(repeating: "f", count: 16_384 - bare.utf8.count))\r\n" + fields)
    }

    /// 64 KiB are read of a form. What its head announces is judged before a single octet of it is.
    @Test func aFormThatIsTooLongIsRefused() throws {
        let scene = try Scene(Self.plan())
        for (length, status) in [(65_536, 200), (65_537, 413)] {
            let body = Self.grant + "&x=" + String(repeating: "y", count: length - Self.grant.utf8.count - 3)
            #expect(scene.call(Self.request(body)).status == status)
            let chunk = "\(String(length, radix: 16))\r\n\(body)\r\n0\r\n\r\n"
            let caller = scene.call(Self.head("Transfer-Encoding: chunked\r\n") + chunk)
            #expect(caller.status == status && caller.sawEnd == (status == 413), "\(length)")
        }
        let announced = scene.call(Self.head("Content-Length: 65537\r\n"))
        #expect(announced.status == 413 && announced.receivedText.contains("problems/big-body"))
        scene.end()
    }

    @Test(arguments: ["zz\r\n", "3\r\nabcd\r\n"])
    func aFormInBrokenChunksIsMalformed(body: String) throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Self.head("Transfer-Encoding: chunked\r\n") + body + Self.grant)
        #expect(caller.status == 400 && caller.receivedText.contains("problems/malformed-request") && caller.sawEnd)
        scene.end()
    }

    @Test func aFormThatEndsEarlyIsIncomplete() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(String(Self.request(Self.grant).dropLast()))
        #expect(caller.receivedCount == 0)
        caller.finish()
        scene.settle()
        #expect(caller.status == 400 && caller.receivedText.contains("problems/incomplete-body"))
        scene.end()
    }

    /// A form has the time of a head for all of it, however it trickles.
    @Test func aFormHasOneDeadline() throws {
        let scene = try Scene(Self.plan("{}", "limits: {head_timeout: 4s}\n"))
        let caller = scene.call(Self.head("Content-Length: 100\r\n"))
        for _ in 0..<3 {
            scene.pass(seconds: 1.2)
            caller.send("a=b&")
            scene.settle()
        }
        #expect(caller.receivedCount == 0)
        scene.pass(seconds: 1)
        #expect(caller.status == 408 && caller.receivedText.contains("problems/slow-body"))
        scene.end()
    }

    // MARK: - Expectations and memory

    @Test func aCallerThatWaitsForTheWordIsToldToContinue() throws {
        let scene = try Scene(Self.plan())
        let length = "Content-Length: \(Self.grant.utf8.count)\r\n"
        let caller = scene.call(Self.head("Expect: 100-continue\r\n" + length))
        #expect(caller.takeText() == "HTTP/1.1 100 Continue\r\n\r\n")
        caller.send(Self.grant)
        scene.settle()
        #expect(caller.takeText() == Self.answer("200 OK", Self.token))
        // Nothing to continue with, and a body that came without waiting: the word would be one too many.
        caller.send(Self.head("Expect: 100-continue\r\nContent-Length: 0\r\n"))
        scene.settle()
        #expect(caller.takeText() == Self.answer("400 Bad Request", Self.invalid))
        caller.send(Self.request(Self.grant, "Expect: 100-continue\r\n"))
        scene.settle()
        #expect(caller.takeText() == Self.answer("200 OK", Self.token))
        scene.end()
    }

    @Test func aCallerThatCannotBeToldToContinueIsGone() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call()
        caller.failWrites([EPIPE])
        caller.send(Self.head("Expect: 100-continue\r\nContent-Length: 9\r\n"))
        scene.settle()
        #expect(caller.isClosed && caller.receivedCount == 0)
        scene.end()
    }

    @Test func aFormThatFindsNoMemoryIsRefusedForAWhile() throws {
        let scene = try Scene(Self.plan("{}", "limits: {replay_memory: 1MiB}\n"))
        let taken = try #require(scene.data.buffers.takeLarge(1 << 20, for: .input))
        let caller = scene.call(Self.wholeBlock("Content-Length: 9\r\n"))
        #expect(caller.status == 503 && caller.receivedText.contains("\r\nRetry-After: 1\r\n"))
        #expect(caller.receivedText.contains("problems/out-of-buffers"))
        scene.data.buffers.give(taken)
        scene.end()
    }

    /// Blocks are used again, and a form holds its caller's secrets: they go as they are read, and with a refusal.
    @Test(arguments: ["", "zz\r\n"])
    func nothingOfAFormStaysInMemory(rest: String) throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Self.head("Transfer-Encoding: chunked\r\n") + "d\r\npass=s3cret&&\r\n")
        let block = try #require(scene.data.callers.members.first?.block)
        func holds(_ text: String) -> Bool { Array(block).firstRange(of: Array(text.utf8)) != nil }
        #expect(holds("POST /oauth/token") && !holds("s3cret") && !holds("pass="))
        guard !rest.isEmpty else { return scene.end() }
        caller.send(rest + "pass=s3cret")
        scene.settle()
        #expect(caller.status == 400 && !holds("s3cret") && !holds("pass="))
        scene.end()
    }

    /// The caller has not heard yet that its form is too long, and goes on with it.
    @Test func nothingThatComesBehindARefusedFormStaysInMemory() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Self.head("Content-Length: 65537\r\n"))
        let block = try #require(scene.data.callers.members.first?.block)
        #expect(caller.status == 413)
        caller.send("client_secret=s3cret")
        scene.settle()
        #expect(Array(block).firstRange(of: Array("s3cret".utf8)) == nil)
        scene.end()
    }

    // MARK: - HTTP/2

    /// The end of a body is told beside it, and may come on its own.
    @Test func aFormOnAStreamIsRead() throws {
        let scene = try Scene(Self.plan())
        let caller = try StreamCaller(scene)
        let stream = try caller.ask(Self.head(), ended: false)
        caller.write("grant_type=client_", on: stream)
        caller.write("credentials", on: stream)
        #expect(caller.read(stream) == "")
        caller.end(stream)
        let answer = caller.read(stream)
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n") && answer.hasSuffix("\r\n\r\n" + Self.token))
        #expect(answer.lowercased().contains("cache-control: no-store\r\n"))
        stream.cancel()
        let bare = try caller.ask(Self.head())
        #expect(caller.read(bare).hasSuffix("\r\n\r\n" + Self.invalid))
        bare.cancel()
        caller.settle()
        caller.peer.reset()
        scene.end()
    }

    @Test func aStreamThatIsResetLeavesNothingOfItsForm() throws {
        let scene = try Scene(Self.plan())
        let caller = try StreamCaller(scene)
        let stream = try caller.ask(Self.head(), ended: false)
        caller.write("grant_type=", on: stream)
        stream.cancel()
        caller.settle()
        // The stream's place and memory are free again, and the connection goes on.
        #expect(scene.data.exchanges.lent == 0)
        let next = try caller.ask(Self.head(method: "OPTIONS", type: nil))
        #expect(caller.read(next).hasPrefix("HTTP/1.1 200 OK\r\n"))
        next.cancel()
        caller.settle()
        caller.peer.reset()
        scene.end()
    }
}
