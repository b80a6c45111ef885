import Configuration
import HTTP1

@testable import Handshakes

private let webGate: OAMWebGateHandshake? = {
    guard let service = IssuerURL("https://oam.example.com/oic_rest/rest/s") else { return nil }
    var settings = OAMWebGateSettings(service: service, username: "u", clientID: "c", userAgentPrefix: "OIC")
    settings.contextSource = .auto
    return try? OAMWebGateHandshake(settings)
}()

private let oauth: OAuth2Handshake? = {
    guard let url = IssuerURL("https://idp.example.com/token") else { return nil }
    var settings = OAuth2Settings(.tokenURL(url), clientID: "c")
    settings.allowedScopes = ["a", "b"]
    return try? OAuth2Handshake(settings)
}()

private let digest: DigestHandshake? = {
    var settings = DigestSettings(username: "a \"quoted\" \u{fc}ser")
    settings.algorithms = DigestFunction.allCases
    settings.protections = DigestProtection.allCases
    return try? DigestHandshake(settings, statuses: nil)
}()

private let recipe: RecipeHandshake = {
    let text = """
        identities:
          a:
            recipe:
              challenge:
                status: [302, 400, 401, 403, 429, 503]
                scheme: In-House
                take:
                  gate: { param: realm, match: '^([^:]{1,64}):' }
                  nonce: { header: Retry-After, match: '([0-9]+)', else: none }
                  cookie: { cookie: c, else: none }
              key: [gate, nonce]
              steps:
                - name: a
                  get: https://i.example.com/
                  rejected: { status: [400, 401], json: /error, match: '(invalid_[a-z]+)' }
                  take: { token: { json: /token, match: '^([!-~]+)$' }, lifetime: { json: /expires_in, else: 5m } }
              token: "{a.token}"
        routes: [{ listen: "127.0.0.1:8080", to: "https://u.example.com", use: a }]
        """
    let configuration = Configuration.load(.text(text)) { _ in nil }.configuration
    guard let scheme = configuration?.identities.first?.scheme as? RecipeScheme else { refute("no recipe") }
    return RecipeHandshake(scheme.recipe, identity: "a")
}()

/// The first byte chooses the reader, the second the status; the rest is the hostile input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzAnswers(_ start: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
    guard count >= 2 else { return 0 }
    let input = Array(UnsafeBufferPointer(start: start, count: count))
    let statuses = [200, 201, 302, 400, 401, 403, 429, 503]
    let status = statuses[Int(input[1]) % statuses.count]
    let rest = Array(input[2...])
    let answer = IssuerAnswer(
        status: status,
        headers: [
            ("Retry-After", String(decoding: rest.prefix(64), as: UTF8.self)), ("Date", "Sun Nov  6 08:49:37 1994"),
        ],
        body: rest, sentAt: 1, overTLS: true)
    switch input[0] % 6 {
    case 0:
        if let grant = try? OAuth2Answer(answer).grant() {
            precondition(TokenAlphabet.b64token.admits(grant.token))
            precondition((grant.lifetime ?? 1) <= AccessGrant.longestLifetime)
        }
    case 1:
        if case .token(let token) = OAMWebGateAnswer(
            answer, step: "access", tokenType: "ACCESSTOKEN", handleRejectedCodes: [])
        {
            precondition(TokenAlphabet.visible.admits(token))
        }
    case 2:
        let lines = rest.split(separator: 0x0A, maxSplits: 8, omittingEmptySubsequences: false).map(Array.init)
        check(webGate?.judge(status: 401, wwwAuthenticate: lines, location: nil, requestURL: "https://u/"))
        check(webGate?.judge(status: 401, wwwAuthenticate: [rest], location: nil, requestURL: "https://u/"))
        _ = oauth?.judge(status: 403, wwwAuthenticate: lines, location: nil, requestURL: "https://u/")
        checkDigest(lines)
    case 4:
        guard let step = recipe.recipe.steps.first else { break }
        if let tree = try? JSONTree(rest) {
            for pointer in [["token"], ["a", "1", "b"], ["0"]] { _ = try? tree.value(at: pointer)?.scalar }
        }
        if case .success(let taken, let lifetime) = RecipeVerdict(answer, of: step, sendsSecret: true).meaning {
            precondition(taken["token"].map { TokenAlphabet.fieldValue.admits($0) } == true)
            precondition((lifetime ?? 1) <= AccessGrant.longestLifetime)
        }
        if let kept = RecipeMaterial.decode(Secret(rest)) {
            precondition(RecipeMaterial.decode(RecipeMaterial.encode(kept)) == kept)
        }
    case 5:
        let fields = rest.split(separator: 0x0A, maxSplits: 8, omittingEmptySubsequences: false).enumerated().map {
            (name: Array(["WWW-Authenticate", "Set-Cookie", "Retry-After"][$0 % 3].utf8), value: Array($1))
        }
        let seen = UpstreamAnswer(status: status, fields: fields, requestURL: "https://u/", requestMethod: [])
        if case .challenged(let challenge) = recipe.judge(seen) {
            precondition(challenge.taken.count == 3 && challenge.resource == "https://u/" && !challenge.realm.isEmpty)
        }
    default:
        check(webGate?.judge(status: 302, wwwAuthenticate: [], location: rest, requestURL: "https://u/"))
        if let url = IssuerURL(String(decoding: rest, as: UTF8.self)) {
            precondition(IssuerURL(url.description) == url)
        }
    }
    return 0
}

private func check(_ verdict: ChallengeVerdict?) {
    guard case .challenged(let challenge)? = verdict else { return }
    challenge.context.withBytes { bytes in
        precondition(!bytes.isEmpty && bytes.allSatisfy { (0x20...0x7E).contains($0) })
    }
    precondition(challenge.resource == "https://u/")
}

/// An answer to a challenge is one credential that says what the challenge said, whatever that was.
private func checkDigest(_ lines: [[UInt8]]) {
    let verdict = digest?.judge(status: 401, wwwAuthenticate: lines, location: nil, requestURL: "https://u/")
    guard case .nonce(let nonce, _)? = verdict, let challenge = (nonce as? DigestNonce)?.challenge,
        let signer = digest?.signer
    else { return }
    var request = RequestToSign(method: "GET", url: "https://u/a?b", bodyDigest: [1])
    request.serverNonce = nonce
    let signed = try? Secret("p").withBytes { password in
        try signer.sign(request, with: password, wallSeconds: 0, entropy: [1, 2, 3])
    }
    guard let signed, let field = signed.fields.first, let answered = signed.answer else { return }
    precondition(!field.value.contains { $0 < 0x20 || $0 == 0x7F })
    let read = AuthChallenge.list([field.value])
    precondition(read.count == 1 && read[0].fault == nil)
    guard case .one(challenge.nonce) = read[0]["nonce"], case .one(challenge.realm) = read[0]["realm"] else {
        refute("another nonce or realm is answered than was given")
    }
    let fields = lines.map { (name: Array("Authentication-Info".utf8), value: $0) }
    let seen = UpstreamAnswer(status: 200, fields: fields, requestURL: "https://u/", requestMethod: [])
    if case .next(let next) = signer.review(seen, to: answered) { precondition(next.uses == 0) }
}

extension Handshake {
    fileprivate func judge(
        status: Int, wwwAuthenticate: [[UInt8]], location: [UInt8]?, requestURL: String
    ) -> ChallengeVerdict {
        var fields = wwwAuthenticate.map { (name: Array("WWW-Authenticate".utf8), value: $0) }
        if let location { fields.append((name: Array("Location".utf8), value: location)) }
        return judge(UpstreamAnswer(status: status, fields: fields, requestURL: requestURL, requestMethod: []))
    }
}
