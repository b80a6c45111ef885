internal import Configuration

/// `client_certificate`: mutual TLS alone. The certificate is the credential: no field carries anything.
struct ClientCertificateScheme: Scheme {
    static let key = KeySpec(
        "client_certificate", .either([.block(block), .list(.block(block))]),
        "Mutual TLS only; of several certificates the one whose issuer the server names.")

    private static let block = Block(
        name: "client_certificate", description: "A certificate with its key.",
        keys: [
            KeySpec(
                "certificate", .text(.path),
                "Shown to a server that asks: PEM, the leaf first, or PKCS#12. Read again when it changes.",
                required: true),
            KeySpec("key", .secret, "Its key in PEM; not needed where the certificate's file has it."),
            KeySpec("password", .secret, "Of the key or the PKCS#12 file."),
        ])

    static var hasToken: Bool { false }
    /// At least one.
    let certificates: [ClientKeyFiles]

    init(_ keys: BlockReader, of identity: SchemeOwner) {
        certificates = keys.each.map { keys in
            ClientKeyFiles(
                certificate: keys.path("certificate") ?? "", key: keys.secret("key"), password: keys.secret("password"))
        }
    }

    func check(_ route: Route, _ keys: BlockReader, of identity: Identity) {
        if let origin = route.to?.origin, origin.isCleartext {
            keys.error(
                "\(keys.place) uses identity '\(identity.name)', a certificate, which needs 'to' to be https:", at: "to"
            )
        }
        if route.tls.identity != nil {
            keys.error(
                "\(keys.place) has 'certificate' in 'tls' beside identity '\(identity.name)', which is a certificate itself",
                at: "tls")
        }
    }

    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> any Handshake {
        ClientCertificateHandshake()
    }

    func traits(of identity: Identity) -> SchemeTraits { SchemeTraits(.fixed) }
}
