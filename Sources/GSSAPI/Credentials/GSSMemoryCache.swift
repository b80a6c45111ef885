internal import CGSSAPI

/// A cache of tickets in this process' memory, destroyed with its owner.
///
/// The library keeps such caches by name until they are destroyed: releasing the GSSAPI credential does not do so.
struct GSSMemoryCache: ~Copyable {
    /// The name as the library spells it, `MEMORY:` and some letters.
    let name: String
    private let library: GSSLibrary

    /// - Parameter path: a file of tickets to copy, nil for an empty cache. The file is only read.
    /// - Throws: `credentialMissing` for a file that is missing, unreadable or of another format, and what else the library says.
    init(_ library: GSSLibrary, copyOf path: String?) throws(GSSFault) {
        let source: String? = path.map { "FILE:\($0)" }
        let (code, told) = withCText(capacity: GSSFault.maximumMessage) { room, capacity in
            cgss_memory_cache(library.calls, source, room, capacity)
        }
        guard code == 0 else {
            let minor = UInt32(bitPattern: code)
            let kind = GSSClassification.kind(routineError: GSSStatus.failure, minor: minor, detail: told)
            guard let path else { throw GSSFault(kind, "no cache in memory: \(told)") }
            // Reading a file asks nobody, so that every other reason, EACCES and kin among them, is the file's.
            throw GSSFault(kind == .other ? .credentialMissing : kind, "no credential from \(path): \(told)")
        }
        name = told
        self.library = library
    }

    deinit { cgss_destroy_cache(library.calls, name) }
}
