internal import CGSSAPI

/// The server that a security context is for.
public enum GSSTarget: Sendable, Equatable {
    /// A service on a host, as GSS_C_NT_HOSTBASED_SERVICE (RFC 2744 section 4.1) spells it: `HTTP@host` for HTTP (RFC 4559 section
    /// 4.1). By default MIT asks DNS for the host's canonical name, forwards and backwards, before it asks the KDC; krb5.conf's
    /// `dns_canonicalize_hostname` decides.
    case service(String)
    /// A principal in full, `HTTP/host@REALM`: taken as it is, without DNS.
    case principal(String)
}

/// A name inside the library, released with its owner.
struct GSSName: ~Copyable {
    private let handle: cgss_name
    private let library: GSSLibrary

    /// The longest name in bytes: a host name has 253, and a principal some more.
    static let maximumCount = 1024

    /// - Throws: `invalidArgument` for a name that is empty, too long or has control characters, and what the library says.
    init(_ library: GSSLibrary, _ text: String, isPrincipal: Bool) throws(GSSFault) {
        let bytes = Array(text.utf8)
        guard !bytes.isEmpty, bytes.count <= Self.maximumCount, !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F })
        else {
            throw GSSFault(.invalidArgument, "the name of a principal or service is empty, too long or has controls")
        }
        let type = isPrincipal ? CGSS_NAME_PRINCIPAL : CGSS_NAME_HOSTBASED
        var name: cgss_name?
        var minor: UInt32 = 0
        let major = cgss_import_name(library.calls, &minor, bytes, bytes.count, Int32(type), &name)
        let status = GSSStatus(major: major, minor: minor)
        guard !status.isError, let name else {
            throw status.fault(library, .kerberos, doing: "the name \(text) cannot be used")
        }
        handle = name
        self.library = library
    }

    init(_ library: GSSLibrary, _ target: GSSTarget) throws(GSSFault) {
        switch target {
        case .service(let text): try self.init(library, text, isPrincipal: false)
        case .principal(let text): try self.init(library, text, isPrincipal: true)
        }
    }

    deinit { cgss_release_name(library.calls, handle) }

    /// Lends the handle. The name lives for as long as the body runs, which a bare handle would not ensure.
    func withHandle<Value>(_ body: (cgss_name) -> Value) -> Value { body(handle) }
}
