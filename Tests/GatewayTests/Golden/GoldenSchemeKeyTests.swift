import GoldenFiles
import Handshakes
import TLS
import Testing

@testable import Configuration

/// The effect of each key of each scheme on an identity's digest. The keys come from the schema, so that a new one stands here from its first
/// day on.
@Suite struct GoldenSchemeKeyTests {
    private static let schemes = Schemes.all.map { $0.key }

    @Test func everyKeyCountsAsItDid() {
        var lines: [String] = []
        var keys: Set<String> = []
        for scheme in Self.schemes {
            guard let block = scheme.type.blocks.first else { continue }
            let bare = Self.digest(scheme.name, "{}")
            lines.append("\(scheme.name) without any key: \(bare)")
            for sample in Self.samples(of: block) {
                keys.insert(sample.key)
                let digest = Self.digest(scheme.name, sample.yaml)
                lines.append("\(scheme.name) \(sample.yaml): \(digest == bare ? "does not count" : digest)")
            }
        }
        let file = GoldenFile(
            "scheme-keys.txt",
            "Scheme, one key with a value, and the digest of an identity that has only that; what does not count leaves it as it is.",
            cost: GoldenIdentityTests.cost)
        if let difference = file.difference(from: Set(lines).sorted()) { Issue.record("\(difference)") }
        for scheme in Self.schemes {
            for block in scheme.type.blocks {
                for (block, spec) in block.everyKeyBelow {
                    #expect(
                        keys.contains("\(block.name).\(spec.name)"),
                        "\(scheme.name): \(block.name).\(spec.name) is in no line")
                }
            }
        }
    }

    /// A value that its own type refuses would be left out of the digest, and be taken for one that does not count.
    @Test func everySampleIsAValue() {
        for scheme in Self.schemes {
            for sample in scheme.type.blocks.flatMap(Self.samples(of:)) {
                let text = "identities: {a: {\(scheme.name): \(sample.yaml)}}\n"
                let faults = Configuration.load(.text(text)) { _ in nil }.errors.map(\.message)
                    .filter { $0.contains("'\(sample.name)' must") || $0.contains("unknown") }
                #expect(faults == [], "\(scheme.name) \(sample.yaml)")
            }
        }
    }

    private static func digest(_ scheme: String, _ yaml: String) -> String {
        var loader = Loader(schemes: Schemes.all) { _ in nil }
        let draft = loader.load(.text("identities: {a: {\(scheme): \(yaml)}}\n")).0
        return draft?.identities.first.map { hexadecimal(sha256($0.canonicalForm)) } ?? "no identity"
    }

    // MARK: - Samples

    struct Sample {
        /// `block.key`, as the schema has it.
        var key: String
        var name: String
        var yaml: String
    }

    /// Samples for each key, for each word of a closed list, and for each key of a block below.
    static func samples(of block: Block) -> [Sample] {
        block.keys.flatMap { spec in
            values(of: spec.type, spec).map { inner in
                Sample(
                    key: inner.key ?? "\(block.name).\(spec.name)", name: inner.name ?? spec.name,
                    yaml: "{\(spec.name): \(inner.yaml)}")
            }
        }
    }

    private struct Value {
        var key: String?
        var name: String?
        var yaml: String
    }

    private static func values(of type: ValueType, _ spec: KeySpec) -> [Value] {
        switch type {
        case .text(let form): [Value(yaml: "\"\(text(form))\"")]
        case .words(let words, let aliases): (words + aliases.keys.sorted()).map { Value(yaml: "\"\($0)\"") }
        case .boolean: ["true", "false"].map { Value(yaml: $0) }
        case .integer(let range): [Value(yaml: "\(range.lowerBound + 1)")]
        case .duration: [Value(yaml: "77s")]
        case .size: [Value(yaml: "77KiB")]
        case .secret: ["file:/secrets/one", "file:/secrets/two", "literal:one"].map { Value(yaml: "\"\($0)\"") }
        case .list(let item): values(of: item, spec).map { Value(key: $0.key, name: $0.name, yaml: "[\($0.yaml)]") }
        case .named(let form, let item):
            values(of: item, spec).map { Value(key: $0.key, name: $0.name, yaml: "{\(text(form)): \($0.yaml)}") }
        case .block(let block):
            [Value(yaml: "{}")] + samples(of: block).map { Value(key: $0.key, name: $0.name, yaml: $0.yaml) }
        case .json: ["{b: [1, \"1\", true], a: null}", "[x]", "7", "\"7\""].map { Value(yaml: $0) }
        case .either(let types): types.flatMap { values(of: $0, spec) }
        }
    }

    private static func text(_ form: TextForm) -> String {
        switch form {
        case .headerName: "X-Sample"
        case .hostName, .hostPattern, .hostHeader: "Sample.example.com"
        case .pathPattern, .absolutePath, .path: "/sample"
        case .upstream: "https://sample.example.com"
        case .httpURL, .proxy: "HTTP://Sample.example.com:80/A?b=c"
        case .redisURL: "rediss://sample.example.com"
        case .listen, .listenAddress, .endpoint: "127.0.0.1:7777"
        case .network: "10.0.0.0/8"
        case .ipAddress: "10.0.0.1"
        case .authority: "system"
        case .servicePath, .servicePathOrOff: "/sample"
        case .template, .recipe: "a {token}"
        case .refreshAhead: "7%"
        case .share: "5%"
        case .pointer: "/sample/0"
        case .pattern: "^(a+)$"
        case .line, .anyLine, .name, .headerValue, .method, .scope, .userAgent, .word: "sample"
        }
    }
}

extension Block {
    /// This block's keys and those of all blocks below.
    fileprivate var everyKeyBelow: [(Block, KeySpec)] {
        keys.flatMap { spec in [(self, spec)] + spec.type.blocks.flatMap(\.everyKeyBelow) }
    }
}

extension ValueType {
    fileprivate var blocks: [Block] {
        switch self {
        case .block(let block): [block]
        case .list(let type), .named(_, let type): type.blocks
        case .either(let types): types.flatMap(\.blocks)
        default: []
        }
    }
}
