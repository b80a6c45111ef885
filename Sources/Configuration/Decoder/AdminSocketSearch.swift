extension Configuration {
    /// The paths of admin socket and store as `source` says them, by `admin.socket` or `store.path`, whatever else is wrong with it: whoever
    /// has just spoilt a file must still reach the gateway that serves on with what stood there before. Nil for one that cannot be had.
    public static func remains(
        of source: ConfigurationSource, environment: @escaping (String) -> String?
    ) -> (socket: String?, store: String?) {
        var loader = Loader(schemes: [], environment: environment)
        loader.keysOfRemains = ["admin", "store", "include"]
        guard let root = loader.root(of: source) else { return (nil, nil) }
        // Nothing but these two, so that nothing else can matter.
        let entries = (root.map ?? []).filter { $0.key == "admin" || $0.key == "store" }
        let only = Node(content: .map(entries), mark: root.mark)
        let configuration = TreeDecoder.decode(only, [], loader.findings)
        return (configuration.admin.socket, configuration.store.path)
    }
}

/// The facts that can be told of a file that is no YAML as a whole.
enum YAMLRemains {
    /// The entries of the root before the fault; and of `keys`, behind it, the first block of each that stands at the begin of a line
    /// and can be read by itself.
    static func read(_ bytes: [UInt8], file: String, keys: [String]) -> Node? {
        guard !keys.isEmpty, bytes.count <= YAMLReader.Bound.bytes else { return nil }
        var entries = YAMLReader.readWhole(bytes, file: file).entries
        for block in blocks(of: keys, in: bytes) {
            let found = YAMLReader.readWhole(block, file: file).entries
            entries += found.filter { one in !entries.contains { $0.key == one.key } }
        }
        return entries.isEmpty ? nil : Node(content: .map(entries), mark: Mark(file: file))
    }

    private static func blocks(of keys: [String], in bytes: [UInt8]) -> [[UInt8]] {
        var blocks: [[UInt8]] = []
        var left = keys
        var isInside = false
        for line in bytes.dropFirst(YAMLReader.sizeOfMark(bytes)).split(separator: UInt8(ascii: "\n")) {
            // Indented lines, comments and empty lines belong to the block above them.
            if let first = line.first, !" \t\r#".utf8.contains(first) {
                let index = left.firstIndex { line.starts(with: "\($0):".utf8) }
                isInside = index != nil
                if let index {
                    left.remove(at: index)
                    blocks.append([])
                }
            }
            if isInside { blocks[blocks.count - 1] += line + [UInt8(ascii: "\n")] }
        }
        return blocks
    }
}
