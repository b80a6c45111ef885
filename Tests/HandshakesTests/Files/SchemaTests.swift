import FoundationEssentials
import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct SchemaTests {
    indirect enum JSON: Decodable {
        case object([String: JSON])
        case array([JSON])
        case other

        init(from decoder: any Decoder) throws {
            if let object = try? decoder.singleValueContainer().decode([String: JSON].self) {
                self = .object(object)
            } else if let array = try? decoder.singleValueContainer().decode([JSON].self) {
                self = .array(array)
            } else {
                self = .other
            }
        }

        subscript(key: String) -> JSON? { if case .object(let members) = self { members[key] } else { nil } }
        var count: Int { if case .object(let members) = self { members.count } else { 0 } }
        var alternatives: [JSON] {
            if case .array(let items)? = self["anyOf"] { [self] + items } else { [self] }
        }
    }

    @Test func namesEveryKey() throws {
        let root = try JSONDecoder().decode(JSON.self, from: Data(Configuration.jsonSchema().utf8))
        check(root, Keys.configuration(Schemes.all))
    }

    private func check(_ schema: JSON, _ block: Block) {
        #expect(schema["properties"]?.count == block.keys.count)
        for spec in block.keys {
            guard let key = schema["properties"]?[spec.name] else {
                Issue.record("\(block.name).\(spec.name)")
                continue
            }
            #expect(key["description"] != nil, "\(block.name).\(spec.name)")
            for inner in spec.type.blocks {
                let candidates = key.alternatives.flatMap {
                    [$0, $0["items"], $0["additionalProperties"]].compactMap { $0 }
                }
                guard let found = candidates.first(where: { $0["properties"] != nil }) else {
                    Issue.record("\(block.name).\(spec.name) has no block")
                    continue
                }
                check(found, inner)
            }
        }
    }

    @Test func everyKeyIsDescribed() {
        for (block, spec) in Keys.configuration(Schemes.all).everyKey {
            #expect(spec.description.hasSuffix("."), "\(block.name).\(spec.name)")
            #expect(block.keys.filter { $0.name == spec.name }.count == 1, "\(block.name).\(spec.name)")
            #expect(spec.name.allSatisfy { $0.isLowercase || $0.isNumber || $0 == "_" })
        }
    }

    /// A default that its own type refuses would be a default that nobody can write.
    @Test func everyDefaultIsValid() throws {
        for (block, spec) in Keys.configuration(Schemes.all).everyKey {
            guard let text = spec.defaultText else { continue }
            let type = spec.type.fitting(.made(text, at: Mark(file: "")))
            #expect(throws: Never.self, "\(block.name).\(spec.name)") { try type?.canonical(text) }
            #expect(type != nil, "\(block.name).\(spec.name)")
        }
    }
}
