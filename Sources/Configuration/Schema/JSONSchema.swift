internal import Numbers
internal import Octets

extension Configuration {
    /// The schema's name, in the way of the problems' types: it is nowhere to be fetched, as it comes with the program.
    package static let identifier = "urn:cardea:configuration"

    /// The JSON Schema (draft 2020-12) of the file, made from the tables that the decoder uses.
    /// - Parameter schemes: those that an identity may have.
    package static func jsonSchema(_ schemes: [any ConfiguredScheme.Type]) -> String {
        var members: [(String, JSONText)] = [
            ("$schema", .string("https://json-schema.org/draft/2020-12/schema")),
            ("$id", .string(identifier)), ("title", .string("Cardea configuration")),
            (
                "$defs",
                .object([("variable", .object([("type", .string("string")), ("pattern", .string("\\$\\{"))]))])
            ),
        ]
        members += SchemaText.block(Keys.configuration(schemes))
        return JSONText.object(members).rendered(indent: 0) + "\n"
    }
}

/// The meaning of the tables in JSON Schema. Every single value may also be a `${VARIABLE}`.
private enum SchemaText {
    static func block(_ block: Block) -> [(String, JSONText)] {
        let properties = block.keys.map { spec in (spec.name, JSONText.object(key(spec, in: block))) }
        var members: [(String, JSONText)] = [
            ("type", .string("object")), ("description", .string(block.description)),
            ("additionalProperties", .boolean(false)), ("properties", .object(properties)),
        ]
        // A route's missing keys may stand under `defaults`.
        let required = block.keys.filter { $0.required && block.name != "route" }
        if !required.isEmpty { members.append(("required", .array(required.map { .string($0.name) }))) }
        if !block.exactlyOneOf.isEmpty {
            let one = block.exactlyOneOf.map { JSONText.object([("required", .array([.string($0)]))]) }
            members.append(("oneOf", .array(one)))
        }
        return members
    }

    private static func key(_ spec: KeySpec, in block: Block) -> [(String, JSONText)] {
        var members = type(spec.type, spec, block).filter { $0.0 != "description" }
        members.insert(("description", .string(spec.description)), at: 0)
        if let text = spec.defaultText { members.append(("default", value(text, spec.type))) }
        return members
    }

    private static func value(_ text: String, _ type: ValueType) -> JSONText {
        switch type {
        case .boolean: .boolean(text == "true")
        case .integer: ReceivedNumber(text)?.within(Int.min...Int.max).map { .number($0) } ?? .string(text)
        default: .string(text)
        }
    }

    private static func type(_ type: ValueType, _ spec: KeySpec, _ block: Block) -> [(String, JSONText)] {
        switch type {
        case .text(.line), .text(.anyLine), .text(.headerValue), .text(.name):
            return [("type", .array(["string", "number", "boolean"].map { .string($0) }))]
        // `off` is a boolean to YAML 1.1.
        case .text(.servicePathOrOff), .text(.proxy):
            return [("type", .array([.string("string"), .string("boolean")]))]
        case .text(let form):
            return [("type", .string("string")), ("$comment", .string(form.expectation))]
        case .words(let words, let aliases):
            return orVariable([("enum", .array((words + aliases.keys.sorted()).flatMap(spellings)))])
        case .boolean:
            return orVariable([("enum", .array(["true", "false", "on", "off", "yes", "no"].flatMap(spellings)))])
        case .integer(let range):
            var members: [(String, JSONText)] = [("type", .string("integer")), ("minimum", .number(range.lowerBound))]
            if range.upperBound != .max { members.append(("maximum", .number(range.upperBound))) }
            return orVariable(members)
        case .duration: return orVariable(pattern("^[0-9]+(ms|s|m|h|d)$"))
        case .size: return orVariable(pattern("^[0-9]+(B|KiB|MiB|GiB)$"))
        case .secret: return orVariable(pattern("^(file|env|credential|exec|literal):"))
        case .list(let item):
            return [("type", .string("array")), ("items", .object(self.type(item, spec, block)))]
        case .named(_, let item):
            return [("type", .string("object")), ("additionalProperties", .object(self.type(item, spec, block)))]
        case .block(let inside): return self.block(inside)
        case .either(let types):
            return [("anyOf", .array(types.map { .object(self.type($0, spec, block)) }))]
        case .json: return []
        }
    }

    private static func pattern(_ text: String) -> [(String, JSONText)] {
        [("type", .string("string")), ("pattern", .string(text))]
    }

    private static func orVariable(_ members: [(String, JSONText)]) -> [(String, JSONText)] {
        [("anyOf", .array([.object(members), .object([("$ref", .string("#/$defs/variable"))])]))]
    }

    /// An editor reads the file by YAML's guess, so a word that looks like something else is offered as that, too.
    private static func spellings(_ word: String) -> [JSONText] {
        switch word {
        case "true", "on", "yes": [.string(word), .boolean(true)]
        case "false", "off", "no": [.string(word), .boolean(false)]
        default: Double(word) == nil ? [.string(word)] : [.string(word), .literal(word)]
        }
    }
}

/// JSON that is only written, with its members in the order given.
private indirect enum JSONText {
    case string(String)
    case number(Int)
    case literal(String)
    case boolean(Bool)
    case array([JSONText])
    case object([(String, JSONText)])

    func rendered(indent: Int) -> String {
        let inner = String(repeating: "  ", count: indent + 1)
        let outer = String(repeating: "  ", count: indent)
        switch self {
        case .string(let text): return text.jsonQuoted
        case .number(let number): return String(number)
        case .literal(let text): return text
        case .boolean(let flag): return flag ? "true" : "false"
        case .array(let items):
            var seen: Set<String> = []
            let texts = items.map { $0.rendered(indent: indent + 1) }.filter { seen.insert($0).inserted }
            return "[" + texts.joined(separator: ", ") + "]"
        case .object(let members):
            guard !members.isEmpty else { return "{}" }
            let lines = members.map { "\(inner)\($0.0.jsonQuoted): \($0.1.rendered(indent: indent + 1))" }
            return "{\n" + lines.joined(separator: ",\n") + "\n\(outer)}"
        }
    }
}
