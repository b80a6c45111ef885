import Octets
import Synchronization
import TLS
import Testing

@testable import Handshakes

/// A person who does what a script says, in no time at all.
final class ScriptedPerson: LoginDialogue {
    let redirectPort: UInt16?
    private let answers: @Sendable (_ url: String) -> [String]
    private let state = Mutex<(prompts: [LoginPrompt], pauses: [UInt64], refusals: [String], words: [String])>(
        ([], [], [], []))

    init(redirectPort: UInt16? = 8765, answers: @escaping @Sendable (_ url: String) -> [String] = { _ in [] }) {
        self.redirectPort = redirectPort
        self.answers = answers
    }

    var prompts: [LoginPrompt] { state.withLock { $0.prompts } }
    /// Seconds.
    var pauses: [UInt64] { state.withLock { $0.pauses.map { $0 / 1_000_000_000 } } }
    var refusals: [String] { state.withLock { $0.refusals } }
    /// What it was told to wait for.
    var words: [String] { state.withLock { $0.words } }

    func show(_ prompt: LoginPrompt) async { state.withLock { $0.prompts.append(prompt) } }
    func progress(_ text: String) async { state.withLock { $0.words.append(text) } }
    func pause(_ nanoseconds: UInt64) async throws(GrantFailure) {
        state.withLock { $0.pauses.append(nanoseconds) }
    }

    func redirected(
        within patience: UInt64, judge: @escaping @Sendable (String) -> RedirectVerdict
    ) async throws(GrantFailure) -> Secret {
        for query in answers(prompts.last?.url ?? "") {
            switch judge(query) {
            case .accepted(let code): return code
            case .failed(let failure): throw failure
            case .refused(let reason): state.withLock { $0.refusals.append(reason) }
            }
        }
        throw .loginExpired
    }
}

/// The value of a query's member.
private func member(_ name: String, of url: String) -> String {
    let query = url.split(separator: "?", maxSplits: 1).last ?? ""
    for pair in query.split(separator: "&") where pair.hasPrefix(name + "=") {
        return String(pair.dropFirst(name.count + 1))
    }
    return ""
}

@Suite struct OAuth2LoginTests {
    static let token = #"{"access_token":"a","token_type":"Bearer","expires_in":60,"refresh_token":"r 1"}"#

    private func handshake(
        _ grant: OAuth2Settings.Grant, _ change: (inout OAuth2Settings) -> Void = { _ in }
    ) throws -> OAuth2Handshake {
        var settings = OAuth2Settings(
            .tokenURL(try #require(IssuerURL("https://idp.example.com/token"))), clientID: "c 1")
        settings.clientAuth = .none
        settings.grant = grant
        settings.authorizationURL = IssuerURL("https://idp.example.com/authorize?tenant=blue")
        settings.deviceAuthorizationURL = IssuerURL("https://idp.example.com/device")
        change(&settings)
        return try OAuth2Handshake(settings)
    }

    private func run(
        _ handshake: OAuth2Handshake, _ person: ScriptedPerson, _ issuer: ScriptedIssuer, scopes: [String] = ["read"]
    ) async throws -> LoginGrant {
        try await handshake.login(
            Wanted(scopes: scopes, upstreamOrigin: ""), dialogue: person, environment: MemoryEnvironment().over(issuer))
    }

    // MARK: - Authorization code

    @Test func `a code is exchanged with what proves that it was ours`() async throws {
        let issuer = ScriptedIssuer([.ok(Self.token)])
        let person = ScriptedPerson { ["state=\(member("state", of: $0))&code=x%2By"] }
        let grant = try await run(handshake(.authorizationCode), person, issuer)
        #expect(grant.material.isHuman && grant.material.refreshToken == Secret("r 1") && grant.remark == nil)
        let url = try #require(person.prompts.first?.url)
        #expect(url.hasPrefix("https://idp.example.com/authorize?tenant=blue&response_type=code&client_id=c+1&"))
        #expect(member("redirect_uri", of: url) == "http%3A%2F%2F127.0.0.1%3A8765%2Fcallback")
        #expect(member("scope", of: url) == "read" && member("nonce", of: url) == "")
        let body = issuer.sent[0].body
        #expect(
            body.hasPrefix(
                "grant_type=authorization_code&code=x%2By&redirect_uri=http%3A%2F%2F127.0.0.1%3A8765%2Fcallback&"))
        let verifier = member("code_verifier", of: "?" + body)
        #expect(verifier.utf8.count == 43)
        #expect(member("code_challenge", of: url) == Base64.encodeURL(sha256(Array(verifier.utf8))))
        #expect(issuer.sent[0].carriesPassword)
    }

    @Test func `no two logins have anything in common`() async throws {
        var seen: Set<String> = []
        for _ in 0..<3 {
            let person = ScriptedPerson { _ in [] }
            _ = try? await run(handshake(.authorizationCode), person, ScriptedIssuer([]), scopes: ["openid"])
            let url = try #require(person.prompts.first?.url)
            for name in ["state", "nonce", "code_challenge"] { seen.insert(member(name, of: url)) }
        }
        #expect(seen.count == 9)
    }

    @Test(arguments: [
        "", "&", "code=x", "code=x&state=guessed", "error=access_denied", "code=x&state=STATE&state=STATE",
        "code=x%0d%0a&state=STATE", "code=x%00&state=STATE", "code=%C3%A9&state=STATE", "code=%4&state=STATE",
        "code=%zz&state=STATE",
        "state=STAT", "code=x&State=STATE",
    ]) func `what is not the answer is refused and changes nothing`(_ query: String) async throws {
        let person = ScriptedPerson { url in
            let state = member("state", of: url)
            return [query.replacing("STATE", with: state), "code=good&state=\(state)"]
        }
        let issuer = ScriptedIssuer([.ok(Self.token)])
        _ = try await run(handshake(.authorizationCode), person, issuer)
        #expect(person.refusals.count == 1)
        #expect(issuer.sent[0].body.contains("code=good"))
    }

    @Test(arguments: [
        ("error=access_denied&state=STATE", "denied"), ("error=server_error&state=STATE", "configuration"),
        ("error=%22evil%22&state=STATE", "configuration"), ("state=STATE", "invalid"), ("code=&state=STATE", "invalid"),
    ]) func `an answer that ends it`(_ query: String, _ kind: String) async throws {
        let person = ScriptedPerson { [query.replacing("STATE", with: member("state", of: $0))] }
        let issuer = ScriptedIssuer([])
        let failed = await failure { _ = try await run(handshake(.authorizationCode), person, issuer) }
        #expect(failed?.kind == kind)
        #expect(failed.map { !"\($0)".contains("evil") } == true)
        #expect(issuer.sent.isEmpty)
    }

    @Test(arguments: [
        (#"{"nonce":"NONCE","aud":"c 1"}"#, true), (#"{"nonce":"another","aud":"c 1"}"#, false),
        (#"{"aud":"c 1"}"#, false),
        (#"{"nonce":"NONCE","aud":"another"}"#, false), ("no JSON", false),
    ]) func `an id_token belongs to this login`(_ claims: String, _ isGood: Bool) async throws {
        let issuer = LateIssuer()
        let person = ScriptedPerson { url in
            let payload = Base64.encodeURL(Array(claims.replacing("NONCE", with: member("nonce", of: url)).utf8))
            issuer.body =
                #"{"access_token":"a","token_type":"Bearer","refresh_token":"r","id_token":"e30.\#(payload).s"}"#
            return ["state=\(member("state", of: url))&code=x"]
        }
        let failed = await failure {
            _ = try await handshake(.authorizationCode).login(
                Wanted(scopes: ["openid"], upstreamOrigin: ""), dialogue: person,
                environment: MemoryEnvironment().over(issuer)
            )
        }
        #expect((failed == nil) == isGood)
    }

    @Test func `where the browser comes back`() throws {
        #expect(try handshake(.deviceCode).redirect == nil)
        let plain = LoginRedirect(port: nil, path: "/callback", isLoopback: true)
        #expect(try handshake(.authorizationCode).redirect == plain)
        func redirect(_ text: String, hasPort: Bool) throws -> LoginRedirect? {
            try handshake(.authorizationCode) { settings in
                settings.redirectURI = IssuerURL(text)
                settings.redirectText = text
                settings.redirectHasPort = hasPort
            }.redirect
        }
        #expect(
            try redirect("http://localhost:8765/cb", hasPort: true)
                == LoginRedirect(port: 8765, path: "/cb", isLoopback: true))
        #expect(
            try redirect("http://127.0.0.1/cb", hasPort: false)
                == LoginRedirect(port: nil, path: "/cb", isLoopback: true))
        #expect(try redirect("https://tools.example.com/cb", hasPort: false)?.isLoopback == false)
        #expect(try redirect("https://127.0.0.1/cb", hasPort: false)?.isLoopback == false)
    }

    // MARK: - Device code

    static let offer = #"""
        {"device_code":"d 1","user_code":"WDJB-MJHT","verification_uri":"https://idp.example.com/d","expires_in":600,"interval":2}
        """#

    @Test func `the token endpoint is asked as often as it wants`() async throws {
        let issuer = ScriptedIssuer([
            .ok(Self.offer), .status(400, #"{"error":"authorization_pending"}"#),
            .status(400, #"{"error":"slow_down"}"#),
            .status(400, #"{"error":"authorization_pending"}"#), .fault(IssuerFault(.timedOut, provablyUnsent: false)),
            .status(503), .ok(Self.token),
        ])
        let person = ScriptedPerson()
        let grant = try await run(handshake(.deviceCode), person, issuer)
        #expect(grant.material.refreshToken == Secret("r 1"))
        #expect(person.pauses == [2, 2, 7, 7, 14, 28])
        #expect(person.prompts.map(\.code) == ["WDJB-MJHT"])
        let waits = "waiting for the code to be entered"
        #expect(
            person.words == [
                waits, waits, waits, "the issuer does not answer; asking again", "the issuer is busy; asking again",
            ])
        #expect(issuer.sent[0].body == "scope=read&client_id=c+1")
        #expect(
            issuer.sent[1].body
                == "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&device_code=d+1&client_id=c+1")
    }

    @Test(arguments: [
        ("expired_token", "timedOut"), ("access_denied", "denied"), ("invalid_grant", "configuration"),
        ("invalid_client", "rejected"),
    ]) func `words that end the asking`(_ word: String, _ kind: String) async throws {
        let issuer = ScriptedIssuer([.ok(Self.offer), .status(400, #"{"error":"\#(word)"}"#)])
        let failed = await failure { _ = try await run(handshake(.deviceCode), ScriptedPerson(), issuer) }
        #expect(failed?.kind == kind)
        #expect(issuer.sent.count == 2)
    }

    @Test(arguments: [
        (#""device_code":"d 1""#, #""device_code":7"#), (#""user_code":"WDJB-MJHT""#, #""user_code":"\u001b[2J""#),
        (#""user_code":"WDJB-MJHT""#, #""user_code":"""#), ("https://idp.example.com/d", "javascript:alert(1)"),
        ("https://idp.example.com/d", #"https://x/\u000aevil"#), (#""expires_in":600"#, #""expires_in":-1"#),
        (#""expires_in":600,"#, ""),
    ]) func `an offer that cannot be shown is none`(_ good: String, _ bad: String) async throws {
        let issuer = ScriptedIssuer([.ok(Self.offer.replacing(good, with: bad))])
        let person = ScriptedPerson()
        let failed = await failure { _ = try await run(handshake(.deviceCode), person, issuer) }
        #expect(failed?.kind == "invalid" && person.prompts.isEmpty)
    }

    @Test func `the pace is bounded`() {
        #expect(PollingPace(interval: 0).interval == 1_000_000_000)
        var pace = PollingPace(interval: .max)
        #expect(pace.interval == PollingPace.most)
        pace.slowDown()
        pace.lost()
        #expect(pace.interval == PollingPace.most)
    }

    // MARK: - What is kept

    @Test(
        arguments: [
            (#""refresh_expires_in":1800"#, 1800), (#""refresh_token_expires_in":"90""#, 90),
            (#""refresh_expires_in":0"#, nil),
            (#""refresh_expires_in":-5"#, nil), (#""refresh_token_expires_at":784111877"#, 100),
            (#""refresh_token_expires_at":784111000"#, nil), (#""refresh_token_expires_at":9223372036854775807"#, nil),
        ] as [(String, UInt64?)]) func `how long a refresh token lives`(_ member: String, _ seconds: UInt64?) throws
    {
        let body = #"{"access_token":"a","token_type":"Bearer","refresh_token":"r",\#(member)}"#
        let answer = OAuth2Answer(
            IssuerAnswer(
                status: 200, headers: [("Date", "Sun, 06 Nov 1994 08:49:37 GMT")], body: Array(body.utf8), sentAt: 5,
                overTLS: false))
        #expect(answer.refreshLife?.whole == seconds.map { $0 * 1_000_000_000 })
    }

    @Test func `without a session nothing is asked of the issuer`() async throws {
        let issuer = ScriptedIssuer([])
        let failed = await failure {
            _ = try await handshake(.deviceCode).acquire(
                Wanted(upstreamOrigin: ""), environment: MemoryEnvironment().over(issuer))
        }
        guard case .interactionRequired? = failed else {
            Issue.record("\(String(describing: failed))")
            return
        }
        #expect(issuer.sent.isEmpty)
    }
}

/// An issuer whose answer depends on what it was asked before.
private final class LateIssuer: IssuerClient {
    private let text = Mutex("")
    var body: String {
        get { text.withLock { $0 } }
        set { text.withLock { $0 = newValue } }
    }

    func send(_ call: IssuerCall) async throws(IssuerFault) -> IssuerAnswer {
        IssuerAnswer(status: 200, headers: [], body: Array(body.utf8), sentAt: 5, overTLS: true)
    }
}
