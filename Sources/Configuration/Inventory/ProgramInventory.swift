import CYAML
import Glibc

extension Configuration {
    /// Where a program that an identity names cannot be run as it stands there. Warnings, for who checks may be another user on another machine
    /// than the gateway; nothing is run.
    public func checkPrograms() -> [Diagnostic] {
        identities.compactMap { identity in
            guard let program = identity.scheme.program, let reason = Self.fault(ofProgram: program.path) else {
                return nil
            }
            return Diagnostic(
                .warning, "'command' of identity '\(identity.name)': \(program.path): \(reason)",
                at: places.mark(of: program.path, in: identity.mark))
        }
    }

    private static func fault(ofProgram path: String) -> String? {
        var status = stat()
        guard stat(path, &status) == 0 else { return FileReader.lastFault() }
        guard status.st_mode & S_IFMT == S_IFREG else { return "not a regular file" }
        guard access(path, X_OK) == 0 else {
            return "cannot be run by this user; chmod +x, or run the check as the gateway's"
        }
        guard status.st_mode & (S_IWGRP | S_IWOTH) == 0 else { return "others can write it; chmod go-w" }
        return nil
    }
}
