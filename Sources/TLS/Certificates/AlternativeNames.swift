internal import COpenSSL

/// Names of a certificate's subject (RFC 5280 section 4.2.1.6). Its common name is none: RFC 9525 gave that up.
public struct AlternativeNames: Sendable, Equatable {
    /// Lower case, as they stand, wildcards included.
    public private(set) var hosts: [String] = []
    /// 4 or 16 bytes each.
    private(set) var addresses: [[UInt8]] = []
    /// Each as the certificate has it, whatever its scheme.
    private(set) var uris: [String] = []
    /// Each as the certificate has it.
    private(set) var mailAddresses: [String] = []

    /// A certificate with more names than this is read up to here.
    static let limit = 1000

    init(of certificate: OpaquePointer) {
        guard let list = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else { return }
        let names = OpaquePointer(list)
        for index in 0..<min(OPENSSL_sk_num(names), Int32(Self.limit)) {
            guard let entry = OPENSSL_sk_value(names, index) else { continue }
            var type: Int32 = 0
            let name = entry.assumingMemoryBound(to: GENERAL_NAME.self)
            guard let value = GENERAL_NAME_get0_value(name, &type) else { continue }
            // The four kinds that are read are all ASN1_STRINGs.
            guard [GEN_DNS, GEN_IPADD, GEN_URI, GEN_EMAIL].contains(type) else { continue }
            let string = value.assumingMemoryBound(to: ASN1_STRING.self)
            guard let start = ASN1_STRING_get0_data(string) else { continue }
            let bytes = Array(UnsafeBufferPointer(start: start, count: Int(ASN1_STRING_length(string))))
            // A NUL in a name has fooled readers before.
            guard !bytes.isEmpty, type == GEN_IPADD || bytes.allSatisfy({ (0x21...0x7e).contains($0) }) else {
                continue
            }
            let text = String(decoding: bytes, as: UTF8.self)
            switch type {
            case GEN_DNS: hosts.append(text.lowercased())
            case GEN_IPADD: addresses.append(bytes)
            case GEN_URI: uris.append(text)
            default: mailAddresses.append(text)
            }
        }
        GENERAL_NAMES_free(names)
    }

    /// Hosts, URIs and mail addresses.
    var texts: [String] { hosts + uris + mailAddresses }

    /// How a name is covered, from worst to best.
    public enum Fit: Sendable, Comparable { case none, wildcard, exact }

    /// How well a host's name, in lower case, is covered; `*` stands for one whole label at the front (RFC 9525 section 6.3).
    public func fit(_ host: String) -> Fit {
        if hosts.contains(host) { return .exact }
        guard let dot = host.firstIndex(of: "."), dot != host.startIndex else { return .none }
        return hosts.contains("*" + host[dot...]) ? .wildcard : .none
    }
}
