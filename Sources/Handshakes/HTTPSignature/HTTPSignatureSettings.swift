internal import Configuration
internal import Octets
internal import TLS

/// The settings of a block `http_signature`.
struct HTTPSignatureSettings: Sendable, Equatable {
    /// The spelling of a shared key.
    enum SharedKeyForm: String, CaseIterable, Sendable {
        case text = "text"
        case base64 = "base64"
    }

    /// The key is a secret that the server has, too.
    var isShared = false
    var sharedKeyForm = SharedKeyForm.text
    var hasPassword = false
    /// nil: that of a JWK, if any.
    var keyID: String?
    /// nil: what the key says.
    var algorithm: HTTPSignatureAlgorithm?
    var label = "cardea"
    /// Covered by every signature, where a request has them, beside the minimum.
    var cover: [HTTPSignatureComponent] = []
    /// A server may ask for these, too.
    var components: [HTTPSignatureComponent] = []
    var digest = HTTPContentDigest.sha256
    /// Seconds from the making of a signature to its end.
    var expires: Int64?
    var sendsNonce = false
    var saysAlgorithm = false
    var tag: String?

    /// Octets of a key's id and of a tag.
    static let longestText = 256
    static let mostComponents = 32

    /// Covered by every signature, where a request has them.
    var covered: [HTTPSignatureComponent] { HTTPSignatureComponent.minimum + cover }

    static let block = Block(
        name: "http_signature",
        description: "HTTP Message Signatures (RFC 9421): each request is signed, with its body (RFC 9530).",
        keys: [
            KeySpec(
                "key", .secret,
                "The private key: PEM, PKCS#8, PKCS#12, JWK or JWK set, of which the first key counts. RSA, EC on P-256 or (not as a JWK) P-384, or Ed25519.",
                digest: .place),
            KeySpec(
                "key_password", .secret, "The passphrase of an encrypted key or of a PKCS#12 file.", digest: .place),
            KeySpec(
                "shared_key", .secret, "In the place of `key`: a secret that the server has, too, for `hmac-sha256`.",
                digest: .place),
            KeySpec(
                "shared_key_form", .words(SharedKeyForm.self),
                "Whether the octets of `shared_key` are the key, or base 64 of it."),
            KeySpec(
                "algorithm", .words(["auto"] + HTTPSignatureAlgorithm.allCases.map(\.rawValue)),
                "The algorithm; `auto`: the only one of the key. An RSA key has two, so that one has to be named."),
            KeySpec(
                "key_id", .text(.line),
                "The parameter `keyid`, by which the server finds the key; without it the `kid` of a JWK.",
                digest: .nothing),
            KeySpec(
                "label", .text(.word), "The name of the signature in its fields.", default: "cardea", digest: .nothing),
            KeySpec(
                "cover", .list(.text(.line)),
                "Covered by each signature where the request has them, beside `@method`, `@authority`, `@path`, `@query` and, with a body, `content-digest`: names of header fields, `@scheme` and `@target-uri`.",
                digest: .nothing),
            KeySpec(
                "components", .list(.text(.line)),
                "Further components that the server may ask for by `Accept-Signature` in a 401.", digest: .nothing),
            KeySpec(
                "digest", .words(HTTPContentDigest.self), "The function of `Content-Digest`.", digest: .nothing),
            KeySpec(
                "expires", .duration(atLeast: .seconds(1)),
                "The parameter `expires`: from the making of a signature to its end, in whole seconds, at most 1h. Left out without it.",
                digest: .nothing),
            KeySpec(
                "nonce", .boolean, "Whether each signature has a random `nonce`.", default: "false", digest: .nothing),
            KeySpec(
                "alg", .boolean, "Whether the parameter `alg` names the algorithm.", default: "false",
                digest: .nothing),
            KeySpec("tag", .text(.line), "The parameter `tag`, which names the application.", digest: .nothing),
        ], exactlyOneOf: ["key", "shared_key"])

    init() {}

    init(_ keys: BlockReader) {
        isShared = keys.has("shared_key")
        sharedKeyForm = keys.word("shared_key_form")
        hasPassword = keys.has("key_password")
        keyID = keys.text("key_id")
        algorithm = keys.text("algorithm").flatMap { HTTPSignatureAlgorithm(rawValue: $0) }
        label = keys.line("label")
        digest = keys.word("digest")
        sendsNonce = keys.boolean("nonce")
        saysAlgorithm = keys.boolean("alg")
        tag = keys.text("tag")
        cover = Self.components("cover", keys)
        components = Self.components("components", keys)
        if keys.has("expires"), keys.isReadable("expires") {
            expires = keys.duration("expires").components.seconds
            keys.atMost("expires", .seconds(3600), "1h")
        }
        check(keys)
    }

    private func check(_ keys: BlockReader) {
        if !isShared { keys.need(["key"], ", or 'shared_key'") }
        if isShared {
            keys.refuse(["key"], "stands beside 'shared_key': write one of the two")
            keys.refuse(["key_password"], "belongs to 'key'")
            if let algorithm, algorithm != .hmac { keys.refuse("algorithm", "must be hmac-sha256 with 'shared_key'") }
        } else {
            keys.refuse(["shared_key_form"], "belongs to 'shared_key'")
            if algorithm == .hmac { keys.refuse("algorithm", "needs 'shared_key' in the place of 'key'") }
        }
        if label != label.lowercased() { keys.refuse("label", "must be in lower case (RFC 9651 section 3.1.2)") }
        for (key, text) in [("key_id", keyID), ("tag", tag)] {
            guard let text, text.structuredString == nil || text.utf8.count > Self.longestText else { continue }
            keys.refuse(key, "must be printable ASCII of at most \(Self.longestText) characters")
        }
    }

    private static func components(_ key: String, _ keys: BlockReader) -> [HTTPSignatureComponent] {
        var found: [HTTPSignatureComponent] = []
        for text in keys.texts(key) ?? [] {
            guard let component = HTTPSignatureComponent(text.lowercased()) else {
                let derived = HTTPSignatureComponent.Derived.allCases.map(\.rawValue).joined(separator: ", ")
                keys.refuse(
                    key,
                    "has '\(text)', which cannot be signed here: names of header fields can, but for those of the connection, and \(derived)"
                )
                continue
            }
            // The minimum is covered anyway.
            if !found.contains(component), !HTTPSignatureComponent.minimum.contains(component) {
                found.append(component)
            }
        }
        if found.count > mostComponents { keys.refuse(key, "must have at most \(mostComponents) names") }
        return found
    }
}
