package import DataPath
package import Handshakes
package import HotCache
package import Tokens

/// A route as the keeper holds it.
/// Touched on the keeper's loop only.
package final class KeptRoute: @unchecked Sendable {
    /// The same as `RoutePlan.number`. Set when the route is compiled.
    package var number: Int
    package let name: String
    package let origin: Origin
    let originText: String
    package private(set) var identity: KeptIdentity?
    package private(set) var wanted: Wanted
    package let scopes: ScopeSet
    package let audience: ByteString?
    package let resource: ByteString?
    package let realm: Realm?
    /// Set when it is compiled.
    package var published: Published<LearnedSnapshot>?
    /// Tokens are bound to one URL instead of the whole realm (`token_scope: url`).
    package let bindsToURL: Bool
    private(set) var upstream: UpstreamPlan
    package let pathPrefix: String
    /// The User-Agent that makes the upstream challenge.
    private(set) var probeAgent: String
    var table: LearnedTable
    var scouts: ScoutMachine
    var alarm: Alarm?
    /// Nanoseconds after which a scout that has not been heard of counts as lost.
    private(set) var scoutPatience: UInt64

    package init(
        number: Int, name: String, origin: Origin, originText: String, identity: KeptIdentity?, wanted: Wanted,
        scopes: ScopeSet, audience: ByteString?, resource: ByteString?, realm: Realm?,
        published: Published<LearnedSnapshot>?, bindsToURL: Bool, waiters: Int, upstream: UpstreamPlan,
        pathPrefix: String, probeAgent: String, scoutPatience: UInt64
    ) {
        self.number = number
        self.name = name
        self.origin = origin
        self.originText = originText
        self.identity = identity
        self.wanted = wanted
        self.scopes = scopes
        self.audience = audience
        self.resource = resource
        self.realm = realm
        self.published = published
        self.bindsToURL = bindsToURL
        table = LearnedTable(binding: bindsToURL ? .url : .realm)
        self.upstream = upstream
        self.pathPrefix = pathPrefix
        self.probeAgent = probeAgent
        self.scoutPatience = scoutPatience
        scouts = ScoutMachine(limit: waiters)
    }

    /// Takes up a learned table of the store.
    /// - Returns: false where it cannot be read.
    func restore(_ bytes: [UInt8]) -> Bool {
        guard let stored = try? LearnedTable(decoding: bytes, binding: bindsToURL ? .url : .realm) else { return false }
        table = stored
        // Rows of before have the URLs too.
        if bindsToURL { table.forgetRealms() }
        return true
    }

    /// Takes what may differ between two that are the same. The table and who waits for it stay.
    func take(_ next: KeptRoute, identity: KeptIdentity?) {
        self.identity = identity
        wanted = next.wanted
        upstream = next.upstream
        probeAgent = next.probeAgent
        scoutPatience = next.scoutPatience
    }

    /// The keys of the route's URLs have this instead of a realm: the upstream's word selects nothing. Two routes that lead to one URL by
    /// different ways have a token each.
    package var realmOfURLs: Realm { realm ?? Realm(ByteString(pathPrefix)) }

    /// A learned table belongs to what was learned, not to the route's name: upstream, identity and the slice of the key that the route
    /// fixes. Nil for a route without an identity.
    var tableKey: [UInt8]? { key(of: Realm(ByteString(bindsToURL ? "url" : "realm"))).map(KeyCodec.encode) }

    package func key(of realm: Realm) -> AccessKey? {
        guard let identity else { return nil }
        return AccessKey(
            digest: identity.digest, origin: origin, realm: realm, scopes: scopes, audience: audience,
            resource: resource,
            subject: nil)
    }
}
