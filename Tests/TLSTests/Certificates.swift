import Glibc
import TemporaryFolder

/// Certificates made once per run with the `openssl` command, in a directory of their own.
struct Certificates: Sendable {
    private let folder = TemporaryFolder("tls")
    var directory: String { folder.path }

    static let shared: Result<Certificates, any Error> = Result { try Certificates() }

    /// A CA, leaves of it for `good.test` (with 127.0.0.1 and ::1), `other.test`, an expired one, one whose name is only in the
    /// subject, a client's; and another CA with a leaf.
    init() throws {
        atexit {
            guard case .success(let files) = Certificates.shared else { return }
            files.folder.remove()
        }
        try authority("ca", "Test CA")
        try authority("unknown-ca", "Unknown CA")
        try leaf("good", "/CN=Good", "DNS:good.test,IP:127.0.0.1,IP:::1", by: "ca")
        try leaf("other", "/CN=Other", "DNS:other.test", by: "ca")
        try leaf("expired", "/CN=Expired", "DNS:good.test", by: "ca", days: "-1")
        try leaf("subject", "/CN=good.test", "email:a@b.test", by: "ca")
        try leaf("client", "/CN=Client", "email:a@b.test", by: "ca")
        try leaf("unknown", "/CN=Unknown", "DNS:good.test", by: "unknown-ca")
        try Programs.run([
            "openssl", "pkcs12", "-export", "-in", path("client.pem"), "-inkey", path("client.key"), "-passout",
            "pass:secret", "-out", path("client.p12"),
        ])
        try Programs.run([
            "openssl", "pkcs8", "-topk8", "-in", path("client.key"), "-passout", "pass:secret", "-out",
            path("client.encrypted.key"),
        ])
    }

    func path(_ name: String) -> String { "\(directory)/\(name)" }

    func bytes(_ name: String) -> [UInt8] {
        let descriptor = open(path(name), O_RDONLY)
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 16384)
        let count = read(descriptor, &buffer, buffer.count)
        return Array(buffer.prefix(max(count, 0)))
    }

    // MARK: -

    private static let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]

    private func authority(_ name: String, _ subject: String) throws {
        try Programs.run(
            ["openssl", "req", "-x509"] + Self.key + [
                "-keyout", path("\(name).key"), "-out", path("\(name).pem"), "-subj", "/CN=\(subject)", "-days", "2",
            ])
    }

    private func leaf(_ name: String, _ subject: String, _ names: String, by issuer: String, days: String = "2") throws
    {
        try Programs.run(
            ["openssl", "req"] + Self.key + [
                "-keyout", path("\(name).key"), "-out", path("\(name).csr"), "-subj", subject, "-addext",
                "subjectAltName=\(names)",
            ])
        try Programs.run([
            "openssl", "x509", "-req", "-in", path("\(name).csr"), "-CA", path("\(issuer).pem"), "-CAkey",
            path("\(issuer).key"), "-days", days, "-copy_extensions", "copy", "-out", path("\(name).pem"),
        ])
    }
}
