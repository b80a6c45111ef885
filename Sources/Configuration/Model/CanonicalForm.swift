/// The bytes of a handshake block that an identity's digest is made from (docs/design/keys.md#digest).
///
/// Keys are sorted, values are in one spelling, a value that equals its default is left out: writing a default down,
/// moving a secret's file or a new version's new key changes nothing. A key counts unless it stands below.
///
/// Of a secret counts only that there is one: whose the token is, the issuer tells by the client or the user beside it. Where nothing
/// else says whose it is, the secret does, and its place counts (`telling`); its value never does.
enum CanonicalForm {
    /// `block.key`: secrets that say who we are. A new value at the same place is the same principal, another place another one.
    static let telling: Set<String> = [
        "static.value",
        // The same user may have another password elsewhere, and here the password is the token.
        "basic.password",
        "oauth2.refresh_token",
        "oauth2.assertion",
        "oauth2.subject_token",
        "oauth2.actor_token",
        "oam_oauth.refresh_token",
        "oam_oauth.user_assertion",
        // What a recipe does with its secrets is not known.
        "recipe_secret.value",
    ]

    /// `block.key`: policy that does not decide which token is had.
    static let excluded: Set<String> = [
        // How the client proves itself. It stays the same client while its keys are replaced.
        "oauth2.key",
        "oauth2.key_password",
        "oauth2.signing",
        "oauth2.revocation_url",
        // Asked about a token, and by a check alone.
        "oauth2.introspection",
        "oauth2.introspection_url",
        // How a person is led to the issuer. It stays the same person while the way changes.
        "oauth2.authorization_url",
        "oauth2.device_authorization_url",
        "oauth2.redirect_uri",
        "oauth2.allowed_scopes",
        "oauth2.allowed_issuers",
        "oam_oauth.key",
        "oam_oauth.key_password",
        "oam_oauth.assertion",
        "oam_oauth.revocation_url",
        "oam_oauth.introspection",
        "oam_oauth.introspection_url",
        "oam_oauth.authorization_url",
        "oam_oauth.redirect_uri",
        "oam_oauth.allowed_scopes",
        "oam_oauth.resource_token_prefix",
        "oam_oauth.delete_tokens",
        "oam_oauth.experimental",
        "mobilefirst.min_remaining_attempts",
        "mobilefirst.cooldown",
        "mobilefirst.allowed_scopes",
        "mobilefirst.conflict_replay",
        "mobilefirst.assertion_lifetime",
        // How a person is led to the provider, what is asked for, and how often. It stays the same device with the same login.
        "adobe_pass.domain_name",
        "adobe_pass.redirect_url",
        "adobe_pass.resource",
        "adobe_pass.preauthorize",
        "adobe_pass.calls_per_second",
        "adobe_pass.burst",
        "mobile_hub.send_backend_id_with_bearer",
        "oam_webgate.probe",
        "oam_webgate.strip_cookies",
        "oam_webgate.handle_unknown",
        "recipe.probe",
    ]

    /// Each part is preceded by its length, so that no two different blocks give the same bytes.
    static func of(handshake: String, _ node: Node, _ block: Block) -> [UInt8] {
        var result: [UInt8] = []
        append(Array(handshake.utf8), to: &result)
        result += members(node, block)
        return result
    }

    private static func members(_ node: Node, _ block: Block) -> [UInt8] {
        var result: [UInt8] = []
        for entry in (node.map ?? []).sorted(by: { $0.key < $1.key }) {
            guard let spec = block[entry.key], !excluded.contains("\(block.name).\(spec.name)"),
                let bytes = telling.contains("\(block.name).\(spec.name)")
                    ? place(entry.value) ?? value(entry.value, spec.type) : value(entry.value, spec.type)
            else { continue }
            if let text = spec.defaultText, let canonical = try? spec.type.canonical(text),
                bytes == Array(canonical.utf8)
            {
                continue
            }
            if case .block = spec.type, bytes.isEmpty { continue }
            append(Array(spec.name.utf8), to: &result)
            append(bytes, to: &result)
        }
        return result
    }

    private static func value(_ node: Node, _ type: ValueType) -> [UInt8]? {
        var result: [UInt8] = []
        switch type.fitting(node) {
        case .list(let item):
            for node in node.list ?? [] { append(value(node, item) ?? [], to: &result) }
        case .named(let form, let item):
            let entries = (node.map ?? []).map { (key: (try? form.canonical($0.key)) ?? $0.key, value: $0.value) }
            for entry in entries.sorted(by: { $0.key < $1.key }) {
                append(Array(entry.key.utf8), to: &result)
                append(value(entry.value, item) ?? [], to: &result)
            }
        case .block(let block):
            result = members(node, block)
        case .json: result = json(node)
        case let type?:
            guard let scalar = node.scalar, let canonical = try? type.canonical(scalar.text) else { return nil }
            result = Array(canonical.utf8)
        case nil: return nil
        }
        return result
    }

    /// Nil for what is no reference, such as the name of another identity. Of a literal that it is one: its text is the value itself.
    private static func place(_ node: Node) -> [UInt8]? {
        guard let text = node.scalar?.text, let reference = try? SecretReference(text: text) else { return nil }
        if case .literal = reference { return Array("literal".utf8) }
        return Array(text.utf8)
    }

    /// The kind first: a list of one is not what stands in it. Members are sorted, as their order means nothing.
    private static func json(_ node: Node) -> [UInt8] {
        var result: [UInt8] = []
        switch node.content {
        case .scalar(let scalar):
            append([UInt8(ascii: scalar.isPlain ? "p" : "q")], to: &result)
            append(Array(scalar.text.utf8), to: &result)
        case .list(let items):
            append([UInt8(ascii: "l")], to: &result)
            for item in items { append(json(item), to: &result) }
        case .map(let entries):
            append([UInt8(ascii: "m")], to: &result)
            for entry in entries.sorted(by: { $0.key < $1.key }) {
                append(Array(entry.key.utf8), to: &result)
                append(json(entry.value), to: &result)
            }
        }
        return result
    }

    private static func append(_ bytes: [UInt8], to result: inout [UInt8]) {
        withUnsafeBytes(of: UInt32(clamping: bytes.count).bigEndian) { result += $0 }
        result += bytes
    }
}
