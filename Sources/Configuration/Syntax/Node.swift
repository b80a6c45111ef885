/// A piece of a YAML file with its place. Scalars stay text: the key's type decides what they are.
struct Node: Sendable {
    indirect enum Content: Sendable {
        case scalar(Scalar)
        case list([Node])
        case map([Entry])
    }

    struct Scalar: Sendable {
        /// After expansion of variables.
        var text: String
        /// As it stands in the file; the only form that a message may show, as a variable may hold a secret.
        var written: String
        /// Nothing at all after the colon.
        var isAbsent: Bool
        /// Its variables could not be put in, which has been said: nothing else is to be said of it.
        var isFaulty = false
        /// Without quotes.
        var isPlain = false
        /// Column of the first character, where every character stands in the file as it is read; nil elsewhere.
        var column: Int?
    }

    struct Entry: Sendable {
        var key: String
        var mark: Mark
        var value: Node
    }

    var content: Content
    var mark: Mark
}

extension Node {
    var scalar: Scalar? { if case .scalar(let scalar) = content { scalar } else { nil } }
    var list: [Node]? { if case .list(let items) = content { items } else { nil } }
    var map: [Entry]? { if case .map(let entries) = content { entries } else { nil } }

    subscript(key: String) -> Entry? { map?.first { $0.key == key } }

    /// YAML reads `{name}` without quotes as a map of that name to nothing.
    var isUnquotedTemplate: Bool {
        guard let entries = map, entries.count == 1 else { return false }
        return entries[0].value.scalar?.isAbsent == true
    }

    /// What a message calls it.
    var kind: String {
        switch content {
        case .scalar(let scalar): scalar.isAbsent ? "nothing" : "a single value"
        case .list: "a list"
        case .map: "a map"
        }
    }

    /// A node that is not in any file.
    static func made(_ text: String, at mark: Mark) -> Node {
        Node(content: .scalar(.init(text: text, written: text, isAbsent: false)), mark: mark)
    }

    /// `self` over `base`: maps merge key by key, everything else replaces.
    func merged(over base: Node?) -> Node {
        guard let base, case .map(let own) = content, case .map(let below) = base.content else { return self }
        var entries = own
        for (index, entry) in entries.enumerated() {
            entries[index].value = entry.value.merged(over: base[entry.key]?.value)
        }
        let names = Set(own.map(\.key))
        entries += below.filter { !names.contains($0.key) }
        return Node(content: .map(entries), mark: mark)
    }
}
