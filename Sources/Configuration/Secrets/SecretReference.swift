/// Where a secret is found. Holds the place, never the value, except for `literal`.
public enum SecretReference: Sendable, Hashable {
    /// A file, read again whenever it changes.
    case file(path: String)
    /// An environment variable.
    case environment(name: String)
    /// `$CREDENTIALS_DIRECTORY/name` (systemd).
    case credential(name: String)
    /// A program with its arguments; its standard output is the secret. No shell.
    case command(path: String, arguments: [String])
    /// The value itself, for trials only; every load warns.
    case literal(SecretBytes)
}

extension SecretReference: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The part that a person may see: the place; the arguments of a command and a literal are left out.
    public var description: String {
        switch self {
        case .file(let path): "file:\(path)"
        case .environment(let name): "env:\(name)"
        case .credential(let name): "credential:\(name)"
        case .command(let path, _): "exec:\(path)"
        case .literal: "literal:••••••••"
        }
    }

    /// The kind and place of the secret, as in `description`.
    public var debugDescription: String { description }
    // `dump` and string interpolation of containers go through the mirror and would print a command's arguments.
    /// Empty, so that `dump` prints nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
