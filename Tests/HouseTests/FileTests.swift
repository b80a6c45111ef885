import Testing

@Suite struct FileTests {
    static let longest = 500

    /// Files that may be longer, each with its reason.
    static let longer: [String: String] = [
        "Tests/Promises/harness.py": "the one harness of all promises: lab, gateway and nginx share its life cycle"
    ]

    @Test(arguments: ["Sources", "Tests"])
    func noFileIsLong(folder: String) throws {
        for file in try SourceTree.files(under: folder, [".swift", ".c", ".h", ".py"])
        where Self.longer[file.path] == nil {
            #expect(file.lineCount <= Self.longest, "\(file) has \(file.lineCount) lines; split it by idea")
        }
    }

    /// Words that name no idea. `Foo+Bar.swift` is looked at as a whole.
    static let emptyWords = ["Manager", "Helper", "Util", "Context", "Misc", "Common"]

    @Test func fileNamesNameAnIdea() throws {
        for file in try SourceTree.files(under: "Sources", [".swift", ".c", ".h"]) {
            for word in Self.emptyWords where file.name.contains(word) {
                Issue.record("\(file): '\(word)' names no idea")
            }
        }
    }
}
