import Testing

@Suite struct ArrowTests {
    @Test func everyImportIsAnArrowOfTheDesign() throws {
        for file in try SourceTree.files(under: "Sources", [".swift"]) {
            for name in file.imports where !Arrows.mayImport(name, from: file.module) {
                Issue.record("\(file): \(file.module) → \(name) is no arrow of docs/design/modules.md")
            }
        }
    }

    @Test func everyModuleStandsInTheTable() throws {
        let shims = try SourceTree.shims()
        for module in try SourceTree.modules() where !shims.contains(module) {
            #expect(Arrows.allowed[module] != nil, "Sources/\(module) has no line in Arrows.swift")
        }
    }

    @Test func theTableHasNoCircle() {
        for start in Arrows.allowed.keys {
            var reached: Set<String> = []
            var open = [start]
            while let module = open.popLast() {
                for next in Arrows.allowed[module] ?? [] where reached.insert(next).inserted { open.append(next) }
            }
            #expect(!reached.contains(start), "\(start) reaches itself")
        }
    }

    @Test func everyShimIsImportedByOneModuleOfTheGateway() throws {
        var importers: [String: Set<String>] = [:]
        for file in try SourceTree.files(under: "Sources", [".swift"]) {
            for name in file.imports { importers[name, default: []].insert(file.module) }
        }
        for shim in try SourceTree.shims() {
            let excepted = Set(Arrows.openChanges.filter { $0.to == shim }.map(\.from))
            let rest = importers[shim, default: []].subtracting(excepted).subtracting(Arrows.simulators)
            #expect(rest.count == 1, "\(shim) is imported by \(rest.sorted())")
        }
    }

    @Test func everyOpenChangeIsUsedAndSaysWhy() throws {
        let files = try SourceTree.files(under: "Sources", [".swift"])
        for change in Arrows.openChanges {
            #expect(!change.reason.isEmpty)
            #expect(
                files.contains { $0.module == change.from && $0.imports.contains(change.to) },
                "\(change.from) → \(change.to) is not used any more")
            #expect(Arrows.allowed[change.from]?.contains(change.to) == false)
        }
    }

    /// The full library costs about 9 MB of resident memory; JSON and dates are had from FoundationEssentials.
    @Test func nobodyImportsFoundation() throws {
        for file in try SourceTree.files(under: "Sources", [".swift"]) {
            #expect(!file.imports.contains("Foundation"), "\(file)")
        }
    }
}

/// The reader of imports is what the other tests stand on, so it is tried on lines of every form.
@Suite struct ImportReaderTests {
    @Test(arguments: [
        ("import Glibc", "Glibc"), ("  import Glibc", "Glibc"), ("\timport Glibc", "Glibc"),
        ("public import HotCache", "HotCache"), ("internal import Reactor // why", "Reactor"),
        ("@testable import TLS", "TLS"), ("@preconcurrency public import TLS", "TLS"),
        ("@_spi(Testing) import Tokens", "Tokens"), ("import struct Foundation.Data", "Foundation"),
        ("import Foundation.NSData", "Foundation"), ("import func Glibc.read", "Glibc"), ("import Gateway;", "Gateway"),
    ])
    func anImportIsSeen(line: String, module: String) {
        #expect(SourceTree.File.importedModule(line[...]) == module)
    }

    @Test(arguments: ["", "// import Glibc", "/// import Glibc", "let important = 1", "importer.run()", "import"])
    func otherLinesAreNone(line: String) {
        #expect(SourceTree.File.importedModule(line[...]) == nil)
    }

    @Test func aForbiddenArrowIsSeen() {
        let file = SourceTree.File(path: "Sources/HTTP1/X.swift", text: "import Glibc\ninternal import Reactor\n")
        #expect(file.imports == ["Glibc", "Reactor"])
        #expect(file.imports.filter { !Arrows.mayImport($0, from: file.module) } == ["Reactor"])
    }
}
