// Built by script together with the sources of Handshakes: SwiftPM cannot link a fuzzer's main on Linux.
#if canImport(Handshakes)
    @testable import Handshakes
#endif

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
    switch input[0] % 4 {
    case 0:
        if let grant = try? OAuth2Answer.grant(answer) {
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
