internal import Octets

/// A SAML 2.0 assertion as a grant carries it: base 64 for URLs, unpadded, in one line (RFC 7522 §2.1).
enum SAMLAssertion {
    /// - Parameter secret: the XML itself, or base 64 of it in either alphabet, folded or not.
    static func encoded(_ secret: Secret) throws(GrantFailure) -> Secret {
        var text = secret.withBytes { Array($0.drop { $0.isJSONBlank }) }
        defer { text.wipe() }
        if text.first == UInt8(ascii: "<") { return encode(text) }
        var bare = text.filter { !$0.isJSONBlank }
        defer { bare.wipe() }
        if !bare.contains(UInt8(ascii: "=")) {
            while bare.count % 4 != 0 { bare.append(UInt8(ascii: "=")) }
        }
        for index in bare.indices {
            if bare[index] == UInt8(ascii: "-") { bare[index] = UInt8(ascii: "+") }
            if bare[index] == UInt8(ascii: "_") { bare[index] = UInt8(ascii: "/") }
        }
        guard var document = Base64.decode(bare), document.first == UInt8(ascii: "<") else {
            throw .secretUnusable(name: "assertion", reason: "neither XML nor base 64 of it")
        }
        defer { document.wipe() }
        return encode(document)
    }

    private static func encode(_ document: [UInt8]) -> Secret { Secret(Base64.encodeURL(document)) }
}
