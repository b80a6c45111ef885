/// The bytes of a handshake block that an identity's digest is made from (docs/design/keys.md#digest).
///
/// Keys are sorted, values are in one spelling, a value that equals its default is left out: writing a default down,
/// moving a secret's file or a new version's new key changes nothing. What of a key counts stands beside it (`DigestPart`).
enum CanonicalForm {
    /// Each part is preceded by its length, so that no two different blocks give the same bytes.
    static func of(handshake: String, _ node: Node, _ block: Block) -> [UInt8] {
        var result: [UInt8] = []
        append(Array(handshake.utf8), to: &result)
        result += members(node, block)
        return result
    }

    private static func members(_ node: Node, _ block: Block) -> [UInt8] {
        var result: [UInt8] = []
        for entry in (node.map ?? []).sorted(by: { $0.key < $1.key }) {
            guard let spec = block[entry.key], spec.digest != .nothing,
                let bytes = spec.digest == .place
                    ? place(entry.value) ?? value(entry.value, spec.type) : value(entry.value, spec.type)
            else { continue }
            if let text = spec.defaultText, let canonical = try? spec.type.canonical(text),
                bytes == Array(canonical.utf8)
            {
                continue
            }
            if case .block = spec.type, bytes.isEmpty { continue }
            append(Array(spec.name.utf8), to: &result)
            append(bytes, to: &result)
        }
        return result
    }

    private static func value(_ node: Node, _ type: ValueType) -> [UInt8]? {
        var result: [UInt8] = []
        switch type.fitting(node) {
        case .list(let item):
            for node in node.list ?? [] { append(value(node, item) ?? [], to: &result) }
        case .named(let form, let item):
            let entries = (node.map ?? []).map { (key: (try? form.canonical($0.key)) ?? $0.key, value: $0.value) }
            for entry in entries.sorted(by: { $0.key < $1.key }) {
                append(Array(entry.key.utf8), to: &result)
                append(value(entry.value, item) ?? [], to: &result)
            }
        case .block(let block):
            result = members(node, block)
        case .json: result = json(node)
        case let type?:
            guard let scalar = node.scalar, let canonical = try? type.canonical(scalar.text) else { return nil }
            result = Array(canonical.utf8)
        case nil: return nil
        }
        return result
    }

    /// Nil for what is no reference, such as the name of another identity. Of a literal that it is one: its text is the value itself.
    private static func place(_ node: Node) -> [UInt8]? {
        guard let text = node.scalar?.text, let reference = try? SecretReference(text: text) else { return nil }
        if case .literal = reference { return Array("literal".utf8) }
        return Array(text.utf8)
    }

    /// The kind first: a list of one is not what stands in it. Members are sorted, as their order means nothing.
    private static func json(_ node: Node) -> [UInt8] {
        var result: [UInt8] = []
        switch node.content {
        case .scalar(let scalar):
            append([UInt8(ascii: scalar.isPlain ? "p" : "q")], to: &result)
            append(Array(scalar.text.utf8), to: &result)
        case .list(let items):
            append([UInt8(ascii: "l")], to: &result)
            for item in items { append(json(item), to: &result) }
        case .map(let entries):
            append([UInt8(ascii: "m")], to: &result)
            for entry in entries.sorted(by: { $0.key < $1.key }) {
                append(Array(entry.key.utf8), to: &result)
                append(json(entry.value), to: &result)
            }
        }
        return result
    }

    private static func append(_ bytes: [UInt8], to result: inout [UInt8]) {
        withUnsafeBytes(of: UInt32(clamping: bytes.count).bigEndian) { result += $0 }
        result += bytes
    }
}
