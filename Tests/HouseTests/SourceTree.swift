import FoundationEssentials

/// The files of this package as they lie on disk.
struct SourceTree {
    struct File: CustomStringConvertible {
        /// Relative to the package, with `/`.
        let path: String
        let text: String

        var name: String { path.split(separator: "/").last.map(String.init) ?? path }
        /// The second part of the path: `Sources/TLS/Digests.swift` belongs to `TLS`.
        var module: String { path.split(separator: "/").dropFirst().first.map(String.init) ?? "" }
        var lineCount: Int { text.utf8.count { $0 == UInt8(ascii: "\n") } }
        var description: String { path }
    }

    static let root = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined()

    /// Every file of our own under `folder` (`Sources` or `Tests`) whose name ends in one of `endings`, sorted by path.
    static func files(under folder: String, _ endings: [String]) throws -> [File] {
        try FileManager.default.subpathsOfDirectory(atPath: "\(root)/\(folder)")
            .filter { path in endings.contains { path.hasSuffix($0) } && !path.contains(".build/") }
            .sorted()
            .map { path in
                let bytes = try Data(contentsOf: URL(filePath: "\(root)/\(folder)/\(path)"))
                return File(path: "\(folder)/\(path)", text: String(decoding: bytes, as: UTF8.self))
            }
    }

    /// Names of the folders that stand directly under `Sources`.
    static func modules() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "\(root)/Sources").filter { !$0.hasPrefix(".") }.sorted()
    }

    /// Folders with a module map: C shims and system libraries.
    static func shims() throws -> Set<String> {
        Set(try files(under: "Sources", ["module.modulemap"]).map(\.module))
    }
}

// MARK: - Imports

extension SourceTree.File {
    /// The modules that this file imports, in order. `import struct A.B` and `import A.B` are imports of `A`.
    var imports: [String] { text.split(separator: "\n").compactMap { Self.importedModule($0) } }

    /// The module that one line imports; nil where the line is no import.
    static func importedModule(_ line: Substring) -> String? {
        // A comment behind the import must not hide it.
        let code = line.prefix { $0 != ";" && $0 != "/" }
        var words = code.split { $0 == " " || $0 == "\t" }[...]
        let access: Set<Substring> = ["public", "package", "internal", "fileprivate", "private"]
        while let word = words.first, word.hasPrefix("@") || access.contains(word) { words.removeFirst() }
        guard words.popFirst() == "import" else { return nil }
        let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "typealias", "func", "let", "var"]
        if words.count > 1, let word = words.first, kinds.contains(word) { words.removeFirst() }
        return words.first?.split(separator: ".").first.map(String.init)
    }
}
