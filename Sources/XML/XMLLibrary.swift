internal import CXML

/// The system's libxml2. It is opened when a document is first read, and stays: who reads no XML needs it neither installed nor in memory.
struct XMLLibrary: @unchecked Sendable {
    let calls: cxml_calls

    /// The names that programs are linked against: since libxml2 2.14, and before.
    private static let sonames = ["libxml2.so.16", "libxml2.so.2"]

    private static let opened: Result<XMLLibrary, XMLFault> = {
        var words = ""
        for soname in sonames {
            var calls = cxml_calls()
            var told = [CChar](repeating: 0, count: 256)
            let outcome = cxml_open(soname, &calls, &told, told.count)
            words = String(decoding: told.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            guard outcome == CXML_OPENED.rawValue else { continue }
            calls.`init`()
            return .success(XMLLibrary(calls: calls))
        }
        return .failure(
            XMLFault(
                "XML needs the library libxml2, which cannot be opened (\(words)); install libxml2 (Debian: libxml2)"))
    }()

    static func open() throws(XMLFault) -> XMLLibrary { try opened.get() }
}
