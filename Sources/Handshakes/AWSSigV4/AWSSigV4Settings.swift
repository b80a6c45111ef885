internal import Configuration

/// The settings of a block `aws_sigv4`.
struct AWSSigV4Settings: Sendable, Equatable {
    /// The part of a request's body in its signature.
    enum Payload: String, CaseIterable, Sendable {
        case signed, unsigned
    }

    /// nil: the caller's own signature or the upstream's host says it.
    var service: String?
    /// nil: the caller's own signature or the upstream's host says it.
    var region: String?
    /// The names that a caller may choose by its own signature; empty: none.
    var services: [String] = []
    /// The names that a caller may choose by its own signature; empty: none.
    var regions: [String] = []
    /// Brings temporary keys, instead of the secrets.
    var program: ProgramCall?
    var payload = Payload.signed
    var hasSessionToken = false
    /// Octets of a chunk that is held until it can be signed.
    var mostOfChunk = 1 << 20

    static let block = Block(
        name: "aws_sigv4", description: "AWS Signature Version 4: each request is signed with an access key.",
        keys: [
            // The id is no secret, but changes together with the key when credentials are rotated in files.
            KeySpec(
                "access_key_id", .secret, "The access key's id. It and the key are required where there is no program.",
                digest: .place),
            KeySpec("secret_access_key", .secret, "The access key itself.", digest: .place),
            KeySpec("session_token", .secret, "The session token that belongs to a temporary key.", digest: .place),
            KeySpec(
                "program", .block(ProgramKeys.block("aws_sigv4_program", "A program that brings temporary keys.")),
                "In the place of the keys: a program that writes them as AWS' `credential_process` does."),
            KeySpec(
                "region", .text(.hostName),
                "The region in the signature, such as `eu-west-1`. It is taken from the upstream's host where that is one of AWS's.",
                digest: .nothing),
            KeySpec(
                "service", .text(.word),
                "The service in the signature, such as `s3` or `execute-api`. It is taken from the upstream's host where that is one of AWS's.",
                digest: .nothing),
            KeySpec(
                "regions", .list(.text(.hostName)),
                "In the place of `region`: the regions that a caller may choose by signing its request itself, with any key.",
                digest: .nothing),
            KeySpec(
                "services", .list(.text(.word)),
                "In the place of `service`: the services that a caller may choose by signing its request itself, with any key.",
                digest: .nothing),
            KeySpec(
                "payload", .words(Payload.self),
                "Whether the body is signed, and held until it is whole, or passes unsigned, which S3 and few others take.",
                digest: .nothing),
            KeySpec(
                "max_chunk", .size,
                "The largest chunk of a body in aws-chunked, which is held until its signature is replaced.",
                default: "1MiB", digest: .nothing),
        ])

    init(service: String? = nil, region: String? = nil) {
        self.service = service
        self.region = region
    }

    init(_ keys: BlockReader) {
        self.init(service: keys.text("service"), region: keys.text("region"))
        payload = keys.word("payload")
        hasSessionToken = keys.has("session_token")
        if keys.has("program") {
            keys.refuse(
                ["access_key_id", "secret_access_key", "session_token"], "is brought by the 'program' beside it")
            let inside = keys.inside("program")
            if inside.node != nil { inside.needRequired() }
            program = ProgramKeys.call(inside)
        } else {
            keys.need(["access_key_id", "secret_access_key"], ", or a 'program' that brings them")
        }
        services = keys.texts("services") ?? []
        regions = keys.texts("regions") ?? []
        for (key, values) in [
            ("service", [service].compactMap(\.self)), ("region", [region].compactMap(\.self)), ("services", services),
            ("regions", regions),
        ] where values.contains(where: { $0 != $0.lowercased() || $0.hasSuffix(".") }) {
            keys.refuse(key, "must be in lower case, as it is signed")
        }
        for (key, list) in [("service", "services"), ("region", "regions")] {
            if keys.has(key), keys.has(list) {
                keys.refuse(list, "is for requests without a '\(key)': write one of the two")
            }
            if keys.texts(list)?.isEmpty == true { keys.refuse(list, "names nothing that a caller may choose") }
        }
        guard keys.isSize("max_chunk") else { return }
        mostOfChunk = keys.size("max_chunk")
        if !Self.chunkSizes.contains(mostOfChunk) { keys.refuse("max_chunk", "must be from 8KiB to 64MiB") }
    }

    /// The least is that of AWS for a chunk that is not the last.
    private static let chunkSizes = (8 << 10)...(64 << 20)

    /// The service and the region of a request's signature, as far as the settings and the host alone say them.
    func scope(at host: String) -> (service: String?, region: String?) {
        if service != nil, region != nil { return (service, region) }
        let found = AWSSigV4Endpoint(host: host)
        return (service ?? found.service, region ?? found.region)
    }

    /// The service and the region of a request's signature: those that are written; or those that its caller has signed for, or else its
    /// host names, out of the lists.
    func scope(
        at host: String, of caller: AWSSigV4CallerScope?
    ) throws(SigningFault) -> (service: String, region: String) {
        let known = scope(at: host)
        let found = (
            service: services.isEmpty ? known.service : caller?.service ?? known.service,
            region: regions.isEmpty ? known.region : caller?.region ?? known.region
        )
        guard case (let service?, let region?) = found else {
            guard isChosenByCaller else { throw SigningFault("the host names no service and region of AWS") }
            throw SigningFault(
                "neither a signature of its own nor its host names a service and a region", isCallers: true)
        }
        guard services.isEmpty || services.contains(service) else {
            throw SigningFault("its service is not among the 'services' of the identity", isCallers: true)
        }
        guard regions.isEmpty || regions.contains(region) else {
            throw SigningFault("its region is not among the 'regions' of the identity", isCallers: true)
        }
        return (service, region)
    }

    /// Whether a part of the scope is a caller's to choose.
    var isChosenByCaller: Bool { !services.isEmpty || !regions.isEmpty }
}
