/// A piece of a YAML file with its place. Scalars stay text: the key's type decides what they are.
package struct Node: Sendable {
    package indirect enum Content: Sendable {
        case scalar(Scalar)
        case list([Node])
        case map([Entry])
    }

    package struct Scalar: Sendable {
        /// After expansion of variables.
        package var text: String
        /// The text as it stands in the file; the only form that a message may show, as a variable may hold a secret.
        package var written: String
        /// Nothing at all after the colon.
        package var isAbsent: Bool
        /// Its variables could not be put in, which has been said: nothing else is to be said of it.
        package var isFaulty = false
        /// Without quotes.
        package var isPlain = false
        /// Column of the first character, where every character stands in the file as it is read; nil elsewhere.
        package var column: Int?
    }

    package struct Entry: Sendable {
        package var key: String
        package var mark: Mark
        package var value: Node
    }

    package var content: Content
    package var mark: Mark
}

extension Node {
    package var scalar: Scalar? { if case .scalar(let scalar) = content { scalar } else { nil } }
    package var list: [Node]? { if case .list(let items) = content { items } else { nil } }
    package var map: [Entry]? { if case .map(let entries) = content { entries } else { nil } }

    package subscript(key: String) -> Entry? { map?.first { $0.key == key } }

    /// YAML reads `{name}` without quotes as a map of that name to nothing.
    package var isUnquotedTemplate: Bool {
        guard let entries = map, entries.count == 1 else { return false }
        return entries[0].value.scalar?.isAbsent == true
    }

    /// The node's kind in messages.
    package var kind: String {
        switch content {
        case .scalar(let scalar): scalar.isAbsent ? "nothing" : "a single value"
        case .list: "a list"
        case .map: "a map"
        }
    }

    /// A node that is not in any file.
    package static func made(_ text: String, at mark: Mark) -> Node {
        Node(content: .scalar(.init(text: text, written: text, isAbsent: false)), mark: mark)
    }

    /// `self` over `base`: maps merge key by key, everything else replaces.
    package func merged(over base: Node?) -> Node {
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
