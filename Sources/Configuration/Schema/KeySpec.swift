/// A key of the file: what the decoder accepts, what `cardea schema` prints, and where its default stands.
package struct KeySpec: Sendable {
    package var name: String
    package var type: ValueType
    package var description: String
    package var required: Bool
    /// The default as it would be written in the file; for words the first one where nothing else is said.
    private var writtenDefault: String?
    package var digest: DigestPart

    package init(
        _ name: String, _ type: ValueType, _ description: String, default written: String? = nil,
        required: Bool = false, digest: DigestPart = .value
    ) {
        self.name = name
        self.type = type
        self.description = description
        self.required = required
        self.digest = digest
        writtenDefault = written
    }

    /// A block under its own name.
    package init(_ block: Block) { self.init(block.name, .block(block), block.description) }

    /// The value that holds where the key is not written: of words the first, unless another is named.
    package var defaultText: String? {
        if let writtenDefault { return writtenDefault }
        guard !required, case .words(let words, _) = type else { return nil }
        return words.first
    }
}

/// The meaning of a key's value for the digest of an identity (docs/design/keys.md#digest).
package enum DigestPart: Sendable {
    /// Another value makes another identity. Of a secret only that there is one counts: the client or the user beside it tells the issuer
    /// whose the token is.
    case value
    /// The place of a secret that says who we are, where nothing else does. A new value at the same place is the same principal, another
    /// place another one; the value itself never counts.
    case place
    /// Policy that does not decide which token is had.
    case nothing
}

/// A table of keys.
package struct Block: Sendable {
    package var name: String
    package var description: String
    package var keys: [KeySpec]
    /// Keys of which one is to be written, and no second one.
    package var exactlyOneOf: [String] = []

    package init(name: String, description: String, keys: [KeySpec], exactlyOneOf: [String] = []) {
        self.name = name
        self.description = description
        self.keys = keys
        self.exactlyOneOf = exactlyOneOf
    }

    package subscript(key: String) -> KeySpec? { keys.first { $0.name == key } }
}

/// The kinds of values that a key may have.
package indirect enum ValueType: Sendable {
    case text(TextForm)
    /// Canonical words and other spellings of them.
    case words([String], aliases: [String: String])
    case boolean
    case integer(ClosedRange<Int>)
    /// At least this long, at most 366 days.
    case duration(atLeast: Duration)
    case size
    case secret
    case list(ValueType)
    /// Names of the user's own, each with a value.
    case named(TextForm, ValueType)
    case block(Block)
    /// Any JSON, with templates of a recipe in its texts.
    case json
    /// Chosen by the kind of the node: at most one alternative for a single value, a list and a map each.
    case either([ValueType])

    package static func words(_ words: [String]) -> ValueType { .words(words, aliases: [:]) }
    /// The words of a handshake's block stand in the digests of identities, and the first is the default that is left out there. Each raw
    /// value is therefore written out: a case may be renamed, its word may not.
    package static func words<Word: CaseIterable & RawRepresentable<String>>(_ type: Word.Type) -> ValueType {
        .words(type.allCases.map(\.rawValue), aliases: [:])
    }
    package static func oneOrMore(_ type: ValueType) -> ValueType { .either([type, .list(type)]) }
    package static var onOff: ValueType {
        .words(["on", "off"], aliases: ["true": "on", "yes": "on", "false": "off", "no": "off"])
    }
}

extension ValueType {
    /// The alternative that the node's kind picks; nil where none fits.
    package func fitting(_ node: Node) -> ValueType? {
        switch self {
        case .either(let types):
            return types.lazy.compactMap { $0.fitting(node) }.first
        case .json: return self
        case .list: return node.list == nil ? nil : self
        case .named, .block: return node.map == nil ? nil : self
        default:
            guard let scalar = node.scalar, !scalar.isAbsent else { return nil }
            return self
        }
    }

    /// The words in which a message says what was expected.
    package var expectation: String {
        switch self {
        case .text(let form): form.expectation
        case .words(let words, _): words.count == 1 ? "'\(words[0])'" : "one of \(words.joined(separator: ", "))"
        case .boolean: "true or false"
        case .integer(let range):
            range.upperBound == .max
                ? "a whole number of at least \(range.lowerBound)"
                : "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .duration: "a duration such as 500ms, 5s, 15m, 2h or 1d"
        case .size: "a size such as 512B, 64KiB or 1MiB"
        case .secret: "a secret reference: file:, env:, credential: or exec:"
        case .list(let type): "a list, each item \(type.expectation)"
        case .named(_, let type): "a map of names, each with \(type.expectation)"
        case .block(let block):
            "a map (\(block.keys.prefix(4).map(\.name).joined(separator: ", "))\(block.keys.count > 4 ? ", …" : ""))"
        case .either(let types): types.map(\.expectation).joined(separator: ", or ")
        case .json: "a JSON value"
        }
    }

    /// How a value that was written as one word, where a list or a map is wanted, is to be written; empty where nobody can tell. Never of a
    /// secret.
    package func spelling(of node: Node) -> String {
        guard let text = node.scalar?.text, !text.isEmpty, text.utf8.count <= 100 else { return "" }
        switch self {
        case .list(.text), .list(.words):
            let items = text.split { $0 == " " || $0 == "," }
            let isPlain = items.allSatisfy { $0.allSatisfy { $0.isLetter || $0.isNumber || "._-:/".contains($0) } }
            return isPlain && items.count <= 8 ? "; write [\(items.joined(separator: ", "))]" : ""
        case .block(let block):
            return text.hasPrefix("/") && !text.contains(" ") && block["path"] != nil ? "; write {path: \(text)}" : ""
        default: return ""
        }
    }

    /// The same where one of a few words, or a map, is wanted.
    package func spelling(ofWord text: String) -> String {
        guard case .either(let types) = self else { return "" }
        func takes(_ key: String) -> Bool {
            types.contains { if case .block(let block) = $0 { block[key] != nil } else { false } }
        }
        if takes("allow"), (try? AddressParser.network(text)) != nil { return "; write {allow: [\(text)]}" }
        let isPath = text.hasPrefix("/") && !text.contains(" ") && text.utf8.count <= 100
        return isPath && takes("path") ? "; write {path: \(text)}" : ""
    }
}
