/// Typed access to one block that `Checker` has seen. A value that cannot be read was reported there; here it is
/// replaced by its default or by the least value of its type, and the configuration is not used.
package struct BlockReader {
    /// nil where no map is written.
    package let node: Node?
    /// The node in the block's place, also where it is no map.
    let value: Node?
    package let block: Block
    /// Where the block stands, or the nearest place above it.
    package let mark: Mark
    /// The block's name in messages, such as "identity 'hr' (basic)".
    package let place: String
    package let findings: Findings

    package init(_ node: Node?, _ block: Block, mark: Mark, place: String = "", findings: Findings) {
        self.node = node?.map == nil ? nil : node
        value = node
        self.block = block
        self.mark = node?.mark ?? mark
        self.place = place
        self.findings = findings
    }

    package func entry(_ key: String) -> Node.Entry? {
        assert(block[key] != nil, "\(block.name) has no key \(key)")
        return node?[key]
    }

    package func has(_ key: String) -> Bool { entry(key) != nil }
    package func mark(_ key: String) -> Mark { entry(key)?.mark ?? mark }
    /// The keys in `keys` that are written.
    package func written(_ keys: [String]) -> [String] { keys.filter { has($0) } }
    /// Whether the key is not there, not even misspelt: then it was reported as unknown, with this key as the hint.
    package func lacks(_ key: String) -> Bool {
        if has(key) { return false }
        let names = block.keys.map(\.name)
        return !(node?.map ?? []).contains { block[$0.key] == nil && NearestWord.of($0.key, in: names) == key }
    }
    /// Keys that must be given and are not.
    package var missing: [String] { block.keys.filter { $0.required && lacks($0.name) }.map(\.name) }

    // MARK: - Single values

    /// The written text, or the default.
    package func text(_ key: String) -> String? {
        if let scalar = entry(key)?.value.scalar, !scalar.isAbsent { return scalar.text }
        guard entry(key) == nil else { return nil }
        return block[key]?.defaultText
    }

    /// The same, and nothing where there is neither.
    package func line(_ key: String) -> String { text(key) ?? "" }

    package func parsed<Value>(_ key: String, _ parse: (String) throws(TextFault) -> Value) -> Value? {
        text(key).flatMap { try? parse($0) }
    }

    package func boolean(_ key: String) -> Bool { text(key).flatMap(Units.boolean) ?? false }
    package func integer(_ key: String) -> Int? {
        guard case .integer(let range)? = block[key]?.type else { return nil }
        return parsed(key) { text throws(TextFault) in try Units.integer(text, in: range) }
    }
    package func duration(_ key: String) -> Duration { writtenOrDefaultDuration(key) ?? .zero }
    package func size(_ key: String) -> Int { parsed(key, Units.size) ?? 0 }
    /// Whether a duration stands there or is the default; what cannot be read was reported.
    package func isReadable(_ key: String) -> Bool { writtenOrDefaultDuration(key) != nil }
    package func isSize(_ key: String) -> Bool { parsed(key, Units.size) != nil }
    package func secret(_ key: String) -> SecretReference? { parsed(key, SecretReference.init(text:)) }
    package func httpURL(_ key: String) -> ServiceURL? { parsed(key, Self.httpURL) }
    package func servicePath(_ key: String) -> String { parsed(key, AddressParser.servicePath) ?? "" }
    /// A secret, or a block that names an identity.
    package func subjectToken(_ key: String) -> SubjectToken? {
        secret(key).map { .secret($0) } ?? inside(key).text("identity").map { .identity($0) }
    }
    package func path(_ key: String) -> String? { parsed(key, AddressParser.path) }

    package func word<Word: RawRepresentable<String> & CaseIterable>(_ key: String) -> Word {
        let canonical = text(key).flatMap { try? block[key]?.type.canonical($0) }
        // The first case stands in for a word that was reported.
        return canonical.flatMap(Word.init(rawValue:)) ?? Word.allCases[Word.allCases.startIndex]
    }

    package static func httpURL(_ text: String) throws(TextFault) -> ServiceURL {
        try AddressParser.url(text, schemes: [.http, .https])
    }

    private func writtenOrDefaultDuration(_ key: String) -> Duration? {
        parsed(key) { text throws(TextFault) in try Units.duration(text) }
    }

    // MARK: - Lists, maps, blocks

    /// A list, or one value as a list of one; nil where the key is not given.
    package func items(_ key: String) -> [Node]? {
        guard let value = entry(key)?.value else { return nil }
        return value.list ?? (value.scalar == nil ? [] : [value])
    }

    package func texts(_ key: String) -> [String]? { items(key)?.compactMap(\.scalar?.text) }

    package func list<Value>(_ key: String, _ parse: (String) throws(TextFault) -> Value) -> [Value]? {
        texts(key)?.compactMap { try? parse($0) }
    }

    /// A list of words; a word that is not known was reported already.
    package func words<Word: RawRepresentable<String>>(_ key: String) -> [Word]? {
        texts(key)?.compactMap { Word(rawValue: $0) }
    }

    package func pairs(_ key: String) -> [NamedValue] {
        (entry(key)?.value.map ?? []).compactMap { entry in
            entry.value.scalar.map { NamedValue(name: entry.key, value: $0.text) }
        }
    }

    package func inside(_ key: String, _ block: Block) -> BlockReader {
        let place = place.isEmpty ? "'\(key)'" : "'\(key)' of \(place)"
        return BlockReader(entry(key)?.value, block, mark: mark(key), place: place, findings: findings)
    }

    /// A block that stands in a list or under a name of the user's own.
    package func inside(_ node: Node, _ block: Block, place: String = "") -> BlockReader {
        BlockReader(node, block, mark: node.mark, place: place, findings: findings)
    }

    /// The block that the table has under this key, empty where none is written.
    package func inside(_ key: String) -> BlockReader {
        guard let inside = block[key]?.type.block else { preconditionFailure("\(block.name).\(key) is no block") }
        return self.inside(key, inside)
    }

    /// A reader for each block of a list; for a single block itself.
    package var each: [BlockReader] {
        guard let list = value?.list else { return [self] }
        return list.map { BlockReader($0, block, mark: mark, place: place, findings: findings) }
    }

    package func called(_ place: String) -> BlockReader {
        BlockReader(value, block, mark: mark, place: place, findings: findings)
    }
}

extension ValueType {
    /// The block that a value may be, or that an item of a list or a map may be.
    fileprivate var block: Block? {
        switch self {
        case .block(let block): block
        case .list(let type), .named(_, let type): type.block
        case .either(let types): types.lazy.compactMap(\.block).first
        default: nil
        }
    }
}

extension BlockReader {
    /// Every secret that is written, by its key; of several at one key the second is `key 2`. Names of the user's own stand behind the key,
    /// with dots between them.
    package var writtenSecrets: [NamedSecretReference] {
        block.keys.flatMap { spec in entry(spec.name).map { Self.secrets($0.value, spec.type, spec.name) } ?? [] }
    }

    private static func secrets(_ node: Node, _ type: ValueType, _ name: String) -> [NamedSecretReference] {
        switch type.fitting(node) {
        case .secret:
            let reference = node.scalar.flatMap { try? SecretReference(text: $0.text) }
            return reference.map { [NamedSecretReference(name, $0)] } ?? []
        case .list(let item):
            return (node.list ?? []).enumerated().flatMap { index, node in
                secrets(node, item, index == 0 ? name : "\(name) \(index + 1)")
            }
        case .named(_, let item):
            return (node.map ?? []).flatMap { secrets($0.value, item, "\(name).\($0.key)") }
        case .block(let block): return BlockReader(node, block, mark: node.mark, findings: Findings()).writtenSecrets
        default: return []
        }
    }
}
