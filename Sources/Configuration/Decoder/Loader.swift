/// The result of a load.
public struct LoadResult: Sendable {
    /// nil if and only if there is an error among the diagnostics.
    public var configuration: Configuration?
    /// Everything that was found, sorted by place.
    public var diagnostics: [Diagnostic]
    /// Every file and directory that was read, for a watch.
    public var files: [String]

    /// The diagnostics that keep the configuration from being used.
    public var errors: [Diagnostic] { diagnostics.filter { $0.severity == .error } }
}

extension Configuration {
    /// Reads, checks and resolves a configuration. Reads no secret. All mistakes are reported at once.
    ///
    /// - Parameters:
    ///   - schemes: those that an identity may have.
    ///   - environment: gives a variable's value, for `${NAME}` and the start without a file.
    package static func load(
        _ source: ConfigurationSource, schemes: [any ConfiguredScheme.Type], environment: @escaping (String) -> String?
    ) -> LoadResult {
        var loader = Loader(schemes: schemes, environment: environment)
        let (configuration, _) = loader.load(source)
        let diagnostics = loader.sorted
        let isSound = !diagnostics.contains { $0.severity == .error }
        return LoadResult(
            configuration: isSound ? configuration : nil, diagnostics: diagnostics, files: loader.files)
    }
}

/// Puts the steps together: read, expand, include, check, decode.
struct Loader {
    let schemes: [any ConfiguredScheme.Type]
    let environment: (String) -> String?
    let findings = Findings()
    var files: [String] = []
    /// The entries that `include` has put together so far: under each key that adds up, where its names were first given.
    private var merged: [String: [String: Mark]] = [:]
    /// The keys that are looked for around a fault of the syntax. Empty where a file with such a fault is no configuration.
    var keysOfRemains: [String] = []

    init(schemes: [any ConfiguredScheme.Type], environment: @escaping (String) -> String?) {
        self.schemes = schemes
        self.environment = environment
    }

    /// A directory's files and a list's items together.
    static let includeBound = 256

    var sorted: [Diagnostic] {
        var seen: Set<Diagnostic> = []
        return findings.diagnostics.filter { seen.insert($0).inserted }.sorted()
    }

    /// The configuration stands also where there are errors, as far as it could be made: for tests only.
    mutating func load(_ source: ConfigurationSource) -> (Configuration?, Node?) {
        guard let root = root(of: source) else { return (nil, nil) }
        var checker = Checker(findings: findings)
        checker.check(root, Keys.configuration(schemes), place: "the file")
        guard root.map != nil else { return (nil, root) }
        return (TreeDecoder.decode(root, schemes, findings), root)
    }

    // MARK: - Files

    /// The tree of a source, with what it includes.
    mutating func root(of source: ConfigurationSource) -> Node? {
        switch source {
        case .file(let path): return file(path).map { included($0, relativeTo: path) }
        case .text(let text):
            let name = "CARDEA_CONFIG_YAML"
            return tree(Array(text.utf8), name: name).map { included($0, relativeTo: "./") }
        case .environment: return EnvironmentRoute.tree(environment: environment, findings)
        }
    }

    /// - Parameter mark: where the file is named; nil for the one that was asked for.
    private mutating func file(_ path: String, named mark: Mark? = nil) -> Node? {
        do {
            // Also one that cannot be read: a watch has to see it come.
            files.append(path)
            let bytes = try FileReader.read(path, bound: YAMLReader.Bound.bytes)
            return tree(bytes, name: path)
        } catch {
            let what = mark == nil ? "" : "'include' of \(Quoted.short(path)): "
            findings.error(what + error.message, mark ?? Mark(file: path))
            return nil
        }
    }

    private mutating func tree(_ bytes: [UInt8], name: String) -> Node? {
        let (root, found) = YAMLReader.read(bytes, file: name)
        findings.add(found)
        if root == nil, found.isEmpty {
            findings.error("the file is empty", Mark(file: name))
        }
        guard let root = root ?? YAMLRemains.read(bytes, file: name, keys: keysOfRemains) else { return nil }
        return expanded(root)
    }

    /// Variables in all values but the bodies that nobody reads.
    private mutating func expanded(_ root: Node) -> Node {
        guard var entries = root.map else { return root.expanded(environment: environment, findings) }
        for (index, entry) in entries.enumerated() {
            guard entry.key == "identities", var identities = entry.value.map else {
                entries[index].value = entry.value.expanded(environment: environment, findings)
                continue
            }
            for (at, identity) in identities.enumerated() {
                guard var keys = identity.value.map else { continue }
                for (key, inner) in keys.enumerated() {
                    keys[key].value = inner.value.expanded(environment: environment, findings)
                }
                identities[at].value.content = .map(keys)
            }
            entries[index].value.content = .map(identities)
        }
        return Node(content: .map(entries), mark: root.mark)
    }

    // MARK: - Include

    private mutating func included(_ root: Node, relativeTo path: String) -> Node {
        guard var entries = root.map, let include = root["include"]?.value else { return root }
        let directory = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
        var paths: [(path: String, mark: Mark)] = []
        for node in include.list ?? [include] {
            guard let text = node.scalar?.text, !text.isEmpty else { continue }
            paths += self.paths(text.hasPrefix("/") ? text : directory + text, mark: node.mark)
        }
        guard paths.count <= Self.includeBound else {
            findings.error("'include' brings more than 256 files", include.mark)
            return root
        }
        for (path, mark) in paths {
            if files.contains(path) {
                findings.error("'\(Quoted.short(path))' is included twice", mark)
            } else if let tree = file(path, named: mark) {
                merge(tree, into: &entries)
            }
        }
        return Node(content: .map(entries), mark: root.mark)
    }

    private mutating func paths(_ path: String, mark: Mark) -> [(path: String, mark: Mark)] {
        guard FileReader.isDirectory(path) else { return [(path, mark)] }
        files.append(path)
        do {
            let names = try FileReader.names(in: path, bound: 4096)
            let base = path.hasSuffix("/") ? path : path + "/"
            return names.filter { $0.hasSuffix(".yaml") && !$0.hasPrefix(".") }.map { (base + $0, mark) }
        } catch {
            findings.error("'\(Quoted.short(path))': \(error.message)", mark)
            return []
        }
    }

    /// Names add up, routes follow, anything else stands in one file only.
    private mutating func merge(_ tree: Node, into entries: inout [Node.Entry]) {
        guard let added = tree.map else {
            findings.error("an included file must be a map of keys", tree.mark)
            return
        }
        for entry in added {
            if entry.key == "include" {
                findings.error("an included file cannot include others", entry.mark)
                continue
            }
            guard let index = entries.firstIndex(where: { $0.key == entry.key }) else {
                entries.append(entry)
                continue
            }
            switch (entry.key, entries[index].value.content, entry.value.content) {
            case ("routes", .list(var all), .list(let second)):
                // Not two owners of the list: the append would copy it for each file.
                entries[index].value.content = .list([])
                all += second
                entries[index].value.content = .list(all)
            case ("identities", .map(var all), .map(let second)), ("listeners", .map(var all), .map(let second)):
                entries[index].value.content = .map([])
                append(second, to: &all, of: entry.key)
                entries[index].value.content = .map(all)
            default:
                twice(entry, entries[index].mark)
            }
        }
    }

    private mutating func append(_ added: [Node.Entry], to all: inout [Node.Entry], of key: String) {
        var known = merged.removeValue(forKey: key) ?? Dictionary(uniqueKeysWithValues: all.map { ($0.key, $0.mark) })
        for entry in added {
            if let first = known[entry.key] {
                twice(entry, first)
            } else {
                known[entry.key] = entry.mark
                all.append(entry)
            }
        }
        merged[key] = known
    }

    private mutating func twice(_ entry: Node.Entry, _ first: Mark) {
        let message = "'\(Quoted.short(entry.key))' is given twice; first in \(first.file):\(first.line)"
        findings.error(message, entry.mark)
    }
}
