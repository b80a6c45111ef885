import Configuration
import DataPath
import Gateway
import Glibc
import Octets

/// A folder with the authorities that a confined program trusts, in the forms that its libraries read: those of the system, and ours,
/// whose leaves it sees instead of the servers' own.
struct TrustFolder {
    let path: String
    /// The folder that it is in.
    let parent: String
    var bundle: String { path + "/bundle.pem" }
    /// The certificates of `bundle`, for Java.
    var javaStore: String { path + "/truststore.jks" }
    /// An empty file that nobody may read: seen in place of what is covered.
    var nothing: String { path + "/nothing" }
    /// Whether some host's TLS is ended here: otherwise the program trusts what it always did.
    let hasAuthority: Bool

    /// The places at which distributions keep the system's authorities.
    private static let systemBundles = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    ]

    /// - Parameter authorities: files of `intercept.ca`; their keys are left where they are.
    init(authorities: [String], environment: (String) -> String?) throws(GatewayFault) {
        parent = environment("TMPDIR").flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "/tmp"
        var template = Array(parent.utf8)
        // The six X are mkdtemp(3)'s own form: the system puts letters of its own in their place, so that nobody has made the folder before.
        template += Array("/cardea-confined-XXXXXX".utf8) + [0]
        let made: String? = template.withUnsafeMutableBytes { bytes in
            mkdtemp(bytes.assumingMemoryBound(to: CChar.self).baseAddress!).map { String(cString: $0) }
        }
        guard let made else {
            throw Self.fault("no folder for the program's authorities in \(parent), which TMPDIR changes", errno)
        }
        path = made
        hasAuthority = !authorities.isEmpty
        do throws(GatewayFault) {
            try write(nothing, [], mode: 0)
            guard hasAuthority else { return }
            var own: [[UInt8]] = []
            for file in authorities {
                let secret: SecretBytes
                do throws(SecretFault) {
                    secret = try readSecret(.file(path: file), environment: environment, policy: .warn)
                } catch { throw GatewayFault("--confine: intercept.ca: \(error)") }
                own += secret.withBytes { PEMCertificates.read(String(decoding: $0, as: UTF8.self)) }
            }
            let system = Self.systemCertificates(environment)
            try write(bundle, PEMCertificates.write(system + own), mode: 0o444)
            try write(javaStore, JavaTrustStore.octets(of: system + own), mode: 0o444)
        } catch {
            remove()
            throw error
        }
    }

    func remove() {
        for file in [bundle, javaStore, nothing] { unlink(file) }
        rmdir(path)
    }

    private static func systemCertificates(_ environment: (String) -> String?) -> [[UInt8]] {
        for path in [environment("SSL_CERT_FILE")].compactMap(\.self) + systemBundles {
            guard let octets = try? PublicFile.read(path) else { continue }
            let found = PEMCertificates.read(String(decoding: octets, as: UTF8.self))
            if !found.isEmpty { return found }
        }
        return []
    }

    private func write(_ file: String, _ octets: [UInt8], mode: mode_t) throws(GatewayFault) {
        let descriptor = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw Self.fault(file, errno) }
        defer { close(descriptor) }
        var rest = octets[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { throw Self.fault(file, errno) }
            rest = rest.dropFirst(count)
        }
    }

    private static func fault(_ what: String, _ code: Int32) -> GatewayFault {
        GatewayFault("--confine: \(what): \(String(cString: strerror(code)))")
    }
}

/// Certificates in text form (RFC 7468), without regard to what stands between them.
enum PEMCertificates {
    private static let begin = "-----BEGIN CERTIFICATE-----"
    private static let end = "-----END CERTIFICATE-----"

    /// The certificates in DER. A block that is no base 64 is passed over.
    static func read(_ text: String) -> [[UInt8]] {
        var found: [[UInt8]] = []
        var block: String?
        for line in text.split(whereSeparator: \.isNewline) {
            switch line.trimmingBlanks {
            case begin: block = ""
            case end:
                if let der = block.flatMap({ Base64.decode($0) }) { found.append(der) }
                block = nil
            case let line: block? += line
            }
        }
        return found
    }

    static func write(_ certificates: [[UInt8]]) -> [UInt8] {
        certificates.flatMap { der in
            var lines = [begin]
            var rest = Base64.encode(der)[...]
            while !rest.isEmpty {
                lines.append(String(rest.prefix(64)))
                rest = rest.dropFirst(64)
            }
            return Array((lines + [end, ""]).joined(separator: "\n").utf8)
        }
    }
}

extension Substring {
    fileprivate var trimmingBlanks: String {
        String(drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}
