import Configuration
import GoldenFiles
import Testing

@testable import Handshakes

/// What of a scheme's keys counts for an identity's digest stands beside each key; here it stands together.
@Suite struct GoldenDigestPartTests {
    @Test func whatDoesNotCountAsItsValueIsListed() {
        let lines = Schemes.all.flatMap { scheme in Self.lines(scheme.key, in: "identity") }
        let file = GoldenFile(
            "digest-parts.txt", "Block and key, and what of it counts for the digest where that is not the value.",
            cost: "identities become others: their tokens, sessions and registrations are lost.")
        if let difference = file.difference(from: Set(lines).sorted()) { Issue.record("\(difference)") }
    }

    private static func lines(_ spec: KeySpec, in block: String) -> [String] {
        let own: [String] =
            switch spec.digest {
            case .value: []
            case .place: ["\(block).\(spec.name): the place"]
            case .nothing: ["\(block).\(spec.name): nothing"]
            }
        return own + blocks(spec.type).flatMap { inside in inside.keys.flatMap { lines($0, in: inside.name) } }
    }

    private static func blocks(_ type: ValueType) -> [Block] {
        switch type {
        case .block(let block): [block]
        case .list(let type), .named(_, let type): blocks(type)
        case .either(let types): types.flatMap(blocks)
        default: []
        }
    }
}
