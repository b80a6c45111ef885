internal import Octets

/// Signs each request with an access key of AWS, in its header.
struct AWSSigV4Signer: RequestSigner {
    let settings: AWSSigV4Settings

    /// The fields that it writes.
    static let names = ["Authorization", "X-Amz-Date", "X-Amz-Content-Sha256", "X-Amz-Security-Token"]

    var fieldNames: [String] { Self.names }
    /// A caller's announcement of its body, or a credential that it brings, counts also where it does not reach the upstream.
    var readFields: [String] { Self.names + AWSSigV4Streaming.fieldNames + Self.credentialFields }

    /// Parts of a signature in the query, which some servers read out of fields, too.
    private static let credentialFields = ["X-Amz-Credential", "X-Amz-Signature", "X-Amz-S3session-Token"]
    var readsBody: Bool { settings.payload == .signed }

    func passesBody(of received: [(name: String, value: String)]) -> Bool {
        AWSSigV4Streaming.isAnnounced(in: received)
    }

    func sign(
        _ request: RequestToSign, with material: UnsafeRawBufferPointer, wallSeconds: Int64, entropy: [UInt8]
    ) throws(SigningFault) -> RequestSignature {
        guard let key = AWSSigV4AccessKey(Secret(material)) else { throw SigningFault("the access key cannot be read") }
        let streaming = try request.isProbe ? nil : AWSSigV4Streaming(request.received)
        guard
            !request.received.contains(where: { field in Self.credentialFields.contains { field.name.utf8.matches($0) }
            })
        else { throw SigningFault("it brings a part of a signature of its own", isCallers: true) }
        let (path, query) = try Self.parts(of: request.originForm)
        guard !query.isPresigned else {
            throw SigningFault("its URL is presigned, and the gateway signs requests itself", isCallers: true)
        }
        let host = request.headers.first { $0.name.utf8.matches("host") }?.value ?? ""
        let caller = try settings.isChosenByCaller ? AWSSigV4CallerScope.find(in: request.received) : nil
        let (service, region) = try settings.scope(at: host, of: caller)
        guard let path = AWSSigV4Path(service).canonical(path) else { throw Self.brokenEscape }

        let time = WallClockText(wallSeconds)
        let payload = if let streaming { streaming.form.word } else { try payload(of: request) }
        var written = [("X-Amz-Date", time.basic), ("X-Amz-Content-Sha256", payload)]
        if let token = key.sessionToken { written.append(("X-Amz-Security-Token", token)) }
        var fields = AWSSigV4Fields()
        for (name, value) in request.headers where AWSSigV4Fields.signs(name) {
            // The text of octets that are none would be signed, and the octets sent.
            guard !value.unicodeScalars.contains("\u{FFFD}") else {
                throw SigningFault("a field that is signed is not UTF-8", isCallers: true)
            }
            fields.add(name, value)
        }
        for (name, value) in written { fields.add(name, value) }

        let newline = [UInt8(0x0A)]
        let canonical = [
            Array(request.method.utf8), path, query.canonical, fields.canonical, Array(fields.signedNames.utf8),
            Array(payload.utf8),
        ].joined(separator: newline)
        let scope = AWSSigV4CredentialScope(date: time.basicDate, region: region, service: service)
        let signature = AWSSigV4Signature(scope: scope, timestamp: time.basic, secret: key.secret)
        let digits = signature.digits(of: Array(canonical))
        let start = "\(AWSSigV4Signature.algorithm) Credential=\(key.id)/\(scope.text), "
        let value = Array("\(start)SignedHeaders=\(fields.signedNames), Signature=".utf8) + digits
        guard value.count <= TokenAlphabet.longest else {
            throw SigningFault("it has too many fields to be signed", isCallers: true)
        }
        return RequestSignature(
            [InjectedField(name: "Authorization", value: value)]
                + written.map { InjectedField(name: $0.0, value: Array($0.1.utf8)) },
            // The rest of the fields is times, names, and hashes of what the caller has sent or fetches.
            secrets: request.namesSecrets ? [Secret(digits)] + (key.sessionToken.map { [Secret($0)] } ?? []) : [],
            body: streaming.flatMap { chunks in
                chunks.form == .unsignedWithTrailer
                    ? nil
                    : AWSSigV4ChunkSigner(signature, after: digits, of: chunks, mostOfChunk: settings.mostOfChunk)
            })
    }

    private func payload(of request: RequestToSign) throws(SigningFault) -> String {
        guard settings.payload == .signed else { return "UNSIGNED-PAYLOAD" }
        guard let digest = request.bodyDigest else { throw SigningFault("the body is not known") }
        return Hexadecimal.encode(digest)
    }

    // MARK: - Requests that are not signed

    private static let brokenEscape = SigningFault("a percent sign in its target has no two digits", isCallers: true)

    private static func parts(of target: [UInt8]) throws(SigningFault) -> (path: ArraySlice<UInt8>, AWSSigV4Query) {
        let cut = target.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex
        let path = target[..<cut]
        guard path.first ?? UInt8(ascii: "/") == UInt8(ascii: "/") else {
            throw SigningFault("its target is no path", isCallers: true)
        }
        guard let query = AWSSigV4Query(target[cut...].dropFirst()) else { throw brokenEscape }
        return (path, query)
    }
}
