internal import Synchronization

/// The metadata of one issuer, as it was read last.
///
/// The one thing that an `oauth2` handshake remembers: it is public, it can be had again at any time, and a flight that had to ask for
/// it first would make every grant two round trips.
final class OAuth2Discovery: Sendable {
    let rules: OAuth2MetadataRules
    private let known = Mutex<(endpoints: OAuth2Endpoints, readAt: UInt64)?>(nil)

    /// Nanoseconds after which it is read again.
    static let fresh: UInt64 = 3_600 * 1_000_000_000
    /// Nanoseconds for which it is used while it cannot be read.
    static let usable: UInt64 = 24 * fresh

    init(_ rules: OAuth2MetadataRules) { self.rules = rules }

    /// The endpoints do not answer as they should: the next flight reads the metadata again.
    func forget() { known.withLock { $0 = nil } }

    func endpoints(
        headers: [(name: String, value: String)], environment: any GrantEnvironment
    ) async throws(GrantFailure) -> OAuth2Endpoints {
        let now = await environment.now()
        let last = known.withLock { $0 }
        if let last, now < last.readAt + Self.fresh { return last.endpoints }
        do throws(GrantFailure) {
            let endpoints = try await read(headers: headers, environment: environment)
            known.withLock { $0 = (endpoints, now) }
            return endpoints
        } catch {
            guard let last, now < last.readAt + Self.usable else { throw error }
            return last.endpoints
        }
    }

    private func read(
        headers: [(name: String, value: String)], environment: any GrantEnvironment
    ) async throws(GrantFailure) -> OAuth2Endpoints {
        var failure = GrantFailure.configuration(reason: "discovery: no metadata at any well-known place")
        for url in rules.url.metadataURLs {
            let call = IssuerCall(asking: url, step: "discovery", headers: [IssuerCall.acceptsJSON] + headers)
            let answer = try await environment.answer(to: call)
            switch answer.status {
            case 200: break
            case 408, 425, 429, 500..<600: throw answer.unavailable("discovery: status \(answer.status)")
            // Redirects are not followed: where to go is not the answer's to say.
            default: continue
            }
            do throws(OAuth2MetadataFault) {
                return try OAuth2Endpoints(
                    answer.body, rules, isVerified: answer.overTLS || url.isLoopback)
            } catch {
                failure = .issuerAnswerInvalid(reason: "discovery: \(error.reason)")
                guard error.mayBeElsewhere else { throw failure }
            }
        }
        throw failure
    }
}
