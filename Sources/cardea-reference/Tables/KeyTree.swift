import Configuration
import Handshakes

/// The blocks of the file, each once, wherever it stands.
struct KeyTree {
    struct Section {
        let block: Block
        /// Its name where that is its own, else behind that of the block around it.
        let anchor: String
        /// Where it stands in a file: `routes[].tls`, `identities.*.network.tls`.
        var places: [String]
        /// Blocks around it.
        let depth: Int
    }

    private(set) var sections: [Section] = []

    init(_ root: Block = Keys.configuration(Schemes.all)) { visit(root, at: "", in: nil, depth: 0) }

    /// The section of a block that some key has.
    func section(of block: Block) -> Section? { sections.first { Self.isSame(block, $0.block) } }

    private mutating func visit(_ block: Block, at place: String, in parent: String?, depth: Int) {
        if let known = sections.firstIndex(where: { Self.isSame(block, $0.block) }) {
            sections[known].places.append(place)
            return
        }
        let isTaken = sections.contains { $0.anchor == block.name }
        let anchor = isTaken ? "\(parent ?? "")-\(block.name)" : block.name
        sections.append(Section(block: block, anchor: anchor, places: place.isEmpty ? [] : [place], depth: depth))
        for key in block.keys {
            visit(key.type, at: place.isEmpty ? key.name : "\(place).\(key.name)", in: anchor, depth: depth + 1)
        }
    }

    private mutating func visit(_ type: ValueType, at place: String, in parent: String, depth: Int) {
        switch type {
        case .block(let block): visit(block, at: place, in: parent, depth: depth)
        case .list(let item): visit(item, at: place + "[]", in: parent, depth: depth)
        case .named(_, let item): visit(item, at: place + ".*", in: parent, depth: depth)
        case .either(let types): for type in types { visit(type, at: place, in: parent, depth: depth) }
        case .text, .words, .boolean, .integer, .duration, .size, .secret, .json: break
        }
    }

    /// Blocks are told apart by what they have: `defaults.route` is a route without a name.
    private static func isSame(_ one: Block, _ other: Block) -> Bool {
        one.name == other.name && Set(one.keys.map(\.name)).isSubset(of: other.keys.map(\.name))
    }
}

/// The form of a value, in words.
enum ValueWords {
    static func words(_ type: ValueType, _ link: (Block) -> String) -> String {
        switch type {
        case .text, .boolean: Markdown.plain(type.expectation)
        case .words(let words, let aliases):
            Markdown.codes(words, words.count == 2 ? " or " : ", ") + others(aliases)
        case .integer: type.expectation
        case .duration(let least):
            "a duration with its unit: `ms`, `s`, `m`, `h` or `d`"
                + (least == .zero
                    ? ""
                    : least < .seconds(1)
                        ? "; at least `\(least / .milliseconds(1))ms`" : "; at least `\(least.components.seconds)s`")
        case .size: "a size with its unit: `B`, `KiB`, `MiB` or `GiB`"
        case .secret: "a secret reference: `file:`, `env:`, `credential:` or `exec:`"
        case .list(let item): "a list, each item \(words(item, link))"
        case .named(let form, let item): "a map of \(plural(form)), each with \(words(item, link))"
        case .block(let block): link(block)
        case .json: "a JSON value"
        case .either(let types): either(types, link)
        }
    }

    /// Other spellings, without those that YAML gives `on` and `off`.
    private static func others(_ aliases: [String: String]) -> String {
        let others = aliases.filter { !["true", "false", "yes", "no"].contains($0.key) }.sorted { $0.key < $1.key }
        guard !others.isEmpty else { return "" }
        return " (\(others.map { "`\($0.key)` is `\($0.value)`" }.joined(separator: ", ")))"
    }

    /// One, or a list of the same, is the commonest choice.
    private static func either(_ types: [ValueType], _ link: (Block) -> String) -> String {
        if types.count == 2, case .list(let item) = types[1] {
            let one = words(types[0], link)
            if one == words(item, link) { return "\(one); or a list of them" }
        }
        return types.map { words($0, link) }.joined(separator: "; or ")
    }

    private static func plural(_ form: TextForm) -> String {
        switch form {
        case .headerName: "header names"
        case .hostName: "host names"
        default: "names"
        }
    }
}
