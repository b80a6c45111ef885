internal import Configuration
internal import GSSAPI

/// The settings of a block `negotiate`.
struct NegotiateSettings: Sendable, Equatable {
    /// The file that tickets come from; nil was reported.
    var source: TicketSource?
    /// The server's principal, or `service@host`; nil: `HTTP` at the host of the route's `to`.
    var service: String?
    /// An answer counts once the server has proven who it is (RFC 4559 §5).
    var wantsProof = true
    /// Nil: tickets are asked for in our own name alone.
    var users: NegotiateUsers?

    private enum Mutual: String, CaseIterable { case required, off }

    static let block = Block(
        name: "negotiate", description: "Kerberos by HTTP Negotiate (RFC 4559): a new token for each request.",
        keys: Keys.tickets + [
            KeySpec(
                "service", .text(.line),
                "The server, as HTTP/host@REALM or HTTP@host. HTTP at the host of the route's `to` where it is not given."
            ),
            KeySpec(
                "mutual", .words(Mutual.self),
                "required: a server has to prove with its answer that it is who `service` says; off: its word is taken, as most clients do."
            ),
            KeySpec(forUsers),
        ], exactlyOneOf: ["keytab", "cache"])

    private static let forUsers = Block(
        name: "for_users",
        description:
            "Tickets in the name of each request's subject, by the account's right to act for users (S4U2Self and S4U2Proxy, MS-SFU); needs `keytab`, and `subject` on routes.",
        keys: [
            KeySpec("realm", .text(.line), "The realm of all users.", required: true),
            KeySpec(
                "allow", .oneOrMore(.text(.line)),
                "Users by name, to the last octet; `text*` and `*text` are all names of printable ASCII that begin or end so.",
                required: true),
            KeySpec(
                "deny", .oneOrMore(.text(.line)),
                "Users who are refused whatever `allow` says, in any case of letters; krbtgt and names that end with $ always are."
            ),
            KeySpec(
                "strip_prefix", .text(.line),
                "The beginning of a subject that is no part of the name; others are refused."),
            KeySpec(
                "strip_suffix", .text(.line),
                "The end of a subject that is no part of the name, such as @corp.example; others are refused."),
        ])

    init(_ keys: BlockReader) {
        source = keys.ticketSource()
        service = keys.ticketService()
        wantsProof = keys.word("mutual") == Mutual.required
        if keys.has("for_users") { users = Self.users(keys) }
    }

    private static func users(_ keys: BlockReader) -> NegotiateUsers {
        let reader = keys.inside("for_users")
        reader.needRequired()
        if keys.has("cache") {
            keys.refuse("for_users", "needs 'keytab': the KDC has to know the account that acts for users")
        }
        let realm = reader.line("realm")
        if !realm.isEmpty, !NegotiateUsers.isRealm(realm) { reader.refuse("realm", "is no realm") }
        for key in ["allow", "deny"] {
            let written = reader.texts(key) ?? []
            if reader.has(key), written.isEmpty { reader.refuse(key, "has no name") }
            for text in written {
                let rule = NegotiateUsers.Rule(text)
                if rule.isUnclear { reader.refuse(key, "may have one '*', at the beginning or at the end of a name") }
                let name = String(decoding: rule.text, as: UTF8.self)
                guard !rule.isOpen, !NegotiateUsers.isName(name) else { continue }
                reader.refuse(
                    key, "has a name that no user has: without realm, '/' and '\\', and without blanks at its ends")
            }
        }
        let users = NegotiateUsers(
            realm: realm, allow: (reader.texts("allow") ?? []).map { .init($0) },
            deny: (reader.texts("deny") ?? []).map { .init($0) }, prefix: reader.line("strip_prefix"),
            suffix: reader.line("strip_suffix"))
        if users.allow.contains(where: \.isOpen) {
            reader.warn(
                "'allow' of \(reader.place) is everybody whom the KDC knows, administrators too unless 'deny' has them",
                at: "allow")
        }
        return users
    }

    /// The file of tickets, which is no secret of ours to watch.
    var cache: String? { source?.cache }

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

extension GSSCredential.Source {
    init(_ source: TicketSource) {
        switch source {
        case .keytab(let path, let principal): self = .keytab(path: path, principal: principal)
        case .cache(let path, let principal): self = .cache(path: path, principal: principal)
        }
    }
}
