internal import Octets

/// A form to be posted to one of the issuer's endpoints, before the client has proved itself.
struct OAuth2Request {
    /// For logs and reasons.
    var step: String
    var members: [(name: String, value: Value)] = []
    /// Holds what must not arrive twice: a password, a refresh token that may be replaced by its use.
    var isSingleUse = false
    /// A user's password must not arrive twice: sent too often, it locks an account.
    var carriesPassword = false
    /// The request sends a refresh token, and the answer may bring another one.
    var replacesRefreshToken = false
    /// The token is to be bound to it.
    var proofKey: DPoPKey?
    /// The token endpoint, where the request goes to another one: see `OAuth2Handshake.proofs(of:besides:)`.
    var tokenEndpoint: IssuerURL?
    /// Whether what comes back is sent to upstreams, and must be of a kind that can be. Other things have no `token_type`.
    var isToken = true

    enum Value {
        case text(String)
        case secret(Secret)
    }

    mutating func add(_ name: String, _ value: String) { members.append((name, .text(value))) }
    mutating func add(_ name: String, _ value: Secret) { members.append((name, .secret(value))) }

    /// The first value of a member that is no secret.
    func text(of name: String) -> String? {
        for member in members where member.name == name { if case .text(let text) = member.value { return text } }
        return nil
    }

    /// An upper bound of the form's size, so that no growth leaves an unwiped copy behind.
    var largestSize: Int {
        members.reduce(0) { sum, member in
            let count =
                switch member.value {
                case .text(let text): text.utf8.count
                case .secret(let secret): secret.count
                }
            return sum + 2 + 3 * (member.name.utf8.count + count)
        }
    }
}

/// Why a request brought no answer.
enum OAuth2SendFailure: Error {
    /// The transport's.
    case fault(IssuerFault)
    /// Nothing was sent.
    case failure(GrantFailure)
}

extension OAuth2SendFailure {
    func grantFailure(step: String) -> GrantFailure {
        switch self {
        case .fault(let fault): GrantFailure(fault, step: step)
        case .failure(let failure): failure
        }
    }
}

// MARK: - Sending

extension OAuth2Handshake {
    /// The answer at an endpoint that gives no tokens: with each of the client's proofs until one is not refused.
    func answer(
        _ request: OAuth2Request, at url: IssuerURL, as client: OAuth2Client, environment: any GrantEnvironment
    ) async throws(GrantFailure) -> IssuerAnswer {
        let proofs = proofs(of: client, besides: request.tokenEndpoint)
        var attempt = 0
        while true {
            let answer: IssuerAnswer
            do throws(OAuth2SendFailure) {
                answer = try await send(request, to: url, as: client, attempt: attempt, environment: environment)
            } catch { throw error.grantFailure(step: request.step) }
            attempt += 1
            guard [400, 401].contains(answer.status), attempt < proofs else { return answer }
        }
    }

    /// - Parameter attempt: which of the client's proofs is sent.
    func send(
        _ request: OAuth2Request, to url: IssuerURL, as client: OAuth2Client, for user: EndUser? = nil,
        attempt: Int = 0,
        environment: any GrantEnvironment
    ) async throws(OAuth2SendFailure) -> IssuerAnswer {
        let known = proofs.standing(of: url)
        let answer = try await sendOnce(
            request, to: url, as: client, for: user, attempt: attempt, environment: environment)
        // Once, and only with a proof that says something else. Everything of one use is made anew.
        guard request.proofKey != nil, refusesProof(answer), proofs.standing(of: url) != known else { return answer }
        return try await sendOnce(request, to: url, as: client, for: user, attempt: attempt, environment: environment)
    }

    private func sendOnce(
        _ request: OAuth2Request, to url: IssuerURL, as client: OAuth2Client, for user: EndUser?, attempt: Int,
        environment: any GrantEnvironment
    ) async throws(OAuth2SendFailure) -> IssuerAnswer {
        var call: IssuerCall
        do throws(GrantFailure) {
            call = try self.call(request, to: url, as: client, for: user, attempt: attempt)
        } catch {
            throw .failure(error)
        }
        defer { call.body.wipe() }
        do throws(IssuerFault) {
            let answer = try await environment.send(call)
            if request.proofKey != nil { proofs.learn(answer, from: url, wall: world.wallSeconds) }
            return answer
        } catch {
            throw .fault(error)
        }
    }

    private func call(
        _ request: OAuth2Request, to url: IssuerURL, as client: OAuth2Client, for user: EndUser?, attempt: Int
    ) throws(GrantFailure) -> IssuerCall {
        var headers = IssuerCall.formHeaders
        var all = request
        let proofs = proofs(of: client)
        let named = attempt < proofs ? request.tokenEndpoint ?? url : url
        try prove(client, attempt: attempt % proofs, to: named, in: &all, &headers)
        for (name, value) in settings.extra { all.add(name, try Self.filled(value, for: user)) }
        var body = FormBody(capacity: 16 + all.largestSize)
        for member in all.members {
            switch member.value {
            case .text(let text):
                let isGrant = member.name == "grant_type"
                body.member(member.name, isGrant ? settings.oracle?.spelling(of: text) ?? text : text)
            case .secret(let secret): body.member(member.name, secret)
            }
        }
        headers += settings.headers
        if let key = request.proofKey { try addProof(of: key, to: url, &headers) }
        if let domain = settings.identityDomain { headers.append((settings.identityDomainHeader, domain)) }
        var call = IssuerCall(
            step: request.step, method: "POST", url: url, headers: headers, body: body.finish(),
            carriesPassword: all.isSingleUse)
        call.replacesRefreshToken = request.replacesRefreshToken
        return call
    }
}

// MARK: - What was asked for

extension OAuth2Handshake {
    /// The members that say what the token is for. An empty member counts as absent (RFC 6749 §3.2).
    func addTarget(_ wanted: Wanted, to request: inout OAuth2Request) throws(GrantFailure) {
        let scopes = try requestedScopes(wanted)
        if !scopes.isEmpty { request.add("scope", scopes.joined(separator: " ")) }
        for audience in wanted.audience where !audience.isEmpty { request.add("audience", audience) }
        for uri in wanted.resource {
            guard Self.isResource(uri) else {
                throw .configuration(reason: "resource: not an absolute URI without fragment")
            }
            request.add("resource", uri)
        }
    }

    private func requestedScopes(_ wanted: Wanted) throws(GrantFailure) -> [String] {
        var scopes: [String] = []
        let added = (wanted.challenge?.scopes ?? []).filter { settings.allowedScopes?.contains($0) == true }
        for scope in wanted.scopes + added where !scopes.contains(scope) {
            guard OAuth2Scope.isToken(scope) else { throw .configuration(reason: "scopes: not a scope") }
            scopes.append(scope)
        }
        return scopes
    }

    // RFC 8707 §2.
    private static func isResource(_ uri: String) -> Bool {
        guard let colon = uri.utf8.firstIndex(of: UInt8(ascii: ":")), uri.utf8.first?.isLetter == true else {
            return false
        }
        return uri.utf8[..<colon].allSatisfy { $0.isLetterOrDigit || "+-.".utf8.contains($0) }
            && uri.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }
    }
}

/// Scopes (RFC 6749 §3.3).
enum OAuth2Scope {
    static func isToken(_ text: String) -> Bool {
        (1...1024).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0 == 0x21 || (0x23...0x5B).contains($0) || (0x5D...0x7E).contains($0) }
    }

    /// Sorted and unique; nil if any is not a scope token, or there are more than 256.
    static func set(_ text: String) -> [String]? {
        let scopes = Set(text.split(separator: " ").map(String.init))
        return scopes.count <= 256 && scopes.allSatisfy(isToken) ? scopes.sorted() : nil
    }
}

extension OAuth2Handshake {
    /// A configured text with the user's name in it. What is written around a name is fixed, so that no name can pass for another one's.
    static func filled(_ text: String, for user: EndUser?) throws(GrantFailure) -> String {
        guard text.contains(EndUser.placeholder) else { return text }
        guard case .name(let name)? = user else {
            throw .configuration(reason: "\(EndUser.placeholder): the route has no subject with a name")
        }
        // Octet by octet, and what was put in is not looked at again.
        let filled = Array(text.utf8).replacing(Array(EndUser.placeholder.utf8), with: Array(name.utf8))
        return String(decoding: filled, as: UTF8.self)
    }
}
