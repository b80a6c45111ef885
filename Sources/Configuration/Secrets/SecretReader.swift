import CYAML
import Glibc
import Octets

/// Why a secret cannot be had. Names the place, never the value.
public struct SecretFault: Error, Equatable, CustomStringConvertible {
    /// `file:/path: what is wrong`.
    public var description: String
    /// The file could be read, and `secret_files: strict` does not let it.
    public var isOpenToOthers = false
    /// Another user, or the same one where the gateway runs, may well have it: it is forbidden, or part of an environment.
    public var isOfThisUser = false
}

/// Bounds of a secret's reading.
public enum SecretBound {
    /// Bytes of a secret.
    public static let bytes = 64 << 10
    /// How long an `exec:` command may take, in nanoseconds.
    public static let commandTime: Int64 = 10_000_000_000
}

/// Reads the secret that `reference` names (docs/security/guarantees.md#invariant-7); blocks, so never on a data loop.
///
/// - Parameters:
///   - environment: gives a variable's value.
///   - policy: `strict` refuses a file that others can read; `warn` tells `warn`.
///   - warn: gets one sentence about a file that others can read, unless it lies on a read-only or memory file system.
/// - Throws: `SecretFault` where the place does not exist, breaks a rule, is empty or larger than 64 KiB.
public func readSecret(
    _ reference: SecretReference, environment: (String) -> String?, policy: SecretFilePolicy = .warn,
    warn: (String) -> Void = { _ in }
) throws(SecretFault) -> SecretBytes {
    let reader = SecretReader(place: reference.description, policy: policy)
    switch reference {
    case .literal(let bytes): return bytes
    case .environment(let name):
        guard let value = environment(name) else { throw reader.fault("the variable is not set", isOfThisUser: true) }
        return try reader.secret(Array(value.utf8))
    case .file(let path): return try reader.file(path, warn: warn)
    case .credential(let name):
        guard let directory = environment("CREDENTIALS_DIRECTORY"), directory.hasPrefix("/") else {
            throw reader.fault(
                "$CREDENTIALS_DIRECTORY is not set; systemd sets it for a unit with LoadCredential=\(name):…",
                isOfThisUser: true)
        }
        return try reader.file("\(directory)/\(name)", warn: warn)
    case .command(let path, let arguments): return try reader.command(path, arguments)
    }
}

/// Reads a certificate or key file under the rules of a secret, byte for byte: in a binary file a line end at the end is data. Who else may
/// read it is not asked, for certificates are public.
public func readKeyFile(_ path: String) throws(SecretFault) -> SecretBytes {
    try SecretReader(place: "file:\(path)", policy: nil).whole(path)
}

struct SecretReader {
    let place: String
    /// Nil: others may read it.
    let policy: SecretFilePolicy?

    func fault(_ reason: String, isOfThisUser: Bool = false) -> SecretFault {
        SecretFault(description: "\(place): \(reason)", isOfThisUser: isOfThisUser)
    }

    /// A descriptor of the file, which the caller closes. In the fault a relative path is told as it was looked for.
    private func opened(_ path: String) throws(SecretFault) -> Int32 {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file < 0 else { return file }
        let code = errno
        let reason = String(cString: strerror(code))
        let place = path.hasPrefix("/") ? "" : " (\(FilePlace(path).standing))"
        // No shell reads this file.
        let advice = path.hasPrefix("~") ? "; '~' is not expanded: write the whole path" : ""
        throw fault(reason + place + advice, isOfThisUser: code == EACCES || code == EPERM)
    }

    /// Trims one line end and checks the size.
    func secret(_ source: consuming [UInt8]) throws(SecretFault) -> SecretBytes {
        var bytes = consume source
        guard bytes.count <= SecretBound.bytes else {
            bytes.wipe()
            throw fault("larger than 64 KiB")
        }
        if bytes.last == UInt8(ascii: "\n") {
            bytes.removeLast()
            if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        }
        guard !bytes.isEmpty else { throw fault("empty") }
        return SecretBytes(wiping: bytes)
    }

    // MARK: - Files

    func file(_ path: String, warn: (String) -> Void) throws(SecretFault) -> SecretBytes {
        // Opened once and judged by its descriptor: the file that is read is the file that was checked.
        let file = try opened(path)
        defer { close(file) }
        try judge(file, warn: warn)
        guard let bytes = try? FileReader.read(file, bound: SecretBound.bytes) else { throw fault("cannot be read") }
        return try secret(consume bytes)
    }

    /// The words of `file` for a file that others can read; nothing of a file that would not be read. Reads nothing.
    func exposure(of path: String) -> String? {
        guard let file = try? opened(path) else { return nil }
        defer { close(file) }
        var exposure: String?
        try? judge(file) { exposure = $0 }
        return exposure
    }

    func whole(_ path: String) throws(SecretFault) -> SecretBytes {
        let file = try opened(path)
        defer { close(file) }
        try judge(file) { _ in }
        guard let bytes = try? FileReader.read(file, bound: SecretBound.bytes) else { throw fault("cannot be read") }
        guard bytes.count <= SecretBound.bytes else { throw fault("larger than 64 KiB") }
        guard !bytes.isEmpty else { throw fault("empty") }
        return SecretBytes(wiping: bytes)
    }

    private func judge(_ file: Int32, warn: (String) -> Void) throws(SecretFault) {
        var status = stat()
        guard fstat(file, &status) == 0 else { throw fault(FileReader.lastFault()) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw fault("not a regular file") }
        guard status.st_uid == 0 || status.st_uid == geteuid() else {
            throw fault("owned by user \(status.st_uid), neither root nor us")
        }
        guard status.st_mode & (S_IWGRP | S_IWOTH) == 0 else {
            throw fault("others can write it; chmod go-w")
        }
        guard let policy, status.st_mode & S_IROTH != 0, !isUnderPlatform(file) else { return }
        if policy == .strict {
            var refusal = fault("others can read it; chmod o-r (secret_files: strict)")
            refusal.isOpenToOthers = true
            throw refusal
        }
        warn("\(place): others can read it; chmod o-r")
    }

    /// Kubernetes, systemd and Docker mount secrets read-only or in memory with modes that nobody can change.
    private func isUnderPlatform(_ file: Int32) -> Bool {
        cyaml_is_memory_or_read_only(file) != 0
    }

    // MARK: - Commands

    func command(_ path: String, _ arguments: [String]) throws(SecretFault) -> SecretBytes {
        let output: [UInt8]
        do {
            output = try BoundedCommand.output(
                of: path, arguments, bound: SecretBound.bytes, time: SecretBound.commandTime)
        } catch {
            throw fault(error.reason, isOfThisUser: true)
        }
        // Moved, not copied: only the sole owner of the storage can wipe it.
        return try secret(consume output)
    }
}
