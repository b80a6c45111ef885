import GoldenFiles
import Testing

@testable import Configuration
@testable import Handshakes

/// The keys of configuration files, and the defaults that hold where a key is not written.
@Suite struct GoldenConfigurationTests {
    @Test func everyKeyMeansWhatItMeant() {
        let lines = Set(Self.lines(of: Keys.configuration(Schemes.all), below: ""))
        let file = GoldenFile(
            "configuration-keys.txt", "Key of a file, what it takes, and its default.",
            cost: "files that people have written are refused, or mean something else after an upgrade without a word.")
        if let difference = file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
    }

    private static func lines(of block: Block, below path: String) -> [String] {
        block.keys.flatMap { spec in
            let name = path.isEmpty ? spec.name : "\(path).\(spec.name)"
            let most = spec.required ? "; required" : spec.defaultText.map { "; default '\($0)'" } ?? ""
            return ["\(name): \(spec.type.expectation)\(aliases(of: spec.type))\(most)"] + below(spec.type, name)
        }
    }

    private static func below(_ type: ValueType, _ path: String) -> [String] {
        switch type {
        case .block(let block): lines(of: block, below: path)
        case .list(let item): below(item, path + "[]")
        case .named(_, let item): below(item, path + ".*")
        case .either(let types): types.flatMap { below($0, path) }
        default: []
        }
    }

    private static func aliases(of type: ValueType) -> String {
        guard case .words(_, let aliases) = type, !aliases.isEmpty else { return "" }
        return " (" + aliases.sorted { $0.key < $1.key }.map { "\($0.key) is \($0.value)" }.joined(separator: ", ")
            + ")"
    }
}
