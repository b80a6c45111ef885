import Glibc
import Octets

/// The environment of the program behind `--`: ours, without our own configuration and our secrets. Names and values are octets, as the system
/// has them: a text would take some of them together or put others in their place.
struct ProgramEnvironment {
    private var variables: [Variable] = []

    private struct Variable {
        let name: [UInt8]
        var value: [UInt8]
    }

    /// - Parameters:
    ///   - secrets: variables that hold secrets of ours, which are none of the program's.
    ///   - placeholders: for a confined program, texts in place of some of them. A variable of another name in which such a secret stands
    ///     gets the text, too; one in which another secret stands is left out.
    init(withholding secrets: Set<String>, placeholders: [String: String]? = nil) {
        var entries: [[UInt8]] = []
        var next = environ
        while let entry = next.pointee {
            entries.append(Array(UnsafeBufferPointer(start: entry, count: strlen(entry)).map { UInt8(bitPattern: $0) }))
            next += 1
        }
        self.init(entries, withholding: secrets, placeholders: placeholders)
    }

    /// - Parameter entries: `NAME=value` each; others are left out.
    init(_ entries: [[UInt8]], withholding secrets: Set<String>, placeholders: [String: String]?) {
        for entry in entries {
            guard let end = entry.firstIndex(of: UInt8(ascii: "=")) else { continue }
            variables.append(Variable(name: Array(entry[..<end]), value: Array(entry[(end + 1)...])))
        }
        let names = Set(secrets.map { Array($0.utf8) })
        let withheld = variables.filter { names.contains($0.name) }
        variables.removeAll { $0.name.starts(with: "CARDEA_".utf8) || names.contains($0.name) }
        guard let placeholders else { return }
        // The longest first: one secret may begin another.
        for secret in withheld.sorted(by: { ($1.value.count, $0.name.text) < ($0.value.count, $1.name.text) }) {
            let sought = SoughtSecret(secret.value)
            guard let placeholder = placeholders[secret.name.text] else {
                variables.removeAll { sought.stands(in: $0.value) }
                continue
            }
            for index in variables.indices {
                if let value = sought.replaced(in: variables[index].value, by: Array(placeholder.utf8)) {
                    variables[index].value = value
                }
            }
        }
        leaveOutEncoded(withheld)
        for (name, placeholder) in placeholders.sorted(by: { $0.key < $1.key }) { self[name] = placeholder }
    }

    /// A secret in base 64 is part of a longer word, in whose place no text could stand.
    private mutating func leaveOutEncoded(_ withheld: [Variable]) {
        var concealment = Concealment()
        for secret in withheld { SoughtSecret(secret.value).octets.withUnsafeBytes { concealment.add($0) } }
        var others: [Variable] = []
        for variable in variables {
            var value = variable.value
            value.withUnsafeMutableBytes { concealment.conceal($0) }
            if value == variable.value { others.append(variable) }
        }
        variables = others
    }

    /// `NAME=value` each.
    var entries: [[UInt8]] { variables.map { $0.name + [UInt8(ascii: "=")] + $0.value } }

    /// Setting nil takes the variable away.
    subscript(name: String) -> String? {
        get { variables.first { $0.name.elementsEqual(name.utf8) }?.value.text }
        set {
            variables.removeAll { $0.name.elementsEqual(name.utf8) }
            if let newValue { variables.append(Variable(name: Array(name.utf8), value: Array(newValue.utf8))) }
        }
    }

    /// Adds behind what the variable has, with a blank between them.
    mutating func append(_ text: String, to name: String) {
        guard let index = variables.firstIndex(where: { $0.name.elementsEqual(name.utf8) }) else {
            self[name] = text
            return
        }
        variables[index].value += [0x20] + text.utf8
    }
}

extension [UInt8] {
    fileprivate var text: String { String(decoding: self, as: UTF8.self) }
}
