internal import Configuration

/// The settings of a block `aws_sigv4`.
struct AWSSigV4Settings: Sendable, Equatable {
    /// The part of a request's body in its signature.
    enum Payload: String, CaseIterable, Sendable {
        case signed, unsigned
    }

    /// nil: the upstream's host says it.
    var service: String?
    /// nil: the upstream's host says it.
    var region: String?
    var payload = Payload.signed
    var hasSessionToken = false

    static let block = Block(
        name: "aws_sigv4", description: "AWS Signature Version 4: each request is signed with an access key.",
        keys: [
            // The id is no secret, but changes together with the key when credentials are rotated in files.
            KeySpec("access_key_id", .secret, "The access key's id.", required: true, digest: .place),
            KeySpec("secret_access_key", .secret, "The access key itself.", required: true, digest: .place),
            KeySpec("session_token", .secret, "The session token that belongs to a temporary key.", digest: .place),
            KeySpec(
                "region", .text(.hostName),
                "The region in the signature, such as `eu-west-1`. It is taken from the upstream's host where that is one of AWS's.",
                digest: .nothing),
            KeySpec(
                "service", .text(.word),
                "The service in the signature, such as `s3` or `execute-api`. It is taken from the upstream's host where that is one of AWS's.",
                digest: .nothing),
            KeySpec(
                "payload", .words(Payload.self),
                "Whether the body is signed, and held until it is whole, or passes unsigned, which S3 and few others take.",
                digest: .nothing),
        ])

    init(service: String? = nil, region: String? = nil) {
        self.service = service
        self.region = region
    }

    init(_ keys: BlockReader) {
        self.init(service: keys.text("service"), region: keys.text("region"))
        payload = keys.word("payload")
        hasSessionToken = keys.has("session_token")
        for (key, value) in [("service", service), ("region", region)] {
            guard let value, value != value.lowercased() || value.hasSuffix(".") else { continue }
            keys.refuse(key, "must be in lower case, as it is signed")
        }
    }

    /// The service and the region of a request's signature: those that are written, or else those that the host names.
    func scope(at host: String) -> (service: String?, region: String?) {
        if service != nil, region != nil { return (service, region) }
        let found = AWSSigV4Endpoint(host: host)
        return (service ?? found.service, region ?? found.region)
    }
}
