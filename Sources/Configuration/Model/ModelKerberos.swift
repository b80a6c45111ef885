/// The file that tickets of Kerberos come from: of the block of an identity, and of `negotiate` under `proxy`.
public enum TicketSource: Sendable, Hashable {
    /// A file with long-term keys at an absolute path. `principal` is `name@REALM`; nil takes the first of the file.
    case keytab(path: String, principal: String?)
    /// A file of tickets that another program keeps fresh, at an absolute path; `principal` nil takes the file's own.
    case cache(path: String, principal: String?)

    /// The file of keys as a secret; nil: there is none, since tickets are another program's.
    public var keys: SecretReference? { if case .keytab(let path, _) = self { .file(path: path) } else { nil } }

    /// The file of tickets, which is no secret of ours to watch.
    public var cache: String? { if case .cache(let path, _) = self { path } else { nil } }

    /// Files and folders that the system's library reads beside the one that is named: its configuration, and which mechanisms there are.
    package static func files(environment: (String) -> String?) -> [String] {
        let configuration = environment("KRB5_CONFIG")?.split(separator: ":").map(String.init) ?? ["/etc/krb5.conf"]
        // SSSD's part of krb5.conf stands apart.
        return configuration + ["/etc/krb5.conf.d", "/etc/gss", "/var/lib/sss/pubconf/krb5.include.d"]
    }
}
