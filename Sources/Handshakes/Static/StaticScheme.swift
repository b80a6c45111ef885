internal import Configuration

/// `static`: a fixed header value.
struct StaticScheme: Scheme {
    static let key = KeySpec(
        "static",
        .block(
            Block(
                name: "static", description: "A fixed header value.",
                keys: [
                    KeySpec("value", .secret, "The value.", required: true, digest: .place),
                    KeySpec("header", .text(.headerName), "The header that carries it.", default: "Authorization"),
                    KeySpec("prefix", .text(.headerValue), "Put before the value as it stands.", default: ""),
                ])), "A fixed header value.")

    static var isExchangeable: Bool { true }
    let carrier: String
    private let prefix: String

    init(_ keys: BlockReader, of identity: SchemeOwner) {
        carrier = keys.text("header") ?? ""
        prefix = keys.text("prefix") ?? ""
    }

    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> any Handshake {
        try StaticHandshake(header: carrier, prefix: prefix)
    }

    func traits(of identity: Identity) -> SchemeTraits { SchemeTraits(.fixed) }
}
