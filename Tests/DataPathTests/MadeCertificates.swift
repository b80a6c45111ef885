@testable import TLSTests

extension Certificates {
    /// Makes a certificate of the test authority with names of a test's own, beside the shared ones.
    /// - Parameters:
    ///   - name: of its files `NAME.pem` and `NAME.key`, which no other test makes.
    ///   - names: as a `subjectAltName` of openssl.
    func make(_ name: String, _ names: String) throws {
        let (key, request, certificate) = (path("\(name).key"), path("\(name).csr"), path("\(name).pem"))
        try Programs.run([
            "openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out",
            request, "-subj", "/CN=Made", "-addext", "subjectAltName=\(names)",
        ])
        try Programs.run([
            "openssl", "x509", "-req", "-in", request, "-CA", path("ca.pem"), "-CAkey", path("ca.key"), "-days", "2",
            "-copy_extensions", "copy", "-out", certificate,
        ])
    }

    /// The words of a listener's `tls` for a certificate.
    /// - Parameter callers: the authority of the certificate that callers must show.
    func entry(_ leaf: String, callers: String? = nil) -> String {
        let authority = callers.map { ", client_ca: \(path($0))" } ?? ""
        return "{certificate: \(path(leaf + ".pem")), key: \"file:\(path(leaf + ".key"))\"\(authority)}"
    }
}
