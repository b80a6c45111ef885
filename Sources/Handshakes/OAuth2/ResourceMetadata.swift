/// A protected resource's metadata (RFC 9728), as far as it leads to an issuer.
struct ResourceMetadata: Sendable, Equatable {
    /// The resource that it is of, as it is spelt.
    var resource: String
    /// `authorization_servers`, in order, as they are spelt.
    var issuers: [String]

    static let mostIssuers = 16
    static let longestIssuer = 512
}

/// Why a document that arrived, or the address of one, is of no use. Safe text.
struct ResourceMetadataFault: Error, Equatable {
    var reason: String
}

// MARK: - Where it may stand

extension ResourceMetadata {
    /// The address out of a challenge. It is the upstream's word, so it leads nowhere but to the upstream itself: nothing on our network
    /// can be reached by it that the request has not reached already.
    /// - Parameter origin: of the route's `to`.
    static func url(_ text: String, origin: String) throws(ResourceMetadataFault) -> IssuerURL {
        guard let url = IssuerURL(text) else { throw ResourceMetadataFault(reason: "resource_metadata is no URL") }
        guard url.origin == IssuerURL(origin)?.origin else {
            throw ResourceMetadataFault(reason: "resource_metadata is not at the API's own origin")
        }
        return url
    }
}

// MARK: - Reading

extension ResourceMetadata {
    init(_ body: [UInt8]) throws(ResourceMetadataFault) {
        let name: JSONTree?
        let servers: JSONTree?
        do throws(JSONTree.Fault) {
            let tree = try JSONTree(body)
            name = try tree.value(at: ["resource"])
            servers = try tree.value(at: ["authorization_servers"])
        } catch {
            throw ResourceMetadataFault(reason: "metadata is \(error.rawValue)")
        }
        guard case .string(let text)? = name else { throw ResourceMetadataFault(reason: "metadata without resource") }
        guard case .list(let items)? = servers else {
            throw ResourceMetadataFault(reason: "metadata that names no authorization_servers")
        }
        resource = String(decoding: text, as: UTF8.self)
        issuers = []
        for case .string(let text) in items.prefix(Self.mostIssuers) where text.count <= Self.longestIssuer {
            issuers.append(String(decoding: text, as: UTF8.self))
        }
    }

    /// RFC 9728 §3.3: what came by way of a challenge must be of the very URL that was asked for, character by character. What stands at
    /// the well-known place of a resource must be of that resource; we would look there for any that the request lies in, so one that
    /// is found there with the challenge's help is as good.
    /// - Parameters:
    ///   - url: where it was read.
    ///   - request: absolute URL of the refused request, as the upstream sees it.
    func describes(_ request: String, readAt url: IssuerURL) -> Bool {
        if resource == request { return true }
        guard let described = IssuerURL(resource), let asked = IssuerURL(request), described.origin == asked.origin,
            url == described.resourceMetadataURL
        else { return false }
        return asked.isBelow(described)
    }
}

extension IssuerURL {
    /// RFC 9728 §3.1: between host and path, a single slash at the end left out.
    var resourceMetadataURL: IssuerURL? {
        let path = path == "/" ? "" : path
        return IssuerURL(origin + "/.well-known/oauth-protected-resource" + path)
    }

    /// Whether the path is that of `other`, or continues it behind a slash. A query of `other` would have to be the same.
    fileprivate func isBelow(_ other: IssuerURL) -> Bool {
        if path == other.path { return true }
        guard !other.path.utf8.contains(UInt8(ascii: "?")) else { return false }
        let own = path.prefix { $0 != "?" }
        var base = other.path
        if own == base { return true }
        if !base.hasSuffix("/") { base += "/" }
        return own.utf8.starts(with: base.utf8)
    }
}
