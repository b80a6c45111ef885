import Glibc

/// The environment of the program behind `--`: ours, without our own configuration and our secrets.
struct ProgramEnvironment {
    private var variables: [(name: String, value: String)] = []

    /// - Parameters:
    ///   - secrets: variables that hold secrets of ours, which are none of the program's.
    ///   - placeholders: for a confined program, texts in place of some of them. A variable of another name in which such a secret stands
    ///     gets the text, too; one in which another secret stands is left out.
    init(withholding secrets: Set<String>, placeholders: [String: String]? = nil) {
        var next = environ
        while let entry = next.pointee {
            let text = String(cString: entry)
            if let end = text.firstIndex(of: "=") {
                variables.append((String(text[..<end]), String(text[text.index(after: end)...])))
            }
            next += 1
        }
        let values = Dictionary(variables.filter { secrets.contains($0.name) }) { first, _ in first }
        variables.removeAll { $0.name.hasPrefix("CARDEA_") || secrets.contains($0.name) }
        guard let placeholders else { return }
        // The longest first: one secret may begin another.
        for (name, value) in values.sorted(by: { ($1.value.utf8.count, $0.key) < ($0.value.utf8.count, $1.key) })
        where value.utf8.count >= Self.shortestSought {
            guard let placeholder = placeholders[name] else {
                variables.removeAll { $0.value.holds(value) }
                continue
            }
            for index in variables.indices where variables[index].value.holds(value) {
                variables[index].value = variables[index].value.substituting(placeholder, for: value)
            }
        }
        for (name, placeholder) in placeholders.sorted(by: { $0.key < $1.key }) { self[name] = placeholder }
    }

    /// Shorter values stand in other variables by chance.
    private static let shortestSought = 6

    /// `NAME=value` each.
    var entries: [String] { variables.map { "\($0.name)=\($0.value)" } }

    /// Setting nil takes the variable away.
    subscript(name: String) -> String? {
        get { variables.first { $0.name == name }?.value }
        set {
            variables.removeAll { $0.name == name }
            if let newValue { variables.append((name, newValue)) }
        }
    }
}

extension String {
    fileprivate func holds(_ other: String) -> Bool { firstRange(of: other, from: startIndex) != nil }

    fileprivate func substituting(_ text: String, for other: String) -> String {
        var result = ""
        var rest = startIndex
        while let range = firstRange(of: other, from: rest) {
            result += self[rest..<range.lowerBound] + text
            rest = range.upperBound
        }
        return result + self[rest...]
    }

    private func firstRange(of other: String, from start: Index) -> Range<Index>? {
        let (bytes, sought) = (utf8, Array(other.utf8))
        var begin = start
        while bytes.distance(from: begin, to: endIndex) >= sought.count {
            let end = bytes.index(begin, offsetBy: sought.count)
            if bytes[begin..<end].elementsEqual(sought) { return begin..<end }
            begin = bytes.index(after: begin)
        }
        return nil
    }
}
