extension House {
    /// An arrow between rooms of one module that closes a circle, and stays.
    struct UpwardArrow: Sendable {
        let module: String
        let from: String
        let to: String
        /// Every use that makes the arrow, as `Arrow.uses` has them.
        let uses: [String]
        let reason: String
    }

    static let upward = [
        UpwardArrow(
            module: "Configuration", from: "Model", to: "Decoder",
            uses: ["ConfiguredScheme.swift: BlockReader"],
            reason: "an identity holds its scheme, which reads its own block: the model does not know the schemes"),
        UpwardArrow(
            module: "Configuration", from: "Model", to: "Schema", uses: ["ConfiguredScheme.swift: KeySpec"],
            reason: "the scheme that an identity holds says its key, from which schema, checker and decoder are made"),
        UpwardArrow(
            module: "DataPath", from: "Callers", to: "Loops",
            uses: [
                "Arrival.swift: DataLoop", "CallerConnection+Closing.swift: DataLoop",
                "CallerConnection+Pace.swift: DataLoop", "CallerConnection+Retirement.swift: DataLoop",
                "CallerConnection.swift: DataLoop", "CallerHTTP2Connection.swift: DataLoop",
            ],
            reason: "a loop owns its callers, and they reach what the loop has by a direct call, as every hit does"),
        UpwardArrow(
            module: "HTTP2", from: "Memory", to: "Connection", uses: ["HTTP2Memory.swift: HTTP2Stream"],
            reason: "closed streams wait in their loop's memory for another request, in raw memory of their own type"),
        UpwardArrow(
            module: "Handshakes", from: "Grant", to: "Proofs", uses: ["RequestSigner.swift: ProofKeys"],
            reason: "a request to sign brings the keys that its loop has read, which one signer alone looks into"),
        UpwardArrow(
            module: "Handshakes", from: "OAuth2", to: "OAMOAuth",
            uses: [
                "OAuth2Client.swift: OAMIssuedClient", "OAuth2Grant.swift: OAMMobileRegistration",
                "OAuth2Settings.swift: OAMOAuthDialect",
            ],
            reason: "oam_oauth is the OAuth 2.0 handshake in a dialect, which the handshake asks at three places"),
    ]
}
