/// The members of a document's JSON, had by decoding it from nothing: every one is asked for, those that may be absent too, so that none can
/// be forgotten.
final class MemberList {
    private(set) var lines: Set<String> = []

    /// `path kind`, in snake_case, as the documents are written.
    static func of(_ type: any Decodable.Type) throws -> [String] {
        let list = MemberList()
        _ = try type.init(from: Reading(list: list, path: "", isOptional: false))
        return list.lines.sorted()
    }

    fileprivate func note(_ path: String, _ kind: String, _ isOptional: Bool) {
        lines.insert("\(path) \(kind)\(isOptional ? "?" : "")")
    }
}

private struct Reading: Decoder {
    let list: MemberList
    let path: String
    let isOptional: Bool
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        if isOptional { list.note(path, "object", true) }
        return KeyedDecodingContainer(Members(list: list, path: path))
    }
    func unkeyedContainer() -> any UnkeyedDecodingContainer { Items(list: list, path: path, isOptional: isOptional) }
    func singleValueContainer() -> any SingleValueDecodingContainer {
        Single(list: list, path: path, isOptional: isOptional)
    }
}

/// Something of each type. Text that is an enumeration's raw value has to be one of its words.
private func value<Value: Decodable>(_ type: Value.Type, _ list: MemberList, _ path: String, _ isOptional: Bool) throws
    -> Value
{
    let plain: [(any Decodable.Type, any Decodable, String)] = [
        (String.self, "", "text"), (Bool.self, false, "flag"), (Double.self, 0.0, "number"),
        (Int.self, 0, "whole number"),
        (UInt64.self, UInt64(0), "whole number"), (Int64.self, Int64(0), "whole number"),
    ]
    for (known, sample, word) in plain where known == type {
        list.note(path, word, isOptional)
        if let sample = sample as? Value { return sample }
    }
    if let words = type as? any (Decodable & RawRepresentable<String>).Type {
        for word in ["file", "text", "environment"] {
            if let sample = words.init(rawValue: word) as? Value {
                list.note(path, "word", isOptional)
                return sample
            }
        }
    }
    return try Value(from: Reading(list: list, path: path, isOptional: isOptional))
}

private struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let list: MemberList
    let path: String
    var codingPath: [any CodingKey] { [] }
    /// Asked for where names are not ours.
    var allKeys: [Key] { [Key(stringValue: "*")].compactMap { $0 } }

    private func place(_ key: Key) -> String {
        let name = key.stringValue.map { $0.isUppercase ? "_" + $0.lowercased() : String($0) }.joined()
        return path.isEmpty ? name : path + "." + name
    }
    func contains(_ key: Key) -> Bool { true }
    func decodeNil(forKey key: Key) -> Bool { false }
    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try value(type, list, place(key), false)
    }
    func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
        try value(type, list, place(key), true)
    }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        try value(type, list, place(key), true)
    }
    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? { try value(type, list, place(key), true) }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
        try value(type, list, place(key), true)
    }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { try value(type, list, place(key), true) }
    func nestedContainer<Inner: CodingKey>(keyedBy type: Inner.Type, forKey key: Key) -> KeyedDecodingContainer<Inner> {
        KeyedDecodingContainer(Members<Inner>(list: list, path: place(key)))
    }
    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedDecodingContainer {
        Items(list: list, path: place(key), isOptional: false)
    }
    func superDecoder() -> any Decoder { Reading(list: list, path: path, isOptional: false) }
    func superDecoder(forKey key: Key) -> any Decoder { Reading(list: list, path: place(key), isOptional: false) }
}

private struct Items: UnkeyedDecodingContainer {
    let list: MemberList
    let path: String
    let isOptional: Bool
    var codingPath: [any CodingKey] { [] }
    var count: Int? { 1 }
    var isAtEnd: Bool { currentIndex > 0 }
    var currentIndex = 0

    init(list: MemberList, path: String, isOptional: Bool) {
        self.list = list
        self.path = path + "[]"
        self.isOptional = isOptional
    }

    mutating func decodeNil() -> Bool { false }
    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        currentIndex += 1
        return try value(type, list, path, isOptional)
    }
    mutating func nestedContainer<Inner: CodingKey>(keyedBy type: Inner.Type) -> KeyedDecodingContainer<Inner> {
        currentIndex += 1
        return KeyedDecodingContainer(Members<Inner>(list: list, path: path))
    }
    mutating func nestedUnkeyedContainer() -> any UnkeyedDecodingContainer {
        currentIndex += 1
        return Items(list: list, path: path, isOptional: false)
    }
    mutating func superDecoder() -> any Decoder { Reading(list: list, path: path, isOptional: false) }
}

private struct Single: SingleValueDecodingContainer {
    let list: MemberList
    let path: String
    let isOptional: Bool
    var codingPath: [any CodingKey] { [] }

    func decodeNil() -> Bool { false }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try value(type, list, path, isOptional) }
}
