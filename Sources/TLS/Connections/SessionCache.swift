internal import COpenSSL

/// Resumable sessions of a client, by server name.
///
/// Unlocked: it belongs to one `TLSClientConfiguration` and thereby to one thread. OpenSSL's own cache is off, because it is
/// looked up by session id and so serves servers only.
struct SessionCache: ~Copyable {
    struct Entry {
        let session: OpaquePointer
        /// When the server's chain was last verified in full, in seconds of the caller's clock. Resumption skips that,
        /// and a ticket got by resumption carries the date of its parent, so that no chain of tickets outlives a revocation.
        let verifiedAt: UInt64
    }

    /// A server name holds at most this many tickets; a TLS 1.3 server sends two per handshake.
    static let ticketsPerName = 4
    static let maximumNames = 64
    /// A session older than this is not offered: the certificate is looked at again.
    static let maximumAgeSeconds: UInt64 = 3600

    private var entries: [String: [Entry]] = [:]
    /// Names in the order in which they were first seen; the oldest goes first when there are too many.
    private var order: [String] = []

    deinit {
        for entry in entries.values.joined() { SSL_SESSION_free(entry.session) }
    }

    // MARK: -

    /// Keeps `session`, whose reference now belongs to the cache.
    mutating func insert(_ session: OpaquePointer, for name: String, verifiedAt: UInt64) {
        if entries[name] == nil {
            if order.count >= Self.maximumNames { remove(name: order[0]) }
            order.append(name)
        }
        var list = entries[name] ?? []
        while list.count >= Self.ticketsPerName { SSL_SESSION_free(list.removeFirst().session) }
        list.append(Entry(session: session, verifiedAt: verifiedAt))
        entries[name] = list
    }

    /// The newest usable session; its reference belongs to the caller. A TLS 1.3 ticket leaves the cache, since using one twice
    /// lets an onlooker link the connections (RFC 8446 appendix C.4).
    mutating func take(for name: String, now: UInt64) -> Entry? {
        while var list = entries[name], let entry = list.last {
            let young = now >= entry.verifiedAt && now - entry.verifiedAt < Self.maximumAgeSeconds
            let usable = young && SSL_SESSION_is_resumable(entry.session) == 1
            if usable, SSL_SESSION_get_protocol_version(entry.session) < TLS1_3_VERSION {
                SSL_SESSION_up_ref(entry.session)
                return entry
            }
            list.removeLast()
            entries[name] = list
            if usable { return entry }
            SSL_SESSION_free(entry.session)
        }
        return nil
    }

    /// Sessions held for `name`.
    func count(for name: String) -> Int { entries[name]?.count ?? 0 }

    mutating func remove(name: String) {
        for entry in entries.removeValue(forKey: name) ?? [] { SSL_SESSION_free(entry.session) }
        order.removeAll { $0 == name }
    }
}
