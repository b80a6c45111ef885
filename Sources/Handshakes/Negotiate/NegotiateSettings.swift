internal import Configuration
internal import GSSAPI

/// The settings of a block `negotiate`.
struct NegotiateSettings: Sendable, Equatable {
    /// The file that tickets come from; nil was reported.
    var source: GSSCredential.Source?
    /// The server's principal, or `service@host`; nil: `HTTP` at the host of the route's `to`.
    var service: String?
    /// An answer counts once the server has proven who it is (RFC 4559 §5).
    var wantsProof = true

    private enum Mutual: String, CaseIterable { case required, off }

    static let block = Block(
        name: "negotiate", description: "Kerberos by HTTP Negotiate (RFC 4559): a new token for each request.",
        keys: [
            // A refusal of its keys is booked by what stands in it, and a new file is another try.
            KeySpec(
                "keytab", .secret, "The file with the keys of `principal`, as `file:/path`; it is only read.",
                digest: .place),
            KeySpec(
                "cache", .text(.path),
                "A file of tickets that another program keeps fresh, as kinit or k5start; it is only read."),
            KeySpec(
                "principal", .text(.line), "Who we are, as user@REALM; the first of the keytab, or that of the cache."),
            KeySpec(
                "service", .text(.line),
                "The server, as HTTP/host@REALM or HTTP@host. HTTP at the host of the route's `to` where it is not given."
            ),
            KeySpec(
                "mutual", .words(Mutual.self),
                "required: a server has to prove with its answer that it is who `service` says; off: its word is taken, as most clients do."
            ),
        ], exactlyOneOf: ["keytab", "cache"])

    init(_ keys: BlockReader) {
        let principal = keys.text("principal")
        if let reference = keys.secret("keytab") {
            if case .file(let path) = reference, path.hasPrefix("/") {
                source = .keytab(path: path, principal: principal)
            } else {
                keys.refuse("keytab", "must be file: and an absolute path: Kerberos reads the file itself")
            }
        } else if let path = keys.path("cache") {
            source = .cache(path: path, principal: principal)
        }
        service = keys.text("service")
        wantsProof = keys.word("mutual") == Mutual.required
        if keys.has("keytab"), keys.has("cache") { keys.refuse("cache", "must not stand beside 'keytab'") }
        if !keys.has("keytab"), !keys.has("cache") { keys.need(["keytab"], ", or 'cache'") }
        if let path = keys.path("cache"), !path.hasPrefix("/") { keys.refuse("cache", "must be an absolute path") }
        if let service, !service.contains("/"), !service.contains("@") {
            keys.refuse("service", "must be HTTP/host@REALM or HTTP@host")
        }
    }

    /// The file of tickets, which is no secret of ours to watch.
    var cache: String? { if case .cache(let path, _) = source { path } else { nil } }

    /// The file of tickets may be somebody else's with its next version, and what was authenticated before would go on as the one of before.
    var isOfUnnamedCache: Bool { if case .cache(_, nil) = source { true } else { false } }

    /// Who asks, as far as the file says it.
    var user: String {
        switch source {
        case .keytab(let path, let principal), .cache(let path, let principal): principal ?? path
        case nil: ""
        }
    }

    /// - Parameter service: as it is written in `service`, or made of a host.
    static func target(_ service: String) -> GSSTarget {
        service.contains("/") ? .principal(service) : .service(service)
    }
}
