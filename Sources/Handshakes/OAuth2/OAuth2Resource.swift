internal import Synchronization

/// Which of the allowed issuers an API wants its tokens of, as its metadata said last (RFC 9728).
///
/// Like `OAuth2Discovery` it remembers what is and can be had again at any time. After a restart the identity's own issuer is
/// asked first, and the API's next challenge leads back.
final class OAuth2Resources: Sendable {
    /// `allowed_issuers`, with their metadata.
    let allowed: [(issuer: String, url: IssuerURL, discovery: OAuth2Discovery)]
    private let state = Mutex(State())

    private struct State {
        var documents: [IssuerURL: Document] = [:]
        var chosen: [Purpose: Int] = [:]
        /// Issuers that did not take our client, and until when they are not asked again.
        var refusing: [Int: UInt64] = [:]
    }

    /// The metadata that was read, or why it is of no use, and until when that holds.
    private struct Document {
        var result: Result<ResourceMetadata, ResourceMetadataFault>
        var until: UInt64
    }

    /// The purpose of a token, but for its scopes, which challenges may add to: it is wanted of one issuer.
    struct Purpose: Hashable {
        var origin: String
        var audience: [String]
        var resource: [String]
    }

    /// Documents and purposes that are remembered. At the bound all are forgotten: each comes back with its next challenge.
    static let most = 256
    /// Nanoseconds for which a document is used, and for which one that is of no use is not asked for again. Short, since an API
    /// that changes its issuer refuses every token meanwhile; and only a refused token leads here.
    static let fresh: UInt64 = 300 * 1_000_000_000
    static let refused: UInt64 = 60 * 1_000_000_000
    /// Nanoseconds for which an issuer that refused our client is not sent the secret again.
    static let offended: UInt64 = 600 * 1_000_000_000

    init(allowed: [(issuer: String, url: IssuerURL)], _ settings: OAuth2Settings) {
        self.allowed = allowed.map { issuer, url in
            (
                issuer, url,
                OAuth2Discovery(
                    OAuth2MetadataRules(
                        issuer: issuer, url: url, allowsCleartext: settings.allowsCleartext,
                        prefersMutualTLS: settings.usesMutualTLS))
            )
        }
    }
}

extension OAuth2Resources {
    /// An index into `allowed`; nil: the identity's own issuer.
    fileprivate func choice(for purpose: Purpose) -> Int? { state.withLock { $0.chosen[purpose] } }

    fileprivate func choose(_ index: Int?, for purpose: Purpose) {
        state.withLock { state in
            if state.chosen.count >= Self.most, state.chosen[purpose] == nil { state.chosen = [:] }
            state.chosen[purpose] = index
        }
    }

    /// An issuer to which an API led refused our client: that is no word on the issuer that the operator gave the identity, and must not
    /// close the routes that use it.
    fileprivate func noteRefusal(by index: Int, at now: UInt64) {
        state.withLock { state in
            state.refusing[index] = now + Self.offended
            state.chosen = state.chosen.filter { $0.value != index }
        }
    }

    fileprivate func isRefused(by index: Int, at now: UInt64) -> Bool {
        state.withLock { $0.refusing[index].map { now < $0 } ?? false }
    }

    /// - Returns: nil where it is known and has been told already why it is of no use.
    fileprivate func metadata(
        at url: IssuerURL, environment: any GrantEnvironment
    ) async throws(ResourceMetadataFault) -> ResourceMetadata? {
        let now = await environment.now()
        let known = state.withLock { $0.documents[url] }
        if let known, now < known.until { return try? known.result.get() }
        let result: Result<ResourceMetadata, ResourceMetadataFault>
        do throws(ResourceMetadataFault) {
            result = .success(try await read(url, environment: environment))
        } catch {
            result = .failure(error)
        }
        var span = Self.fresh
        if case .failure = result { span = Self.refused }
        let document = Document(result: result, until: now + span)
        state.withLock { state in
            if state.documents.count >= Self.most, state.documents[url] == nil { state.documents = [:] }
            state.documents[url] = document
        }
        return try result.get()
    }

    private func read(
        _ url: IssuerURL, environment: any GrantEnvironment
    ) async throws(ResourceMetadataFault) -> ResourceMetadata {
        let answer: IssuerAnswer
        do throws(IssuerFault) {
            answer = try await environment.askUpstream(IssuerCall(asking: url, step: "resource metadata"))
        } catch {
            throw ResourceMetadataFault(reason: "metadata cannot be read: \(error.kind)")
        }
        // Redirects are not followed: where to go is not the answer's to say.
        guard answer.status == 200 else { throw ResourceMetadataFault(reason: "metadata: status \(answer.status)") }
        return try ResourceMetadata(answer.body)
    }
}

// MARK: - The issuer of a flight

extension OAuth2Handshake {
    /// This handshake as it is with the issuer that the API wants its tokens of.
    ///
    /// The API's word counts only as far as the operator has allowed it: metadata that is of no use, and issuers that nobody allowed,
    /// change nothing. The flight goes on with the issuer that it had, because one URL with a wrong word in its challenge must not cut
    /// off the others (docs/design/tokens.md#rule-3); the log says why.
    func atIssuer<Outcome>(
        for wanted: Wanted, _ environment: any GrantEnvironment,
        _ work: (OAuth2Handshake) async throws(GrantFailure) -> Outcome
    ) async throws(GrantFailure) -> Outcome {
        guard let resources, let choice = await choice(for: wanted, resources, environment) else {
            return try await work(self)
        }
        let chosen = resources.allowed[choice]
        var moved = self
        moved.settings.location = .issuer(chosen.issuer, chosen.url)
        moved.discovery = chosen.discovery
        // The endpoints that were written down are the identity's own issuer's.
        moved.settings.forgetWrittenEndpoints()
        do throws(GrantFailure) { return try await work(moved) } catch {
            guard case .credentialRejected(let reason) = error else { throw error }
            resources.noteRefusal(by: choice, at: await environment.now())
            throw .configuration(
                reason: "allowed issuer \(chosen.issuer), which the API names, refused the client: \(reason)")
        }
    }

    /// - Returns: an index into `allowed`; nil: the identity's own issuer.
    private func choice(for wanted: Wanted, _ resources: OAuth2Resources, _ environment: any GrantEnvironment) async
        -> Int?
    {
        let purpose = OAuth2Resources.Purpose(
            origin: wanted.upstreamOrigin, audience: wanted.audience, resource: wanted.resource)
        var choice = resources.choice(for: purpose)
        if let challenge = wanted.challenge, let text = challenge.resourceMetadata {
            do throws(ResourceMetadataFault) {
                let url = try ResourceMetadata.url(text, origin: wanted.upstreamOrigin)
                if let metadata = try await resources.metadata(at: url, environment: environment) {
                    guard metadata.describes(challenge.resource, readAt: url) else {
                        throw ResourceMetadataFault(reason: "its metadata is of another resource")
                    }
                    let named = try self.choice(among: metadata.issuers, now: choice, resources)
                    if let named, resources.isRefused(by: named, at: await environment.now()) {
                        throw ResourceMetadataFault(
                            reason:
                                "allowed issuer \(resources.allowed[named].issuer) refused the client a short while ago"
                        )
                    }
                    choice = named
                    resources.choose(choice, for: purpose)
                }
            } catch {
                await environment.tell(.concern("the API's challenge leads to no other issuer: \(error.reason)"))
            }
        }
        return choice
    }

    /// For a check: whether every allowed issuer answers, as itself. In use that would show only with the API's challenge.
    func findAllowedIssuers(environment: any GrantEnvironment) async throws(GrantFailure) {
        for one in resources?.allowed ?? [] {
            do throws(GrantFailure) {
                _ = try await one.discovery.endpoints(headers: settings.headers, environment: environment)
            } catch {
                throw .configuration(reason: "allowed_issuers: \(one.issuer): \(error)")
            }
        }
    }

    /// The one in use where it is still named: of two that are, neither is better, and changing has a price.
    ///
    /// Compared as URLs, since servers put a slash behind a bare host that the issuer itself does not have. Nothing hangs on it: the
    /// address is the operator's, and the issuer's own metadata has to spell it as the operator does.
    private func choice(
        among issuers: [String], now: Int?, _ resources: OAuth2Resources
    ) throws(ResourceMetadataFault) -> Int? {
        let named = issuers.compactMap { IssuerURL($0) }
        var own: IssuerURL?
        if case .issuer(_, let url) = settings.location { own = url }
        if let current = now.map({ resources.allowed[$0].url }) ?? own, named.contains(current) { return now }
        for url in named {
            if url == own { return nil }
            if let index = resources.allowed.firstIndex(where: { $0.url == url }) { return index }
        }
        let names = named.prefix(3).map { "'\($0.description.prefix(200))'" }
        throw ResourceMetadataFault(
            reason: names.isEmpty
                ? "its metadata names no issuer"
                : "its metadata names \(names.joined(separator: ", ")), and allowed_issuers does not")
    }
}
