package import Handshakes
internal import Octets
internal import Reactor
internal import Synchronization

/// The HTTP proxy on the way to an upstream or issuer. Shared by all that go through it with the same words of the configuration.
package final class ProxyPlan: Sendable {
    let endpoint: UpstreamEndpoint
    package let credential: ProxyCredential?
    /// Whether a host, in lower case and without brackets, is reached through it.
    private let takes: @Sendable (String) -> Bool

    package init(
        _ endpoint: UpstreamEndpoint, credential: ProxyCredential?,
        serves: @escaping @Sendable (_ host: String) -> Bool
    ) {
        self.endpoint = endpoint
        self.credential = credential
        takes = serves
    }

    package func serves(_ host: String) -> Bool { takes(host.lowercased()) }
}

/// The credential for one proxy, read from its secret again when that changes. Like `ClientKeys`: loops compare `version` and keep a copy.
package final class ProxyCredential: Sendable {
    /// Answers the proxy's challenges; nil: the credential is Basic, and goes without being asked for.
    let digest: ProxyDigest?
    /// Authenticates connections to the proxy; nil: it takes requests one by one.
    let handshake: (any ProxyHandshake)?
    private let read: @Sendable () throws -> [UInt8]
    private let username: String
    private let rest = ProxyRest()
    private let contents = Mutex(Contents())
    private let changes = Atomic<UInt64>(0)

    package struct Contents: Sendable {
        /// The password, the keys of Kerberos (empty for tickets of another program), or the whole line of Basic with its CRLF; nil where the
        /// secret has never been read.
        var secret: [UInt8]?
        package var fault: String?
    }

    package init(
        username: String, digest: ProxyDigest? = nil, handshake: (any ProxyHandshake)? = nil,
        password: @escaping @Sendable () throws -> [UInt8]
    ) {
        self.username = username
        self.digest = digest
        self.handshake = handshake
        read = password
    }

    package var version: UInt64 { changes.load(ordering: .acquiring) }
    package var current: Contents { contents.withLock { $0 } }

    /// Blocks.
    /// - Returns: a new fault.
    package func reload() -> String? {
        let result = Result { try read() }
        return contents.withLock { contents in
            switch result {
            case .success(let password):
                let secret = digest == nil && handshake == nil ? Self.line(username, password) : password
                contents.fault = nil
                guard contents.secret != secret else { return nil }
                contents.secret = secret
                rest.end()
                changes.add(1, ordering: .acquiringAndReleasing)
                return nil
            case .failure(let error):
                guard contents.fault != "\(error)" else { return nil }
                contents.fault = "\(error)"
                return contents.fault
            }
        }
    }

    /// A proxy has refused the password, where each refusal of one may count.
    /// - Parameter version: of what was shown.
    func noteRefusal(of version: UInt64, at now: UInt64) {
        handshake?.noteRefusal()
        if handshake?.isCounted == true, version == self.version { rest.noteRefusal(at: now) }
    }

    /// Nanoseconds for which the password is not shown; nil: it may be.
    func rests(at now: UInt64) -> UInt64? { rest.left(at: now) }

    /// An operator has put things right, as far as the file can say it: what was refused may be tried again.
    package func forgetRefusals() {
        rest.end()
        handshake?.forgetRefusals()
    }

    private static func line(_ username: String, _ password: [UInt8]) -> [UInt8] {
        let encoded = Base64.encode(Array(username.utf8) + [0x3a] + password)
        return Array("Proxy-Authorization: Basic \(encoded)\r\n".utf8)
    }
}
