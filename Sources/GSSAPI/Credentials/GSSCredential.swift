internal import CGSSAPI

/// An initiator's credential: who this process is towards servers of Kerberos.
///
/// A credential is named by its files and never by the process' environment (`gss_acquire_cred_from`), because one process has
/// many identities. Its tickets are kept in a cache in memory, which is destroyed with the credential; no file is written. MIT would
/// otherwise add the tickets of each server, and marks of refreshing, to the file of tickets that another program keeps.
///
/// A credential is not renewed: MIT gets new tickets while a credential is acquired and never for one that is held. Its owner
/// makes another one in good time, as when half of `remainingLifetime` is over, and lets the old one go.
///
/// Thread safety: the handles are set once; MIT locks a credential while a call works with it. A call may therefore wait for another
/// thread's call that asks a KDC with the same credential, which is why `GSSWorker` runs one job of an identity at a time.
public final class GSSCredential: @unchecked Sendable {
    let library: GSSLibrary
    /// The mechanism that the credential was acquired for; its contexts use the same.
    public let mechanism: GSSMechanism
    let handle: cgss_cred
    /// Nil where the library has one of its own, which ends with the handle.
    private let cache: GSSMemoryCache?

    /// The files that tickets come from.
    public enum Source: Sendable, Equatable {
        /// A file with long-term keys. `principal` is `name@REALM`; nil takes the first principal of the file.
        case keytab(path: String, principal: String?)
        /// A file of tickets that another program keeps fresh, such as `kinit`. The file is copied once: fresher tickets of the file are
        /// for the next credential. `principal` nil takes the file's own.
        case cache(path: String, principal: String?)
    }

    /// The places where the library looks: the path that an operator knows, the cache's name, and the keytab's path, nil for none.
    private struct Store {
        let path: String
        let principal: String?
        let cache: String
        let keytab: String?

        /// A store without a keytab would mean the default one of the environment.
        var keytabName: String { keytab.map { "FILE:\($0)" } ?? "MEMORY:no-keytab" }
    }

    /// Acquires a credential. With a keytab the KDC is asked for the first ticket at once, so the call may block for as long as a
    /// KDC is silent; with a file of tickets no KDC is asked, and expiry shows at the first token.
    ///
    /// - Throws: `invalidArgument` for a path that is relative, empty, longer than 4096 bytes or has controls; `keytabUnreadable`,
    ///   `credentialMissing`, and what a KDC says: `kdcUnreachable`, `clientUnknown`, `keysWrong`, `clientRevoked`, `clockSkew`.
    public init(_ library: GSSLibrary, _ source: Source, mechanism: GSSMechanism) throws(GSSFault) {
        let store: Store
        let cache: GSSMemoryCache
        switch source {
        case .keytab(let path, let principal):
            try GSSFiles.check(path: path)
            try GSSFiles.check(keytab: path)
            cache = try GSSMemoryCache(library, copyOf: nil)
            store = Store(path: path, principal: principal, cache: cache.name, keytab: path)
        case .cache(let path, let principal):
            try GSSFiles.check(path: path)
            cache = try GSSMemoryCache(library, copyOf: path)
            store = Store(path: path, principal: principal, cache: cache.name, keytab: nil)
        }
        handle = try Self.acquire(library, store, mechanism)
        self.cache = consume cache
        self.library = library
        self.mechanism = mechanism
    }

    /// Acquires a credential in a user's name, by the right that the KDC gives to `own` (S4U2Self). Its contexts ask the KDC for the server's
    /// ticket in that name (S4U2Proxy). Asks the KDC, so the call may block for as long as one is silent.
    ///
    /// - Parameter user: `name@REALM`. The name must have no `@`, `/`, `\` or NUL, which mean something in the text of a principal.
    /// - Throws: what a KDC says, above all `clientUnknown`, `clientRevoked` and `requestRefused`; `invalidArgument` for a name like that.
    public init(_ own: GSSCredential, actingFor user: String) throws(GSSFault) {
        let parts = user.utf8.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }),
            !user.utf8.contains(where: { "/\\\0".utf8.contains($0) })
        else { throw GSSFault(.invalidArgument, "the name of a user cannot stand in a principal") }
        let name = try GSSName(own.library, user, isPrincipal: true)
        var handle: cgss_cred?
        var minor: UInt32 = 0
        let major = name.withHandle {
            cgss_impersonate(own.library.calls, &minor, own.mechanism.code, own.handle, $0, &handle)
        }
        let status = GSSStatus(major: major, minor: minor)
        guard !status.isError, let handle else {
            throw status.fault(own.library, own.mechanism, doing: "no credential in a user's name")
        }
        self.handle = handle
        cache = nil
        library = own.library
        mechanism = own.mechanism
    }

    // The cache's own end follows. Both read krb5.conf, so that the last reference is best let go where the disk may be waited for.
    deinit { cgss_release_cred(library.calls, handle) }

    /// The seconds that the tickets are still valid, 0 when they have expired, nil for a life without an end (RFC 2744 section
    /// 5.21). No KDC is asked and no file is read.
    public func remainingLifetime() throws(GSSFault) -> UInt32? {
        var seconds: UInt32 = 0
        var minor: UInt32 = 0
        let status = GSSStatus(major: cgss_remaining(library.calls, &minor, handle, &seconds), minor: minor)
        if status.routineError == GSSStatus.credentialsExpired { return 0 }
        guard !status.isError else { throw status.fault(library, mechanism, doing: "no lifetime of a credential") }
        return seconds == UInt32.max ? nil : seconds
    }

    /// Kerberos' own credential is acquired first for SPNEGO, too: the negotiation hides the reason when its only mechanism has no
    /// credential. The second acquisition then finds the ticket in the cache.
    private static func acquire(
        _ library: GSSLibrary, _ store: Store, _ mechanism: GSSMechanism
    ) throws(GSSFault) -> cgss_cred {
        let first = try acquireOne(library, store, .kerberos)
        guard mechanism != .kerberos else { return first }
        defer { cgss_release_cred(library.calls, first) }
        return try acquireOne(library, store, mechanism)
    }

    private static func acquireOne(
        _ library: GSSLibrary, _ store: Store, _ mechanism: GSSMechanism
    ) throws(GSSFault) -> cgss_cred {
        let acquired: (status: GSSStatus, handle: cgss_cred?)
        if let principal = store.principal {
            let name = try GSSName(library, principal, isPrincipal: true)
            acquired = name.withHandle { call(library, store, $0, mechanism) }
        } else {
            acquired = call(library, store, nil, mechanism)
        }
        guard !acquired.status.isError, let handle = acquired.handle else {
            let fault = acquired.status.fault(library, mechanism, doing: "no credential from \(store.path)")
            // MIT speaks of a missing cache, because a keytab without the wanted key counts as no keytab.
            guard store.keytab != nil, fault.kind == .credentialMissing else { throw fault }
            throw GSSFault(.credentialMissing, "\(store.path) has no key of \(store.principal ?? "a principal")")
        }
        return handle
    }

    private static func call(
        _ library: GSSLibrary, _ store: Store, _ name: cgss_name?, _ mechanism: GSSMechanism
    ) -> (GSSStatus, cgss_cred?) {
        var handle: cgss_cred?
        var minor: UInt32 = 0
        let major = cgss_acquire(library.calls, &minor, mechanism.code, name, store.cache, store.keytabName, &handle)
        return (GSSStatus(major: major, minor: minor), handle)
    }
}
