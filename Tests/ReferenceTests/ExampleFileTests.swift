import FoundationEssentials
import GoldenFiles
import Testing

@testable import cardea_reference

/// An editor that opens an example finds the schema that the package installs.
@Suite struct ExampleFileTests {
    @Test func everyExampleNamesTheSchema() throws {
        let root = GoldenFile.folder + "../../"
        let files = try KeyExamples.files(under: root + "config")
        #expect(files.count > 15)
        for file in files + [root + "deploy/cardea.yaml"] {
            let text = try String(contentsOf: URL(filePath: file), encoding: .utf8)
            #expect(
                text.hasPrefix("# yaml-language-server: $schema=/usr/share/cardea/schema.json\n"),
                "\(file): the first line tells editors where the schema is")
        }
    }
}
