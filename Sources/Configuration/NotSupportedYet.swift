/// What the file's syntax has and this version has not. Removing an entry turns the feature on: nothing else
/// refuses it, and a default that had to give way comes back.
enum NotSupportedYet {
    /// `block.key` refuses the key, `block.key=word` one value of it. Of a refused handshake the body is not read.
    static let entries: Set<String> = [
    ]

    static func refuses(block: String, key: String) -> Bool { entries.contains("\(block).\(key)") }

    static func refuses(block: String, key: String, word: String) -> Bool {
        entries.contains("\(block).\(key)=\(word)")
    }
}
