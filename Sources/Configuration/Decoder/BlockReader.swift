/// Typed access to one block that `Checker` has seen. A value that cannot be read was reported there; here it is
/// replaced by its default or by the least value of its type, and the configuration is not used.
struct BlockReader {
    let node: Node?
    let block: Block
    /// Where the block stands, or the nearest place above it.
    let mark: Mark

    init(_ node: Node?, _ block: Block, mark: Mark) {
        self.node = node?.map == nil ? nil : node
        self.block = block
        self.mark = node?.mark ?? mark
    }

    func entry(_ key: String) -> Node.Entry? {
        assert(block[key] != nil, "\(block.name) has no key \(key)")
        return node?[key]
    }

    func has(_ key: String) -> Bool { entry(key) != nil }
    func mark(_ key: String) -> Mark { entry(key)?.mark ?? mark }
    /// The keys in `keys` that are written.
    func written(_ keys: [String]) -> [String] { keys.filter { has($0) } }
    /// Whether the key is not there, not even misspelt: then it was reported as unknown, with this key as the hint.
    func lacks(_ key: String) -> Bool {
        if has(key) { return false }
        let names = block.keys.map(\.name)
        return !(node?.map ?? []).contains { block[$0.key] == nil && NearestWord.of($0.key, in: names) == key }
    }
    /// Keys that must be given and are not.
    var missing: [String] { block.keys.filter { $0.required && lacks($0.name) }.map(\.name) }

    // MARK: - Single values

    /// The written text, or the default.
    func text(_ key: String) -> String? {
        if let scalar = entry(key)?.value.scalar, !scalar.isAbsent { return scalar.text }
        guard entry(key) == nil else { return nil }
        return block[key]?.defaultText
    }

    func parsed<Value>(_ key: String, _ parse: (String) throws(TextFault) -> Value) -> Value? {
        text(key).flatMap { try? parse($0) }
    }

    func boolean(_ key: String) -> Bool { text(key).flatMap(Units.boolean) ?? false }
    func integer(_ key: String) -> Int? {
        guard case .integer(let range)? = block[key]?.type else { return nil }
        return parsed(key) { text throws(TextFault) in try Units.integer(text, in: range) }
    }
    func duration(_ key: String) -> Duration { writtenOrDefaultDuration(key) ?? .zero }
    func size(_ key: String) -> Int { parsed(key, Units.size) ?? 0 }
    /// Whether a duration stands there or is the default; what cannot be read was reported.
    func isReadable(_ key: String) -> Bool { writtenOrDefaultDuration(key) != nil }
    func isSize(_ key: String) -> Bool { parsed(key, Units.size) != nil }
    func secret(_ key: String) -> SecretReference? { parsed(key, SecretReference.init(text:)) }
    func httpURL(_ key: String) -> ServiceURL? { parsed(key, Self.httpURL) }
    func path(_ key: String) -> String? { parsed(key, AddressParser.path) }

    func word<Word: RawRepresentable<String> & CaseIterable>(_ key: String) -> Word {
        let canonical = text(key).flatMap { try? block[key]?.type.canonical($0) }
        // The first case stands in for a word that was reported.
        return canonical.flatMap(Word.init(rawValue:)) ?? Word.allCases[Word.allCases.startIndex]
    }

    static func httpURL(_ text: String) throws(TextFault) -> ServiceURL {
        try AddressParser.url(text, schemes: [.http, .https])
    }

    private func writtenOrDefaultDuration(_ key: String) -> Duration? {
        parsed(key) { text throws(TextFault) in try Units.duration(text) }
    }

    // MARK: - Lists, maps, blocks

    /// A list, or one value as a list of one; nil where the key is not given.
    func items(_ key: String) -> [Node]? {
        guard let value = entry(key)?.value else { return nil }
        return value.list ?? (value.scalar == nil ? [] : [value])
    }

    func texts(_ key: String) -> [String]? { items(key)?.compactMap(\.scalar?.text) }

    func list<Value>(_ key: String, _ parse: (String) throws(TextFault) -> Value) -> [Value]? {
        texts(key)?.compactMap { try? parse($0) }
    }

    func pairs(_ key: String) -> [NamedValue] {
        (entry(key)?.value.map ?? []).compactMap { entry in
            entry.value.scalar.map { NamedValue(name: entry.key, value: $0.text) }
        }
    }

    func inside(_ key: String, _ block: Block) -> BlockReader {
        BlockReader(entry(key)?.value, block, mark: mark(key))
    }
}
