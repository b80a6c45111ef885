internal import FoundationEssentials

/// A JSON object that the admin addresses answer with and the commands read, with its members' names in snake case.
public protocol AdminDocument: Codable {}

extension AdminDocument {
    /// Nil for anything but this document.
    public init?(parsing text: String) {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        guard let document = try? decoder.decode(Self.self, from: Data(text.utf8)) else { return nil }
        self = document
    }

    /// The document and a line feed.
    public func encoded() -> String { snakeCaseJSON(self) + "\n" }
}

/// A value of ours as JSON for terminals and scripts: members in snake_case, in the order of their names.
public func snakeCaseJSON(_ value: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
        positiveInfinity: "+Inf", negativeInfinity: "-Inf", nan: "NaN")
    // Every document consists of strings, numbers and lists of them, which always have a JSON form.
    guard let data = try? encoder.encode(value) else { return "{}" }
    return String(decoding: data, as: UTF8.self)
}
