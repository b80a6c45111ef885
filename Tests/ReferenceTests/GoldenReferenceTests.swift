import ArgumentParser
import Configuration
import DataPath
import FoundationEssentials
import GoldenFiles
import Telemetry
import Testing

@testable import cardea
@testable import cardea_reference

/// docs/reference is what the code's tables say, and says something of everything in them.
@Suite struct GoldenReferenceTests {
    private static let root = GoldenFile.folder + "../../"
    private static let folder = root + "docs/reference"

    private static let reference = Result {
        try Reference(
            commands: CommandTree(dump: Data(Cardea._dumpHelp().utf8)),
            examples: KeyExamples(files: KeyExamples.files(under: root + "config")))
    }

    private func page(_ name: String) throws -> String {
        try #require(try Self.reference.get().pages.first { $0.name == name }).text
    }

    @Test func everyPageIsWhatTheCodeSays() throws {
        let pages = try Self.reference.get().pages
        if GoldenFile.writes { for page in pages { try page.write(to: Self.folder) } }
        for page in pages {
            let committed = try? String(contentsOf: URL(filePath: "\(Self.folder)/\(page.name)"), encoding: .utf8)
            // Not the two texts: they would be most of the log.
            let isCurrent = committed == page.text
            #expect(
                isCurrent,
                "docs/reference/\(page.name) is not what the code says: `make reference` writes it; commit it with the change"
            )
        }
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder).sorted()
        #expect(files == pages.map(\.name).sorted(), "nothing else lies in docs/reference")
    }

    @Test func everyKeyIsThereWithItsExample() throws {
        let text = try page("configuration.md")
        let tree = KeyTree()
        #expect(tree.sections.count > 40)
        for section in tree.sections {
            #expect(text.contains("<a id=\"\(section.anchor)\"></a>"))
            for key in section.block.keys {
                #expect(text.contains("<a id=\"\(section.anchor).\(key.name)\"></a>"), "\(section.anchor).\(key.name)")
                if Self.isOfSections(key.type) { continue }
                let example = try Self.reference.get().examples.example(of: key, in: section)
                let line = try #require(example, "\(section.anchor).\(key.name) has no example")
                let read = YAMLReader.read(Array(line.utf8), file: key.name)
                #expect(read.diagnostics.isEmpty, "\(line)")
                let node = try #require(read.root?[key.name]?.value)
                #expect(key.type.fitting(node) != nil, "\(line) is not \(key.type.expectation)")
                if case .text(let form)? = key.type.fitting(node), let text = node.scalar?.text, !text.contains("${") {
                    #expect(throws: Never.self, "\(line)") { _ = try form.canonical(text) }
                }
            }
        }
    }

    /// Whether a value can only be maps, which have sections of their own.
    private static func isOfSections(_ type: ValueType) -> Bool {
        switch type {
        case .block: true
        case .list(let item), .named(_, let item): isOfSections(item)
        case .either(let types): types.allSatisfy(isOfSections)
        default: false
        }
    }

    @Test func everyMetricIsThere() throws {
        let text = try page("metrics.md")
        let known = GoldenFile("metrics.txt", "", cost: "").lines
        #expect(known.count > 50)
        let families = try MetricFamilies.all()
        let lines = families.map { family in
            let labels = family.labels.map(\.name).sorted().joined(separator: ",")
            return "\(family.name) \(family.kind)" + (labels.isEmpty ? "" : " \(labels)")
        }
        #expect(lines == known, "the tables of metrics, and what a scrape has")
        for family in families {
            #expect(text.contains("<a id=\"\(family.name)\"></a>"))
            for label in family.labels {
                #expect(
                    LabelWords.meanings[label.name] != nil, "MetricsPage.swift does not say what \(label.name) holds")
            }
        }
    }

    @Test(arguments: Fault.Kind.allCases)
    func everyProblemIsThere(problem: Fault.Kind) throws {
        #expect(try page("problems.md").contains("<a id=\"\(problem.word)\"></a>"))
        for sentence in [problem.meaning, problem.advice] {
            #expect(sentence.hasSuffix(".") && sentence.count > 10, "\(problem.word): \(sentence)")
        }
    }

    @Test func everyEventIsThereAndNoOther() throws {
        let golden = GoldenFile("log-events.txt", "", cost: "").lines
        let logged = Set(golden.filter { $0.hasPrefix("event ") })
        let told = Set(EventWords.all.flatMap { words in words.levels.map { "event \($0): \(words.text)" } })
        #expect(logged.subtracting(told) == [], "without words in Sources/cardea-reference/Tables/EventWords.swift")
        #expect(told.subtracting(logged) == [], "words of events that nobody logs")
        let fields = Set(golden.filter { $0.hasPrefix("field: ") }.map { String($0.dropFirst(7)) })
        #expect(
            Set(EventWords.fields.map(\.name)) == fields, "the fields of events, in EventWords.swift and in the code")
        #expect(Set(EventWords.all.flatMap(\.fields)).subtracting(fields) == [])
        let text = try page("log-events.md")
        for words in EventWords.all { #expect(text.contains("<a id=\"\(Markdown.slug(words.text))\"></a>")) }
        #expect(Set(EventWords.all.map { Markdown.slug($0.text) }).count == EventWords.all.count)
    }

    /// The line of Tests/Golden that has every field.
    @Test func everyFieldOfAnAccessRecordIsThere() throws {
        let line = try #require(GoldenFile("access-record.txt", "", cost: "").lines.first { $0.hasPrefix("json: ") })
        let fields = line.matches(of: /"([a-z_]+)":/).map { String($0.1) }
        #expect(fields.count > 15)
        #expect(AccessWords.fields.map(\.name) == fields, "AccessWords in EventWords.swift")
    }

    @Test func everyCommandIsThere() throws {
        let text = try page("commands.md")
        let leaves = try Self.reference.get().command.leaves()
        #expect(leaves.count > 12)
        for (name, leaf) in leaves {
            #expect(text.contains("\n## \(name.joined(separator: " "))\n"))
            #expect(leaf.abstract?.isEmpty == false, "\(name)")
            for argument in leaf.shownArguments {
                #expect(argument.abstract?.isEmpty == false, "\(name) \(argument.spellings): no words")
            }
        }
    }
}
