/// `application/x-www-form-urlencoded`.
enum Form {
    static let mediaType = "application/x-www-form-urlencoded"

    /// Nil when a percent sign is not followed by two hexadecimal digits or the result is not UTF-8.
    static func decode(_ text: some StringProtocol) -> String? {
        let parts = String(text).replacing("+", with: " ").split(separator: "%", omittingEmptySubsequences: false)
        var bytes = Array(parts[0].utf8)
        for part in parts.dropFirst() {
            let digits = part.prefix(2)
            guard digits.count == 2, digits.allSatisfy(\.isHexDigit), let byte = UInt8(digits, radix: 16) else {
                return nil
            }
            bytes.append(byte)
            bytes += part.dropFirst(2).utf8
        }
        return String(validating: bytes, as: UTF8.self)
    }

    static func parse(_ text: some StringProtocol) -> [(name: String, value: String)]? {
        var pairs: [(name: String, value: String)] = []
        for part in text.split(separator: "&") {
            let halves = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = decode(halves[0]), let value = decode(halves.count > 1 ? halves[1] : "") else {
                return nil
            }
            pairs.append((name, value))
        }
        return pairs
    }
}

extension Request {
    /// The body's form as a token endpoint wants it: POST, one form, each parameter once (RFC 6749 §3.2), none but those that are known.
    func form(_ known: Set<String>? = nil, else code: String = "invalid_request") throws(Refusal) -> [String: String] {
        guard method == "POST" else { throw Refusal(400, code, "POST is wanted") }
        guard single("Content-Type") == Form.mediaType else { throw Refusal(400, code, "wrong Content-Type") }
        guard let text = String(validating: body, as: UTF8.self), let pairs = Form.parse(text) else {
            throw Refusal(400, code, "body is not a form")
        }
        var form: [String: String] = [:]
        for (name, value) in pairs {
            guard form.updateValue(value, forKey: name) == nil else {
                throw Refusal(400, code, "parameter \(name) stands twice")
            }
            guard known?.contains(name) ?? true else { throw Refusal(400, code, "parameter \(name) is not known") }
        }
        return form
    }

    /// The body's JSON object, without members other than those that are known.
    func members(_ known: Set<String>? = nil) -> JSON? {
        guard method == "POST", !target.contains("?"), single("Content-Type") == "application/json",
            let value = JSON.parse(body),
            let members = value.members, known?.isSuperset(of: members.keys) ?? true
        else { return nil }
        return value
    }
}
