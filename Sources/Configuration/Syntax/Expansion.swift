internal import Octets

/// `${NAME}`, `${NAME:-default}` and `$$` in a scalar. What a variable holds is not expanded again.
enum Expansion {
    struct Fault: Error {
        var message: String
    }

    /// Bytes of one expanded value.
    static let bound = 64 << 10

    /// A `$` that starts none of the three forms stands for itself.
    static func expand(_ text: String, environment: (String) -> String?) throws(Fault) -> String {
        guard text.utf8.contains(UInt8(ascii: "$")) else { return text }
        var result: [UInt8] = []
        let bytes = Array(text.utf8)
        var index = 0
        while index < bytes.count {
            let next = index + 1 < bytes.count ? bytes[index + 1] : 0
            guard bytes[index] == UInt8(ascii: "$"), next == UInt8(ascii: "$") || next == UInt8(ascii: "{") else {
                result.append(bytes[index])
                index += 1
                continue
            }
            if next == UInt8(ascii: "$") {
                result.append(next)
                index += 2
                continue
            }
            guard let end = bytes[index...].firstIndex(of: UInt8(ascii: "}")) else {
                throw Fault(message: "'${' without '}'; a plain '$' before '{' is written '$${'")
            }
            let inner = String(decoding: bytes[(index + 2)..<end], as: UTF8.self)
            result += try value(of: inner, environment: environment).utf8
            guard result.count <= bound else { throw Fault(message: "the expanded value is larger than 64 KiB") }
            index = end + 1
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func value(of inner: String, environment: (String) -> String?) throws(Fault) -> String {
        var name = Substring(inner)
        var fallback: String?
        if let range = inner.firstRange(of: ":-") {
            name = inner[..<range.lowerBound]
            fallback = String(inner[range.upperBound...])
        }
        let isName = !name.isEmpty && name.utf8.allSatisfy { isNameByte($0) } && !(name.utf8.first ?? 0).isDigit
        guard isName else {
            throw Fault(message: "'${\(Quoted.short(inner))}' is not '${NAME}' or '${NAME:-default}'")
        }
        let found = environment(String(name))
        if let found, !(found.isEmpty && fallback != nil) {
            guard !found.utf8.contains(0) else { throw Fault(message: "variable '\(name)' contains a NUL character") }
            return found
        }
        if let fallback { return fallback }
        let variable = Quoted.short(String(name))
        // Variables are written in capitals nearly everywhere, and what is filled in later is in small letters.
        let other =
            name.utf8.allSatisfy { !(0x41...0x5a).contains($0) }
            ? "; what is filled in for each request is written '{\(variable)}', without '$'" : ""
        throw Fault(
            message:
                "environment variable '\(variable)' is not set; set it, or give it a default: '${\(variable):-…}'\(other)"
        )
    }

    private static func isNameByte(_ byte: UInt8) -> Bool { byte.isLetterOrDigit || byte == UInt8(ascii: "_") }
}

extension Node {
    /// The tree with every value expanded; a value that cannot be is reported and left as it is.
    func expanded(environment: (String) -> String?, _ findings: Findings) -> Node {
        var result = self
        switch content {
        case .scalar(var scalar):
            do {
                scalar.text = try Expansion.expand(scalar.text, environment: environment)
            } catch {
                findings.error(error.message, mark)
                scalar.isFaulty = true
            }
            result.content = .scalar(scalar)
        case .list(let items):
            result.content = .list(items.map { $0.expanded(environment: environment, findings) })
        case .map(let entries):
            result.content = .map(
                entries.map { entry in
                    var entry = entry
                    entry.value = entry.value.expanded(environment: environment, findings)
                    return entry
                })
        }
        return result
    }
}
