internal import CLinux
internal import Glibc
internal import Synchronization
package import TLS

/// The authorities that vouch for one upstream or issuer, read from their files again whenever these change.
///
/// Written by the blocking thread, read by loops when they make a TLS configuration, not per connection and never on a cache hit: they
/// compare `version`, which is one load, and take the lock only when it has moved.
package final class TrustAnchors: Sendable {
    /// Where the authorities are read from, as configured.
    let sources: [Source]
    /// The file that `system` is read from at once, where the environment names one (`SSL_CERT_FILE`).
    private let systemFile: String?
    private let state = Mutex(State())
    private let changes = Atomic<UInt64>(1)

    /// Where authorities are read from.
    package enum Source: Sendable {
        /// The machine's own, or the file that `SSL_CERT_FILE` names.
        case system
        /// A PEM file with one or more certificates.
        case file(String)
    }

    private struct State {
        /// Nil until all of them could be read.
        var authorities: [CertificateAuthority]?
        var systemMark: [Int64] = []
        /// Why the files cannot be used now; `authorities` are then those before.
        var fault: String?
    }

    package init(_ sources: [Source], systemFile: String?) {
        self.sources = sources
        self.systemFile = systemFile
    }
}

extension TrustAnchors {
    /// Rises with every change.
    var version: UInt64 { changes.load(ordering: .acquiring) }

    /// - Throws: `.configuration` where there are none yet.
    func current() throws(TLSFault) -> [CertificateAuthority] {
        let (authorities, fault) = state.withLock { ($0.authorities, $0.fault) }
        guard let authorities else { throw TLSFault(.configuration, fault ?? "certificate authorities were not read") }
        return authorities
    }

    /// Why the files cannot be used now, and whether those before still count.
    package var fault: (reason: String, keepsFormer: Bool)? {
        state.withLock { state in state.fault.map { ($0, state.authorities != nil) } }
    }

    /// How long the authorities are good that are read from files; not the system's own, which its packages renew.
    package var validities: [(file: String, validity: CertificateValidity)] {
        var validities: [(file: String, validity: CertificateValidity)] = []
        for case .bundle(let bundle) in state.withLock({ $0.authorities }) ?? [] {
            validities += bundle.validities.map { (bundle.name, $0) }
        }
        return validities
    }

    /// The name of these authorities in the log.
    package var name: String {
        sources.map { if case .file(let path) = $0 { path } else { "system" } }.joined(separator: ", ")
    }

    /// Reads all sources anew. Only a complete result counts from now on: with half of a list, servers would be refused that are to be
    /// trusted. Blocks.
    /// - Returns: whether there is anything new, and whether there is a new fault.
    package func reload() -> (isChanged: Bool, isFailed: Bool) {
        let seen = systemFile.map(Self.mark) ?? []
        var read: [CertificateAuthority] = []
        var reason: String?
        do throws(TLSFault) {
            for source in sources {
                switch source {
                case .system: read.append(.system)
                case .file(let path): read.append(.bundle(try Self.bundle(path)))
                }
            }
        } catch { reason = error.message }
        let (isChanged, isFailed) = state.withLock { state in
            if let reason {
                defer { state.fault = reason }
                return (false, state.fault != reason)
            }
            // A file that is being replaced is not read as an empty one.
            let mark = seen.isEmpty ? state.systemMark : seen
            defer {
                state.authorities = read
                state.systemMark = mark
                state.fault = nil
            }
            return (state.authorities != read || state.systemMark != mark, false)
        }
        if isChanged { changes.add(1, ordering: .acquiringAndReleasing) }
        return (isChanged, isFailed)
    }

    private static func bundle(_ path: String) throws(TLSFault) -> AuthorityBundle {
        try AuthorityBundle(pem: read(path), name: path)
    }

    /// The fault of one file.
    package struct FileFault: Sendable {
        package let reason: String
        /// There is nothing to judge by; else nobody can use what it holds.
        package let isUnreadable: Bool
    }

    /// The fault that a start would find in a file; nil where the file is good. Blocks.
    package static func fault(of path: String) -> FileFault? {
        do throws(TLSFault) { _ = try bundle(path) } catch {
            return FileFault(reason: error.message, isUnreadable: (try? PublicFile.read(path)) == nil)
        }
        return nil
    }

    private static func read(_ path: String) throws(TLSFault) -> [UInt8] {
        do throws(PublicFile.Fault) { return try PublicFile.read(path) } catch {
            throw TLSFault(.configuration, "certificate authorities in \(path) cannot be read: \(error.reason)")
        }
    }

    /// Changes with the file.
    private static func mark(_ path: String) -> [Int64] {
        var status = stat()
        guard stat(path, &status) == 0 else { return [] }
        return [
            Int64(bitPattern: UInt64(status.st_ino)), Int64(status.st_size), Int64(status.st_mtim.tv_sec),
            Int64(status.st_mtim.tv_nsec),
        ]
    }
}
