internal import Configuration
internal import Octets

/// The keys that say how a program is run, of every scheme that has one.
enum ProgramKeys {
    static let keys = [
        KeySpec(
            "command", .list(.text(.anyLine)),
            "The program's absolute path, then its arguments, the same each time. No shell reads them.", required: true),
        KeySpec(
            "environment", .named(.name, .text(.anyLine)),
            "Variables of its environment, which has nothing else but `PATH` and `LANG`. In the sandbox it may read files and folders that are named here or among the arguments."
        ),
        KeySpec(
            "timeout", .duration(atLeast: .milliseconds(100)),
            "How long it may run, at most 1m; then it and its children are killed.", default: "10s", digest: .nothing),
    ]

    static func block(_ name: String, _ description: String) -> Block {
        Block(name: name, description: description, keys: keys)
    }

    /// - Returns: nil where it has no path to be run by; that was reported.
    static func call(
        _ reader: BlockReader, input: [UInt8] = [], variables: [String: String] = [:]
    ) -> ProgramCall? {
        reader.atMost("timeout", .seconds(60), "1m")
        guard let words = reader.texts("command") else { return nil }
        guard let path = words.first, path.hasPrefix("/"), !path.hasSuffix("/") else {
            reader.refuse("command", "must begin with the absolute path of a program; no shell looks for it in PATH")
            return nil
        }
        if words.count > 64 { reader.refuse("command", "has more than 64 words") }
        let environment = reader.pairs("environment")
        for (key, texts) in [("command", words), ("environment", environment.map(\.value))] {
            if let name = texts.lazy.compactMap(template).first {
                reader.refuse(
                    key, "has the template '\(name)', and a program is run with the same words each time")
            }
        }
        let own = Dictionary(environment.map { ($0.name, $0.value) }) { $1 }
        return ProgramCall(
            path: path, arguments: Array(words.dropFirst()), input: input, environment: variables.merging(own) { $1 },
            time: reader.duration("timeout").wholeNanoseconds)
    }

    /// A name in braces, as recipes and other keys have them; JSON among the arguments is none.
    private static func template(_ text: String) -> String? {
        var rest = text.utf8[...]
        while let open = rest.firstIndex(of: UInt8(ascii: "{")) {
            rest = rest[rest.index(after: open)...]
            let name = rest.prefix { $0.isLetterOrDigit || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: ".") }
            if !name.isEmpty, rest[name.endIndex...].first == UInt8(ascii: "}") { return "{\(String(name) ?? "")}" }
        }
        return nil
    }
}
