public import Configuration
internal import Glibc
internal import TLS
internal import TokenStore

/// The checks of a store that need not open it: nothing is made, changed or locked.
extension Configuration {
    /// Why a secret that was read is no key to seal with; nil where it is one, or is no such key.
    public func sealingKeyFault(_ secret: NamedSecret, _ bytes: SecretBytes) -> String? {
        guard secret.owner == "store", secret.key == "key" else { return nil }
        do throws(SealingFault) {
            _ = try bytes.withBytes { (raw: UnsafeRawBufferPointer) throws(SealingFault) in
                try SealingKey(fileContents: Array(raw))
            }
            return nil
        } catch { return "\(error)" }
    }

    /// An error where the store cannot be opened by anybody, a warning where this user could not: the gateway may run as another.
    public func checkStore() -> [Diagnostic] {
        var diagnostics: [Diagnostic] = []
        if store.keys.count > SealingKeyRing.maximumKeys {
            diagnostics.append(
                Diagnostic(
                    .error, "'key' of store: more than \(SealingKeyRing.maximumKeys) keys; remove the oldest",
                    at: storeMarks.key))
        }
        guard let path = store.path else { return diagnostics }
        if let reason = placeFault(path) {
            diagnostics.append(Diagnostic(.warning, "'path' of store: \(reason)", at: storeMarks.path))
        }
        let keyFile = KeyFile.path(beside: path)
        if store.keys.isEmpty, access(keyFile, F_OK) == 0 {
            do throws(StoreFault) { _ = try KeyFile.load(keyFile) } catch {
                diagnostics.append(
                    Diagnostic(
                        error.kind == .sealing ? .error : .warning, "the key beside the store: \(error)",
                        at: storeMarks.path))
            }
        }
        // The key was made when none was named, and the file is lost for whoever names another one alone.
        if let first = store.keys.first, access(keyFile, F_OK) == 0, !store.keys.contains(.file(path: keyFile)) {
            diagnostics.append(
                Diagnostic(
                    .warning,
                    "'key' of store does not name \(keyFile), which was made when there was no 'key': while rows are sealed with it, write "
                        + "`key: [\(first), file:\(keyFile)]`, restart, and run `cardea store rotate`; remove it afterwards",
                    at: storeMarks.key))
        }
        return diagnostics
    }

    private func placeFault(_ path: String) -> String? {
        let end = path.lastIndex(of: "/")
        let folder = end == path.startIndex ? "/" : end.map { String(path[..<$0]) } ?? "."
        func cannot(_ act: String) -> String {
            "user \(geteuid()), who runs this check, cannot \(act) (\(String(cString: strerror(errno))))"
        }
        let advice = "; make it owned by the user that runs the gateway"
        var status = stat()
        guard stat(folder, &status) == 0 else {
            return errno == ENOENT
                ? "the folder \(folder) does not exist; create it, owned by the user that runs the gateway"
                : cannot("look at the folder \(folder)")
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { return "\(folder) is no folder; choose another path" }
        guard faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0 else {
            return cannot("write into the folder \(folder)") + advice
        }
        let room = room(in: folder)
        guard room >= Self.leastRoom else {
            return
                "the disk of the folder \(folder) has \(room / 1024) KiB left, so that nothing can be kept there; make room"
        }
        guard stat(path, &status) == 0 else { return nil }
        guard status.st_mode & S_IFMT == S_IFREG else { return "\(path) is no file; choose another path" }
        guard faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0 else {
            return cannot("read and write \(path)") + advice
        }
        return nil
    }

    /// Bytes that a new file with a few rows needs.
    private static let leastRoom: UInt64 = 64 << 10

    /// Bytes; as many as there may be where the system does not tell.
    private func room(in folder: String) -> UInt64 {
        var disk = statvfs()
        guard statvfs(folder, &disk) == 0 else { return .max }
        let (bytes, overflow) = UInt64(disk.f_bavail).multipliedReportingOverflow(by: UInt64(disk.f_frsize))
        return overflow ? .max : bytes
    }
}
