/// Holds a tree against its tables: unknown keys, wrong types, values out of bounds.
/// The checker looks at what is written, each place once, before defaults are merged; what is missing is the decoder's matter.
struct Checker {
    let findings: Findings
    /// The blocks around the one that is looked at, each with the key that leads inside.
    private var around: [(block: Block, key: String)] = []

    init(findings: Findings) { self.findings = findings }

    /// `place` completes "in …" for a block, such as "route 'hr'".
    mutating func check(_ node: Node, _ block: Block, place: String) {
        guard let entries = node.map else {
            findings.error("\(place) must be \(ValueType.block(block).expectation), not \(node.kind)", node.mark)
            return
        }
        for entry in entries {
            guard let spec = block[entry.key] else {
                unknown(entry, beside: entries.map(\.key), block, place: place)
                continue
            }
            check(entry.value, spec.type, spec: spec, block: block, mark: entry.mark, place: place)
        }
    }

    private mutating func unknown(_ entry: Node.Entry, beside others: [String], _ block: Block, place: String) {
        let key = Quoted.short(entry.key)
        var message = "unknown key '\(key)' in \(place)"
        if entry.key == "<<" {
            message = "'<<' is not supported; shared settings go under 'defaults'"
        } else if let word = Keys.confusions[block.name]?[entry.key] {
            message += "; here it is called '\(word)'"
        } else if let outer = around.last, outer.block[entry.key] != nil {
            message += "; it stands one level up, beside '\(outer.key)'"
        } else if let near = NearestWord.of(entry.key, in: block.keys.map(\.name)) {
            message += "; did you mean '\(near)'?"
        } else if let child = Self.home(of: entry.key, in: block, beside: others) {
            message += "; it belongs under '\(child)'"
        } else if let outer = around.last, let near = NearestWord.of(entry.key, in: outer.block.keys.map(\.name)) {
            message += "; did you mean '\(near)', which stands one level up, beside '\(outer.key)'?"
        } else {
            message += "; known: \(block.keys.map(\.name).joined(separator: ", "))"
        }
        findings.error(message, entry.mark)
    }

    /// The block inside this one that has such a key: the only one, or one that is written.
    private static func home(of key: String, in block: Block, beside others: [String]) -> String? {
        let homes = block.keys.filter { spec in
            switch spec.type {
            case .block(let inside), .list(.block(let inside)), .named(_, .block(let inside)): inside[key] != nil
            default: false
            }
        }.map(\.name)
        return homes.first { others.contains($0) } ?? (homes.count == 1 ? homes[0] : nil)
    }

    // `mark` is the key's: a missing value has no place of its own that a person would look at.
    private mutating func check(
        _ node: Node, _ type: ValueType, spec: KeySpec, block: Block, mark: Mark, place: String
    ) {
        if node.scalar?.isFaulty == true { return }
        guard let type = type.fitting(node) else {
            let advice =
                node.isUnquotedTemplate ? "; a value that begins with { needs quotes" : spec.type.spelling(of: node)
            findings.error("'\(spec.name)' must be \(type.expectation), not \(node.kind)\(advice) (in \(place))", mark)
            return
        }
        switch type {
        case .either, .json: break
        case .list(let item):
            for node in node.list ?? [] {
                check(node, item, spec: spec, block: block, mark: node.mark, place: place)
            }
        case .named(let form, let item):
            for entry in node.map ?? [] {
                if let fault = form.fault(entry.key) {
                    findings.error(
                        "'\(Quoted.short(entry.key))' in '\(spec.name)': a name here \(fault.reason)", entry.mark)
                }
                check(
                    entry.value, item, spec: spec, block: block, mark: entry.mark, place: inner(entry.key, spec, place))
            }
        case .block(let inside):
            around.append((block, spec.name))
            defer { around.removeLast() }
            check(node, inside, place: inside.keys.isEmpty ? place : self.place(of: spec, in: block, node, place))
        case .words(let words, let aliases):
            guard let scalar = node.scalar else { return }
            word(scalar, words, aliases, spec: spec, block: block, mark: mark)
        default:
            guard let scalar = node.scalar else { return }
            do {
                _ = try type.canonical(scalar.text)
                if case .secret = type, scalar.text.hasPrefix("literal:") {
                    findings.warning(
                        "'\(spec.name)' stands in the file itself; use file:, env:, credential: or exec:", mark)
                }
            } catch {
                findings.error("'\(spec.name)\(shown(scalar, type))' \(error.reason)", mark)
            }
        }
    }

    private mutating func word(
        _ scalar: Node.Scalar, _ words: [String], _ aliases: [String: String], spec: KeySpec, block: Block, mark: Mark
    ) {
        guard words.contains(scalar.text) || aliases[scalar.text] != nil else {
            // The message also tells which other forms the key takes, since a person tries a word first.
            let expected = spec.type.expectation
            let begun = words.filter { !scalar.text.isEmpty && $0.hasPrefix(scalar.text.lowercased()) }
            let near =
                (NearestWord.of(scalar.text, in: words + aliases.keys.sorted()) ?? (begun.count == 1 ? begun[0] : nil))
                .map { "; did you mean '\($0)'?" } ?? spec.type.spelling(ofWord: scalar.text)
            findings.error("'\(spec.name)' must be \(expected), not '\(Quoted.short(scalar.written))'\(near)", mark)
            return
        }
    }

    // MARK: - Words of messages

    private func inner(_ name: String, _ spec: KeySpec, _ place: String) -> String {
        switch spec.name {
        case "identities": "identity '\(Quoted.short(name))'"
        case "listeners": "listener '\(Quoted.short(name))'"
        default: place
        }
    }

    private func place(of spec: KeySpec, in block: Block, _ node: Node, _ place: String) -> String {
        switch spec.name {
        case "identities", "listeners": return place
        case "routes":
            if let name = node["name"]?.value.scalar?.written { return "route '\(Quoted.short(name))'" }
            return "the route in line \(node.mark.line)"
        default: break
        }
        if block.exactlyOneOf.contains(spec.name) { return "\(place) (\(spec.name))" }
        return place == "the file" ? "'\(spec.name)'" : "'\(spec.name)' of \(place)"
    }

    /// Short numbers and words help; anything that may hold a password is left out.
    private func shown(_ scalar: Node.Scalar, _ type: ValueType) -> String {
        switch type {
        case .duration, .size, .integer, .boolean, .text(.refreshAhead), .text(.share):
            ": \(Quoted.short(scalar.written))"
        default: ""
        }
    }
}

extension TextForm {
    func fault(_ text: String) -> TextFault? {
        do {
            _ = try canonical(text)
            return nil
        } catch {
            return error
        }
    }
}

extension ValueType {
    /// The one spelling that counts for an identity's digest; of a secret only that there is one.
    func canonical(_ text: String) throws(TextFault) -> String {
        switch self {
        case .text(let form): return try form.canonical(text)
        case .words(let words, let aliases):
            guard let word = words.contains(text) ? text : aliases[text] else {
                throw TextFault("must be \(expectation)")
            }
            return word
        case .boolean:
            guard let value = Units.boolean(text) else { throw TextFault("must be true or false") }
            return value ? "true" : "false"
        case .integer(let range): return String(try Units.integer(text, in: range))
        case .duration(let least): return String(try Units.duration(text, atLeast: least).wholeNanoseconds)
        case .size: return String(try Units.size(text))
        case .secret:
            _ = try SecretReference(text: text)
            return "given"
        case .list, .named, .block, .either, .json: return text
        }
    }
}
