internal import Configuration

// Readers that the settings of schemes are read with.

extension BlockReader {
    /// The URL as a call takes it; `IssuerURL.unreadable` where there is none.
    func url(_ key: String) -> IssuerURL { optionalURL(key) ?? .unreadable }
    func optionalURL(_ key: String) -> IssuerURL? { httpURL(key).flatMap { IssuerURL("\($0.origin)\($0.target)") } }

    func list(_ key: String) -> [(name: String, value: String)] { pairs(key).map { ($0.name, $0.value) } }
    func nanoseconds(_ key: String) -> UInt64 { UInt64(clamping: duration(key).wholeNanoseconds) }
}

extension IssuerURL {
    /// Stands where a file's URL cannot be called, until the handshake is made.
    static let unreadable = IssuerURL(scheme: "https", host: "", port: 443, path: "/")

    /// Throws `.configuration` where the file's URL under `key` cannot be called.
    func requireReadable(_ key: String) throws(GrantFailure) {
        guard !host.isEmpty else { throw .configuration(reason: "\(key): not a URL") }
    }
}
