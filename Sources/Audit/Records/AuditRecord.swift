/// What is written about one act, or about the uses of one credential: a word of ours, and fields out of a fixed list.
///
/// There is no place in it for a query, a header, a body, a path, a token or the words of an issuer. A user's name has a place as a
/// `SubjectTag` only.
package struct AuditRecord: Sendable {
    /// Nanoseconds of the wall clock since 1970.
    package var time: UInt64
    /// What was done.
    package var act: AuditAct
    /// In the order in which they are written.
    package var fields: [AuditField]

    /// Memberwise.
    package init(time: UInt64, act: AuditAct, fields: [AuditField] = []) {
        self.time = time
        self.act = act
        self.fields = fields
    }
}

/// The acts that are told.
package enum AuditAct: String, Sendable, CaseIterable {
    /// A process begins to write, or goes on after one that was killed.
    case start
    /// A process has written its last record.
    case stop
    /// An issuer gave a token for a secret, a login or nothing at all.
    case grant
    /// An issuer gave a token for one that we had.
    case refresh
    /// An issuer or an upstream refused.
    case refusal
    /// An operator threw tokens away.
    case purge
    /// A person logged in.
    case login
    /// An operator ended a login.
    case logout
    /// An operator lifted a quarantine.
    case reset
    /// A configuration took effect, or was refused.
    case reload
    /// The tokens were sealed anew.
    case rotation
    /// A credential was added to requests, so many times within a minute.
    case uses
    /// A credential was added to one request.
    case use
    /// Records were left out: the disk or the process had no room for them.
    case dropped
}

/// One field. A key stands at most once in a record.
package struct AuditField: Sendable {
    /// Its name in the line.
    package let key: Key
    /// Formatted when the line is written.
    package let value: Value

    /// Memberwise.
    package init(_ key: Key, _ value: Value) {
        self.key = key
        self.value = value
    }

    /// Every field that a record may have.
    package enum Key: String, Sendable, CaseIterable {
        case identity, route, issuer, origin, caller, subject, generation, minute, count, method, status, result, reason
        case edition, version, host, service
        case cutOctets = "cut_octets"
    }

    /// The value of a field.
    package enum Value: Sendable {
        /// A name from the configuration, a host, an address. At most 128 octets are written.
        case name(String)
        /// A word of ours.
        case word(StaticString)
        case count(UInt64)
        /// Nanoseconds since 1970.
        case time(UInt64)
        case subject(SubjectTag)
    }
}
