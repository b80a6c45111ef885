import Configuration
import FoundationEssentials

/// An example for each key: as the files under config/ have it, which tests check, else one that its type makes.
struct KeyExamples: Sendable {
    private var found: [String: String] = [:]

    /// The files of examples, the one with every default last: its values say least.
    static func files(under folder: String) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: folder).filter { $0.hasSuffix(".yaml") }
            .sorted { ($0 == "full.yaml" ? 1 : 0, $0) < ($1 == "full.yaml" ? 1 : 0, $1) }
            .map { "\(folder)/\($0)" }
    }

    init(files: [String], tree: KeyTree = KeyTree()) throws {
        guard let root = tree.sections.first else { return }
        for file in files {
            let bytes = Array(try Data(contentsOf: URL(filePath: file)))
            guard let node = YAMLReader.read(bytes, file: file).root else { continue }
            collect(node, .block(root.block), tree)
        }
    }

    /// `key: value`; nil where a value is a map of its own section.
    func example(of key: KeySpec, in section: KeyTree.Section) -> String? {
        let made = Self.made(key.type, key).map { "\(key.name): \($0)" }
        guard let text = found["\(section.anchor).\(key.name)"] else { return made }
        // The default says least; of words there is another one.
        guard case .words = key.type, text == "\(key.name): \(key.defaultText ?? "")" else { return text }
        return made
    }

    private mutating func collect(_ node: Node, _ type: ValueType, _ tree: KeyTree) {
        switch type.fitting(node) {
        case .block(let block):
            guard let section = tree.section(of: block) else { return }
            for entry in node.map ?? [] {
                guard let key = section.block[entry.key] else { continue }
                let name = "\(section.anchor).\(key.name)"
                if found[name] == nil, let text = Self.flow(entry.value), text.utf8.count <= 72 {
                    found[name] = "\(key.name): \(text)"
                }
                collect(entry.value, key.type, tree)
            }
        case .list(let item): for one in node.list ?? [] { collect(one, item, tree) }
        case .named(_, let item): for entry in node.map ?? [] { collect(entry.value, item, tree) }
        default: break
        }
    }
}

// MARK: - Writing

extension KeyExamples {
    /// A value in one line; nil where there is nothing to see.
    private static func flow(_ node: Node) -> String? {
        switch node.content {
        case .scalar(let scalar):
            guard !scalar.isAbsent, !scalar.written.hasPrefix("literal:") else { return nil }
            return quoted(scalar.written, isPlain: scalar.isPlain)
        case .list(let items):
            let texts = items.map(flow)
            guard !texts.isEmpty, !texts.contains(nil) else { return nil }
            return "[\(texts.compactMap { $0 }.joined(separator: ", "))]"
        case .map(let entries):
            let texts = entries.map { entry in flow(entry.value).map { "\(quoted(entry.key, isPlain: true)): \($0)" } }
            guard !texts.isEmpty, !texts.contains(nil) else { return nil }
            return "{\(texts.compactMap { $0 }.joined(separator: ", "))}"
        }
    }

    private static func quoted(_ text: String, isPlain: Bool) -> String {
        let special = text.contains { ",[]{}#&*!|>%@`\"'".contains($0) } || text.contains(": ") || text.hasPrefix("-")
        guard special || !isPlain || text.isEmpty else { return text }
        return "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
}

// MARK: - Making

extension KeyExamples {
    private static func made(_ type: ValueType, _ key: KeySpec) -> String? {
        switch type {
        case .text(let form): key.defaultText ?? made(form)
        case .words(let words, _): words.last
        case .boolean: key.defaultText == "true" ? "false" : "true"
        case .integer(let range): key.defaultText ?? "\(max(range.lowerBound, min(range.upperBound, 100)))"
        case .duration: key.defaultText ?? "30s"
        case .size: key.defaultText ?? "1MiB"
        case .secret: "file:/run/secrets/\(key.name.replacing("_", with: "-"))"
        case .list(let item): made(item, key).map { "[\($0)]" }
        case .named(_, let item): made(item, key).map { "{name: \($0)}" }
        case .block: nil
        case .json: "{}"
        case .either(let types): types.lazy.compactMap { made($0, key) }.first
        }
    }

    private static func made(_ form: TextForm) -> String {
        switch form {
        case .line, .anyLine, .headerValue, .recipe: "text"
        case .name, .word: "name"
        case .headerName: "X-Name"
        case .method: "GET"
        case .scope: "orders.read"
        case .hostName, .hostPattern, .hostHeader: "api.example.com"
        case .pathPattern: "/orders/"
        case .upstream: "https://api.example.com"
        case .httpURL: "https://idp.example.com/token"
        case .redisURL: "rediss://cache.example.com:6379"
        case .proxy: "http://proxy.example.com:3128"
        case .listen, .listenAddress: "127.0.0.1:8080"
        case .endpoint: "192.0.2.7:443"
        case .network: "10.0.0.0/8"
        case .ipAddress: "192.0.2.7"
        case .path: "/etc/cardea/file.pem"
        case .authority: "/etc/ssl/certs/company.pem"
        case .servicePath, .servicePathOrOff: "token"
        case .absolutePath: "/healthz"
        case .template: "\"Token {token}\""
        case .refreshAhead: "20%"
        case .share: "1%"
        case .userAgent: "Agent"
        case .pointer: "/token"
        case .pattern: "\"^([^:]+):\""
        }
    }
}
