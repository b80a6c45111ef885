/// The hash functions of HTTP Digest (RFC 7616 §6.1), the strongest first: the words of `digest.algorithms` and of `proxy.digest`.
public enum DigestFunction: String, CaseIterable, Sendable {
    case sha512Truncated256 = "sha-512-256"
    case sha256 = "sha-256"
    case md5 = "md5"
}
