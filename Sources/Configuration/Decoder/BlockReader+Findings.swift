extension BlockReader {
    /// - Parameter key: where the message points to; nil: to the block.
    package func error(_ message: String, at key: String? = nil) {
        findings.error(message, key.map { mark($0) } ?? mark)
    }

    package func warn(_ message: String, at key: String? = nil) {
        findings.warning(message, key.map { mark($0) } ?? mark)
    }

    /// Reports the key as wrong: `'key' of place reason`.
    package func refuse(_ key: String, _ reason: String) { error("'\(key)' of \(place) \(reason)", at: key) }

    /// Reports each of the keys that is written.
    package func refuse(_ keys: [String], _ reason: String) { for key in written(keys) { refuse(key, reason) } }

    /// Reports a list that is written and has no item.
    func refuseEmpty(_ key: String, _ message: String) {
        if items(key)?.isEmpty == true { error(message, at: key) }
    }

    /// Reports each of the keys that is not there: `place needs 'key'`, with the reason behind it as it stands.
    package func need(_ keys: [String], _ reason: String = "", at mark: String? = nil) {
        for key in keys where lacks(key) {
            error("\(place) needs '\(key)'\(reason)", at: mark)
        }
    }

    /// Reports what the block's table requires and the file lacks.
    package func needRequired() { need(missing) }

    /// - Parameter text: the limit as a person would write it.
    package func atMost(_ key: String, _ limit: Duration, _ text: String) {
        if duration(key) > limit { refuse(key, "must be at most \(text)") }
    }

    /// Clear text to an issuer needs to be asked for, except on this machine (docs/security/guarantees.md#invariant-4).
    /// - Parameter allowsQuery: whether the URL may have one.
    package func checkURL(_ key: String, of network: Network, allowsQuery: Bool = true) {
        guard let url = httpURL(key) else { return }
        checkSafe(url, network, "'\(key)' of \(place)", mark(key))
        if !allowsQuery, url.query != nil { refuse(key, "must not have a query") }
    }

    package func checkSafe(_ url: ServiceURL, _ network: Network, _ what: String, _ mark: Mark) {
        guard url.origin.isCleartext, !url.origin.isLoopback, !network.allowCleartext else { return }
        findings.error(
            "\(what) sends credentials in clear text; use https:, or network: {allow_cleartext: true}", mark)
    }

    /// Names of fields that the identity writes must not be those of the connection itself.
    package func checkFieldNames(_ keys: [String]) {
        for key in keys {
            if let name = text(key), ReservedHeader.contains(name) {
                refuse(key, "must not be '\(name)', which the connection itself uses")
            }
        }
    }

    /// Names of the user's own under `key` that somebody else decides.
    package func refuseNames(in key: String, _ reason: String, where isOwn: (String) -> Bool) {
        for pair in pairs(key) where isOwn(pair.name) {
            error("'\(pair.name)' in '\(key)' of \(place) \(reason)", at: key)
        }
    }

    /// Further header fields of a request that has `own` fields by itself, in lower case.
    package func checkHeaders(_ key: String, own: [String] = ["authorization", "content-type"]) {
        refuseNames(in: key, "is set by the gateway itself") {
            ReservedHeader.contains($0) || own.contains($0.lowercased())
        }
    }

    /// User and secret of Basic credentials are parted by a colon, and servers disagree on what is not ASCII (RFC 7617 section 2).
    package func checkClientID() {
        guard let id = text("client_id") else { return }
        if id.contains(":") || !id.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) {
            refuse("client_id", "must be ASCII without a colon")
        }
    }
}
