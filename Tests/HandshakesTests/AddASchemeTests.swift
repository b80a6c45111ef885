import Configuration
import FoundationEssentials
import Octets
import Testing

@testable import Handshakes

/// `desk`: a ticket that a desk gives for a password.
struct DeskScheme: Scheme {
    static let key = KeySpec(block)

    private static let block = Block(
        name: "desk", description: "A ticket that a desk gives for a password.",
        keys: [
            KeySpec("url", .text(.httpURL), "Where the desk is.", required: true),
            KeySpec("user", .text(.line), "Who asks for a ticket.", required: true),
            KeySpec("password", .secret, "What the desk wants to hear.", required: true),
            // It is the same ticket, whichever counter is asked.
            KeySpec("counter", .integer(1...9), "The counter that is asked.", default: "1", digest: .nothing),
        ])

    private let url: IssuerURL
    private let user: String
    private let counter: Int

    init(_ keys: BlockReader, of identity: SchemeOwner) {
        url = keys.url("url")
        user = keys.line("user")
        counter = keys.integer("counter") ?? 1
        keys.checkURL("url", of: identity.network, allowsQuery: false)
        if user == "nobody" { keys.refuse("user", "must be somebody") }
    }

    var sendsPassword: Bool { true }

    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> any Handshake {
        try url.requireReadable("url")
        return DeskHandshake(url: url, user: user, counter: counter)
    }

    func traits(of identity: Identity) -> SchemeTraits {
        SchemeTraits(.proactive, user: user, at: url)
    }
}

struct DeskHandshake: Handshake {
    let url: IssuerURL
    let user: String
    let counter: Int

    var scheme: String { "desk" }

    func injection(for token: [UInt8]) -> InjectedField { InjectedField(name: "X-Ticket", value: token) }

    func acquire(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        var grant: AccessGrant?
        // Steps of one account take turns, so that two flights never try one password at once.
        _ = try await environment.session(SessionClaim(isOwn: true)) { _, _ throws(GrantFailure) -> LayerMaterial in
            let ticket = try await ticket(environment)
            grant = ticket
            return LayerMaterial(bytes: Secret([]), obtainedAt: ticket.sentAt, lifetime: nil)
        }
        guard let grant else { throw .internal(reason: "no step was made") }
        return grant
    }

    /// Secret, mark, send, settle: a refused password is never sent again (docs/design/tokens.md#rule-5).
    private func ticket(_ environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        let password = try await environment.text("password")
        var form = FormBody(capacity: 64 + 3 * (user.utf8.count + password.count))
        form.member("user", user)
        form.member("password", password)
        var call = IssuerCall(
            step: "ticket", method: "POST", url: url,
            headers: [("Content-Type", "application/x-www-form-urlencoded"), ("Counter", "\(counter)")],
            body: form.finish(), carriesPassword: true)
        defer { call.body.wipe() }
        try await environment.spendAttempt(user: user)
        let answer: IssuerAnswer
        do throws(IssuerFault) { answer = try await environment.send(call) } catch {
            await environment.settleAttempt(error.provablyUnsent ? .notSent : .unknown)
            throw GrantFailure(error, step: call.step)
        }
        switch (answer.status, answer.header("Desk-Error")) {
        case (200, _): await environment.settleAttempt(.accepted)
        // The desk's own word refuses. A bare 403 may be a proxy's page, behind which the password was judged or not.
        case (403, "wrong password"?):
            await environment.settleAttempt(.rejected)
            throw .credentialRejected(reason: "ticket: wrong password")
        case (429, _), (500..., _):
            await environment.settleAttempt(.notSent)
            throw answer.unavailable("ticket: status \(answer.status)")
        default:
            await environment.settleAttempt(.unknown)
            throw .issuerAnswerInvalid(reason: "ticket: status \(answer.status)")
        }
        let ticket = Secret(answer.body)
        guard TokenAlphabet.fieldValue.admits(ticket) else {
            throw .issuerAnswerInvalid(reason: "ticket: not fit for a header")
        }
        return AccessGrant(token: ticket, tokenType: "", lifetime: nil, sentAt: answer.sentAt)
    }
}

/// The example of docs/design/add-a-scheme.md, which shows parts of this file.
@Suite struct AddASchemeTests {
    @Test func theExampleWorks() async throws {
        let text = """
            identities: {a: {desk: {url: "https://desk.example.com/tickets", user: anna, password: file:/p}}}
            routes: [{listen: "127.0.0.1:1", to: "https://u.example.com", use: a}]
            """
        let loaded = Configuration.load(.text(text), schemes: [DeskScheme.self]) { _ in nil }
        let identity = try #require(loaded.configuration?.identities.first, "\(loaded.errors)")
        let scheme = try #require(identity.scheme as? DeskScheme)
        #expect(scheme.traits(of: identity).kind == .proactive)
        let issuer = ScriptedIssuer([.ok("row-1")])
        let handshake = try scheme.handshake(of: identity, statuses: nil, GrantWorld())
        let environment = MemoryEnvironment(password: "opensesame")
        let grant = try await handshake.acquire(
            Wanted(upstreamOrigin: "https://u"), environment: environment.over(issuer))
        #expect(handshake.injection(for: bytes(grant.token.text)).value == bytes("row-1"))
        #expect(issuer.sent.map(\.body) == ["user=anna&password=opensesame"] && environment.outcomes == [.accepted])
        let nobody = Configuration.load(.text(text.replacing("anna", with: "nobody")), schemes: [DeskScheme.self]) {
            _ in nil
        }
        #expect(nobody.errors.map(\.message) == ["'user' of identity 'a' (desk) must be somebody"])
    }

    @Test(arguments: [
        (ScriptedIssuer.Line.answer(403, "", [("Desk-Error", "wrong password")]), "rejected", AttemptOutcome.rejected),
        (.status(403, "<html>"), "invalid", .unknown), (.status(503), "unavailable", .notSent),
        (.fault(IssuerFault(.refused, provablyUnsent: true)), "unavailable", .notSent),
        (.fault(IssuerFault(.closed, provablyUnsent: false)), "unavailable", .unknown),
        (.ok("a\r\nb"), "invalid", .accepted),
    ])
    func theExampleSettlesItsAttempts(line: ScriptedIssuer.Line, kind: String, outcome: AttemptOutcome) async throws {
        let url = try #require(IssuerURL("https://desk.example.com/tickets"))
        let environment = MemoryEnvironment(password: "opensesame").over(ScriptedIssuer([line]))
        let fault = await failure {
            _ = try await DeskHandshake(url: url, user: "anna", counter: 1).acquire(
                Wanted(upstreamOrigin: "https://u"), environment: environment)
        }
        #expect(fault?.kind == kind && environment.outcomes == [outcome] && environment.isBalanced)
    }

    private static let root = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined()

    @Test func noOtherModuleNamesAScheme() throws {
        let known = [
            // `oauth` and the like are told what they are called here.
            "Configuration/Schema/KeysRoute.swift": ["oauth2", "client_certificate", "static"],
            // A start without a file is `oauth2`.
            "Configuration/Syntax/ConfigurationSource.swift": ["oauth2"],
            // The schemes of HTTP (RFC 7617, RFC 7616, RFC 4559) have the same names; a proxy on the way asks for them, too.
            "HTTP1/Credentials/BoundCredential.swift": ["negotiate", "ntlm"],
            "Configuration/Schema/KeysIdentity.swift": ["digest", "negotiate", "ntlm"],
            "Configuration/Decoder/TreeDecoderProxy.swift": ["digest", "negotiate", "ntlm"],
            "Configuration/Model/ModelNTLM.swift": ["negotiate", "ntlm"],
            "DataPath/Callers/CallerConnection+Token.swift": ["basic"], "Admin/Site/AdminToken.swift": ["basic"],
            "HTTP1/Credentials/ConfinedPlaceholders.swift": ["basic"],
            // A field of the log, and part of what threads and channels are called: the program that runs, or that is confined.
            "Gateway/Platform/Platform.swift": ["program"], "Reactor/Process/Confinement.swift": ["program"],
            "Configuration/Secrets/ProgramEnclosure.swift": ["program"],
            "cardea-reference/Tables/EventWords.swift": ["program"], "cardea/Service/Service.swift": ["program"],
            "cardea/Service/Upgrade.swift": ["program"],
        ]
        let folder = Self.root + "/Sources"
        var files = 0
        for file in try FileManager.default.subpathsOfDirectory(atPath: folder).sorted() where file.hasSuffix(".swift")
        {
            guard !file.hasPrefix("Handshakes/"), !file.hasPrefix("cardea-lab/") else { continue }
            let text = try String(contentsOfFile: folder + "/" + file, encoding: .utf8)
            let named = Trial.schemes.filter { text.contains("\"\($0)\"") }
            #expect(Set(named).isSubset(of: known[file] ?? []), "\(file): \(named)")
            files += 1
        }
        #expect(files > 300)
    }

    @Test func thePageShowsWhatIsTestedHere() throws {
        let page = try String(contentsOfFile: Self.root + "/docs/design/add-a-scheme.md", encoding: .utf8)
        let source = try String(contentsOfFile: #filePath, encoding: .utf8)
        let blocks = page.split(separator: "```swift\n").dropFirst().compactMap { $0.split(separator: "```").first }
        #expect(blocks.count == 5)
        for block in blocks { #expect(source.contains(block), "\(block)") }
    }
}
