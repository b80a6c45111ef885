package import Configuration
internal import GSSAPI
internal import Octets
internal import Synchronization

/// Kerberos at a proxy on the way, by Negotiate (RFC 4559). The proxy need not prove who it is: it is in clear text, and whoever stands before it
/// reads what goes to it in any case.
package final class ProxyNegotiate: ProxyHandshake {
    private let credential: NegotiateCredential
    private let key: String
    private let service: String
    private let held = Mutex(Held())

    private struct Held {
        /// The keys that a KDC has refused, which are not tried again: each attempt counts towards a lock-out.
        var refused: Secret?
        var failure: GrantFailure?
    }

    /// - Parameters:
    ///   - host: of the proxy.
    ///   - service: its name in Kerberos; nil: `HTTP` at its host.
    package init(_ source: TicketSource, host: String, port: UInt16, service: String?, _ world: GrantWorld) {
        self.service = service ?? "HTTP@\(host)"
        key = source.keys == nil ? "cache" : "keytab"
        credential = NegotiateCredential.shared(
            GSSCredential.Source(source), of: "the proxy \(host):\(port)", clock: world.wallMilliseconds)
    }

    package var word: String { "Negotiate" }
    package var openingMessages: Int { 0 }
    package var mostMessages: Int { 4 }
    package var mayBeOfEachRequest: Bool { true }
    /// A proxy judges tickets; the KDC, which counts, has its own rule.
    package var isCounted: Bool { false }

    package func forgetRefusals() {
        let hadRefusal = held.withLock { held in
            defer { held = Held() }
            return held.failure != nil
        }
        // Tickets that are good serve on.
        if hadRefusal { credential.forget() }
    }

    package func noteRefusal() { credential.noteRefusal(of: nil) }

    package func begin(with secret: [UInt8]) -> any ProxyConversation {
        ProxyNegotiateConversation(self, keys: Secret(secret))
    }

    /// Why no ticket can be had on this machine; nil where the library is there. May read the disk.
    package static var missingLibrary: String? {
        do throws(GSSFault) {
            _ = try GSSLibrary.open()
            return nil
        } catch { return error.message }
    }

    /// - Parameter keys: of the keytab; empty of a file of tickets.
    fileprivate func begin(
        with keys: Secret, within milliseconds: Int64,
        then completion: @escaping @Sendable (Result<NegotiateCredential.FirstToken, GrantFailure>) -> Void
    ) {
        if key == "keytab" {
            if let failure = held.withLock({ $0.refused == keys ? $0.failure : nil }) {
                return completion(.failure(failure))
            }
            credential.noteKeys(keys)
        }
        credential.begin(
            to: NegotiateSettings.target(service), bindings: nil, mutual: false, within: milliseconds
        ) { result in
            completion(
                result.mapError { fault in
                    let failure = GrantFailure(fault, of: self.key)
                    if case .credentialRejected = failure {
                        self.held.withLock { $0 = Held(refused: keys, failure: failure) }
                    }
                    return failure
                })
        }
    }

    fileprivate func letGo(_ initiator: GSSInitiator) { credential.letGo(initiator) }

    fileprivate func advance(
        _ initiator: GSSInitiator, with token: [UInt8], within milliseconds: Int64,
        then completion: @escaping @Sendable (Result<[UInt8], GrantFailure>) -> Void
    ) {
        credential.advance(initiator, with: token, within: milliseconds) { result in
            completion(
                result.mapError { .issuerAnswerInvalid(reason: $0.message) }.flatMap { step in
                    step.output.isEmpty
                        ? .failure(.issuerAnswerInvalid(reason: "the proxy asks on where nothing is left to say"))
                        : .success(step.output)
                })
        }
    }
}

private final class ProxyNegotiateConversation: ProxyConversation {
    private let handshake: ProxyNegotiate
    private let keys: Secret
    private let initiator = Mutex<GSSInitiator?>(nil)

    /// Characters of base64.
    private static let longestText = 65536

    init(_ handshake: ProxyNegotiate, keys: Secret) {
        self.handshake = handshake
        self.keys = keys
    }

    // The last owner is a loop's connection, which must not wait.
    deinit { if let initiator = initiator.withLock({ $0 }) { handshake.letGo(initiator) } }

    func answer(
        _ received: [UInt8]?, within milliseconds: Int64,
        then completion: @escaping @Sendable (Result<[UInt8], GrantFailure>) -> Void
    ) {
        guard let received else {
            return handshake.begin(with: keys, within: milliseconds) { [self] result in
                completion(
                    result.map { first in
                        initiator.withLock { $0 = first.initiator }
                        return first.bytes
                    })
            }
        }
        guard received.count <= Self.longestText, let token = Base64.decode(received), !token.isEmpty,
            let initiator = initiator.withLock({ $0 })
        else {
            let failure = GrantFailure.issuerAnswerInvalid(reason: "the proxy's token is too long, or not base64")
            return completion(.failure(failure))
        }
        handshake.advance(initiator, with: token, within: milliseconds, then: completion)
    }
}
