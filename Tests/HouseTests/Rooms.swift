/// A module's rooms: the folders below it, each with what its files declare and which types of other rooms they name.
///
/// Arrows between rooms cannot be read from imports. They are read by names: a type's name occurs once in its module, and a file
/// uses a room where it names one of that room's types.
struct House {
    struct Module {
        let name: String
        let files: [Reading]
        /// The file that declares each top-level type.
        let home: [Substring: Int]

        /// Files of each room; the empty name stands for those that lie directly in the module.
        var rooms: [String: Int] { Dictionary(files.map { ($0.room, 1) }, uniquingKeysWith: +) }
    }

    /// What one file says of the types of its module.
    struct Reading {
        let path: String
        let room: String
        let declared: [Substring]
        let named: Set<Substring>
    }

    /// One room names types of another.
    struct Arrow {
        let from: String
        let to: String
        /// `File: Type`, sorted.
        var uses: [String]
    }

    let modules: [Module]

    init(_ files: [SourceTree.File]) {
        modules = Dictionary(grouping: files, by: \.module)
            .map { Module($0.key, $0.value.map(Reading.init)) }
            .sorted { $0.name < $1.name }
    }
}

// MARK: - Reading

extension House.Reading {
    init(_ file: SourceTree.File) {
        path = file.path
        // Sources, the module, the rooms, the file.
        room = file.path.split(separator: "/").dropFirst(2).dropLast().joined(separator: "/")
        let code = Self.withoutTextAndComments(file.text)
        declared = Self.topLevelTypes(code)
        named = Set(Self.words(code).filter { $0.first?.isUppercase == true })
    }

    /// Comments and the contents of literals are blank; lines stay where they are. Interpolated code within a literal is left out,
    /// as a type that is named there alone is hardly an arrow.
    static func withoutTextAndComments(_ text: String) -> String {
        var result: [UInt8] = []
        result.reserveCapacity(text.utf8.count)
        var rest = ArraySlice(text.utf8)
        var quotes = 0
        while let octet = rest.first {
            if quotes == 0, rest.starts(with: "//".utf8) {
                rest = rest.drop { $0 != UInt8(ascii: "\n") }
            } else if quotes == 0, octet == UInt8(ascii: "\"") {
                quotes = rest.starts(with: "\"\"\"".utf8) ? 3 : 1
                rest = rest.dropFirst(quotes)
            } else if quotes > 0, octet == UInt8(ascii: "\\") {
                rest = rest.dropFirst(2)
            } else if quotes > 0, rest.starts(with: repeatElement(UInt8(ascii: "\""), count: quotes)) {
                rest = rest.dropFirst(quotes)
                quotes = 0
            } else {
                if quotes == 0 || octet == UInt8(ascii: "\n") { result.append(octet) }
                rest = rest.dropFirst()
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static let kinds: Set<Substring> = ["class", "struct", "enum", "actor", "protocol", "typealias"]

    /// Types that are declared outside every other declaration, without those of extensions.
    static func topLevelTypes(_ code: String) -> [Substring] {
        var types: [Substring] = []
        var depth = 0
        for line in code.split(separator: "\n") {
            if depth == 0 {
                let words = Self.words(line[...])
                // `class func` and `class var` stand within types only, so the first such word is a declaration's.
                if let kind = words.firstIndex(where: kinds.contains), !words[..<kind].contains("extension"),
                    !words[..<kind].contains("func"), !words[..<kind].contains("import"), kind + 1 < words.count
                {
                    types.append(words[kind + 1])
                }
            }
            depth += line.utf8.count { $0 == UInt8(ascii: "{") } - line.utf8.count { $0 == UInt8(ascii: "}") }
        }
        return types
    }

    static func words(_ text: some StringProtocol) -> [Substring] {
        Substring(text).split { !($0.isLetter || $0.isNumber || $0 == "_") }
    }
}

// MARK: - Arrows

extension House.Module {
    init(_ name: String, _ files: [House.Reading]) {
        self.name = name
        self.files = files
        home = Dictionary(
            files.enumerated().flatMap { index, file in file.declared.map { ($0, index) } },
            uniquingKeysWith: { first, _ in first })
    }

    /// Names that two files declare.
    var declaredTwice: [String] {
        Dictionary(grouping: files.flatMap { file in file.declared.map { ($0, file.path) } }, by: \.0)
            .filter { $0.value.count > 1 }
            .map { "\($0.key): \($0.value.map(\.1).joined(separator: ", "))" }
            .sorted()
    }

    /// Sorted by the rooms' names.
    var arrows: [House.Arrow] {
        var found: [String: House.Arrow] = [:]
        for (index, file) in files.enumerated() {
            for type in file.named.sorted() {
                guard let home = home[type], home != index, files[home].room != file.room else { continue }
                let key = "\(file.room) → \(files[home].room)"
                found[key, default: House.Arrow(from: file.room, to: files[home].room, uses: [])]
                    .uses.append("\(file.path.split(separator: "/").last ?? ""): \(type)")
            }
        }
        return found.sorted { $0.key < $1.key }.map(\.value)
    }
}

extension [House.Arrow] {
    /// The arrows that lie on a circle: whose end leads back to their beginning.
    var circles: [House.Arrow] {
        let targets = Dictionary(grouping: self, by: \.from).mapValues { $0.map(\.to) }
        return filter { arrow in
            var reached: Set<String> = []
            var open = [arrow.to]
            while let room = open.popLast() {
                for next in targets[room] ?? [] where reached.insert(next).inserted { open.append(next) }
            }
            return reached.contains(arrow.from)
        }
    }
}
