/// Where references to secrets and names of files are written, so that what is wrong with one of them is told at its own line.
public struct WrittenPlaces: Sendable, Equatable {
    /// In the order of the file.
    private var marks: [String: [Mark]] = [:]

    private static let schemes = ["file:", "env:", "credential:", "exec:"]
    private static let files: Set<String> = ["ca", "certificate", "client_ca", "ocsp", "command"]

    init(_ root: Node) { note(root, key: "", at: root.mark) }

    private mutating func note(_ node: Node, key: String, at mark: Mark) {
        switch node.content {
        case .map(let entries): for entry in entries { note(entry.value, key: entry.key, at: entry.mark) }
        case .list(let items): for item in items { note(item, key: key, at: item.mark) }
        case .scalar(let scalar):
            guard Self.files.contains(key) || Self.schemes.contains(where: { scalar.text.hasPrefix($0) }) else {
                return
            }
            // A command's arguments may be secrets.
            let isCommand = scalar.text.hasPrefix("exec:")
            let reference = isCommand ? String(scalar.text.prefix { $0 != " " && $0 != "\t" }) : scalar.text
            marks[reference, default: []].append(mark)
        }
    }

    /// - Parameters:
    ///   - reference: a secret's reference, or a file's path.
    ///   - owner: the begin of the identity, route or listener that names it, maybe by `defaults`.
    /// - Returns: its place; the owner's where it is not found.
    public func mark(of reference: String, in owner: Mark) -> Mark {
        let marks = marks[reference]
        let behind = marks?.first { mark in
            mark.file == owner.file && (mark.line, mark.column) >= (owner.line, owner.column)
        }
        return behind ?? marks?.first ?? owner
    }
}
