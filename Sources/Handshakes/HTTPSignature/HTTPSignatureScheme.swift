internal import Configuration

/// `http_signature`: requests signed as RFC 9421 says.
struct HTTPSignatureScheme: Scheme {
    static let key = KeySpec(HTTPSignatureSettings.block)

    let settings: HTTPSignatureSettings
    var carrier: String { HTTPSignatureSigner.names[0] }
    /// The fields beside the carrier.
    var writtenFields: [String] { HTTPSignatureSigner.names.dropFirst().map { $0.lowercased() } }

    init(_ keys: BlockReader, of identity: SchemeOwner) { settings = HTTPSignatureSettings(keys) }

    func check(_ route: Route, _ keys: BlockReader, of identity: Identity) {
        if keys.has("inject") {
            keys.error(
                "'inject' of \(keys.place): 'http_signature' writes \(HTTPSignatureSigner.names.joined(separator: ", ")), whose places its protocol names",
                at: "inject")
        }
        if route.onRejected.replay == .never, !settings.components.isEmpty {
            keys.warn(
                "'on_rejected.replay' of \(keys.place): without a second request no Accept-Signature can be answered, so that 'components' of identity '\(identity.name)' changes nothing here",
                at: "on_rejected")
        }
    }

    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> any Handshake {
        HTTPSignatureHandshake(settings, statuses: statuses)
    }

    func traits(of identity: Identity) -> SchemeTraits { SchemeTraits(.fixed) }
}
