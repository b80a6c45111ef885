import Testing

@testable import Configuration

/// The JSON Schema says of each kind of value what the decoder takes.
@Suite struct SchemaTextTests {
    /// A key of each kind.
    private struct Kinds: ConfiguredScheme {
        enum Word: String, CaseIterable {
            case first = "first"
            case number = "1.5"
        }

        static let inner = Block(
            name: "inner", description: "Inside.", keys: [KeySpec("i", .text(.scope), "I.", required: true)])
        static let key = KeySpec(
            Block(
                name: "kinds", description: "All \"kinds\".",
                keys: [
                    KeySpec("line", .text(.line), "L.", required: true), KeySpec("any", .text(.anyLine), "A."),
                    KeySpec("header", .text(.headerValue), "H."), KeySpec("name", .text(.name), "N."),
                    KeySpec("off", .text(.servicePathOrOff), "O.", default: "off"),
                    KeySpec("proxy", .text(.proxy), "P."),
                    KeySpec("scope", .text(.scope), "S."), KeySpec("word", .words(Word.self), "W."),
                    KeySpec("switch", .onOff, "X."), KeySpec("flag", .boolean, "F.", default: "true"),
                    KeySpec("no", .boolean, "F.", default: "false"),
                    KeySpec("few", .integer(1...9), "I.", default: "7"),
                    KeySpec("many", .integer(0...Int.max), "M."),
                    KeySpec("span", .duration(atLeast: .zero), "D.", default: "1s"),
                    KeySpec("size", .size, "B."), KeySpec("secret", .secret, "C."),
                    KeySpec("list", .list(.text(.scope)), "L."),
                    KeySpec("named", .named(.name, .integer(1...2)), "N."), KeySpec("inner", .block(inner), "K."),
                    KeySpec("either", .either([.text(.scope), .block(inner)]), "E."), KeySpec("json", .json, "J."),
                ]))
        init(_ keys: BlockReader, of identity: SchemeOwner) {}
    }

    private static let variable = "{'$ref': '#/$defs/variable'}"
    private static let inside =
        "{'type': 'object', 'description': 'Inside.', 'additionalProperties': false, 'properties': {'i': "
        + "{'description': 'I.', 'type': 'string', '$comment': 'a scope'}}, 'required': ['i']}"

    private static let switches = "['on', true, 'off', false, 'false', 'no', 'true', 'yes']"
    private static let flags = "['true', true, 'false', false, 'on', 'off', 'yes', 'no']"

    private static func either(_ text: String) -> String { "'anyOf': [{\(text)}, \(variable)]" }

    static let kinds: [(key: String, schema: String)] = [
        ("line", "'description': 'L.', 'type': ['string', 'number', 'boolean']"),
        ("any", "'description': 'A.', 'type': ['string', 'number', 'boolean']"),
        ("header", "'description': 'H.', 'type': ['string', 'number', 'boolean']"),
        ("name", "'description': 'N.', 'type': ['string', 'number', 'boolean']"),
        ("off", "'description': 'O.', 'type': ['string', 'boolean'], 'default': 'off'"),
        ("proxy", "'description': 'P.', 'type': ['string', 'boolean']"),
        ("scope", "'description': 'S.', 'type': 'string', '$comment': 'a scope'"),
        ("word", "'description': 'W.', \(either("'enum': ['first', '1.5', 1.5]")), 'default': 'first'"),
        (
            "switch",
            "'description': 'X.', \(either("'enum': \(switches)")), 'default': 'on'"
        ),
        (
            "flag",
            "'description': 'F.', \(either("'enum': \(flags)")), 'default': true"
        ),
        (
            "no",
            "'description': 'F.', \(either("'enum': \(flags)")), 'default': false"
        ),
        (
            "few",
            "'description': 'I.', \(either("'type': 'integer', 'minimum': 1, 'maximum': 9")), 'default': 7"
        ),
        ("many", "'description': 'M.', \(either("'type': 'integer', 'minimum': 0"))"),
        (
            "span",
            "'description': 'D.', \(either("'type': 'string', 'pattern': '^[0-9]+(ms|s|m|h|d)$'")), 'default': '1s'"
        ),
        (
            "size",
            "'description': 'B.', \(either("'type': 'string', 'pattern': '^[0-9]+(B|KiB|MiB|GiB)$'"))"
        ),
        (
            "secret",
            "'description': 'C.', \(either("'type': 'string', 'pattern': '^(file|env|credential|exec|literal):'"))"
        ),
        (
            "list",
            "'description': 'L.', 'type': 'array', 'items': {'type': 'string', '$comment': 'a scope'}"
        ),
        (
            "named",
            "'description': 'N.', 'type': 'object', 'additionalProperties': "
                + "{\(either("'type': 'integer', 'minimum': 1, 'maximum': 2"))}"
        ),
        (
            "inner",
            "'description': 'K.', "
                + inside.dropFirst().dropLast().replacing("'description': 'Inside.', ", with: "")
        ),
        (
            "either",
            "'description': 'E.', 'anyOf': [{'type': 'string', '$comment': 'a scope'}, \(inside)]"
        ),
        ("json", "'description': 'J.'"),
    ]

    /// Without line breaks and indentation, and with quotes that need no escape.
    private static let flat = Configuration.jsonSchema([Kinds.self])
        .split(separator: "\n").map { $0.drop { $0 == " " } }.joined(separator: " ")
        .replacing("{ ", with: "{").replacing(" }", with: "}").replacing("\"", with: "'")

    @Test(arguments: kinds)
    func eachKindHasItsSchema(key: String, schema: String) {
        #expect(Self.flat.contains("'\(key)': {\(schema)}"))
    }

    @Test func theBlocksSayWhatTheyNeed() {
        #expect(
            Self.flat.contains(
                "'kinds': {'description': 'All \\'kinds\\'.', 'type': 'object', "
                    + "'additionalProperties': false, 'properties': {'line'"
            ))
        #expect(Self.flat.contains("'json': {'description': 'J.'}}, 'required': ['line']}, 'token': {"))
        #expect(Self.flat.contains("'oneOf': [{'required': ['kinds']}]"))
        #expect(!Self.flat.contains("'required': ['listen']"), "a route's may stand under defaults")
        #expect(Self.flat.contains("'required': ['address']"))
        #expect(!Self.flat.contains("'required': []"))
    }

    @Test func theSchemaHasAHeadAndLines() {
        let schema = Configuration.jsonSchema([Kinds.self])
        let head = """
            {
              "$schema": "https://json-schema.org/draft/2020-12/schema",
              "$id": "urn:cardea:configuration",
              "title": "Cardea configuration",
              "$defs": {
                "variable": {
                  "type": "string",
                  "pattern": "\\\\$\\\\{"
                }
              },
              "type": "object",
              "description": "A Cardea configuration.",
              "additionalProperties": false,
              "properties": {
                "identities": {

            """
        #expect(schema.hasPrefix(head))
        let key = """
                          "many": {
                            "description": "M.",
                            "anyOf": [{
                                "type": "integer",
                                "minimum": 0
                              }, {
                                "$ref": "#/$defs/variable"
                              }]
                          },
            """
        #expect(schema.contains(key))
        #expect(schema.hasSuffix("\n  }\n}\n"))
    }
}
