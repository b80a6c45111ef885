/// What a request is for: `/ROUTE/ID/SIZE/USER`, or `/ROUTE/PATH?ID/SIZE/USER` where many requests have one path.
struct Place {
    let route: Substring
    let id: Substring
    /// The last part of a path that many requests have; nil: the request has one of its own.
    let path: Substring?
    /// Octets of the answer's body.
    let size: Int
    /// Empty where the route has no users.
    let user: Substring
    /// The path takes no token, whoever's it is.
    let isClosed: Bool
    /// The scope that a token must have for this path; nil where any token of the client will do.
    let scope: String?
    /// The number of the caller that asks.
    var caller: Int? { Int(id.dropFirst().prefix { $0 != "n" }) }

    /// Paths that many requests have, and those of them that take no token.
    static let open = ["p0", "p1", "p2", "p3"]
    static let favourites = ["p0", "p1"]
    static let closed = ["closed0", "closed1", "closed2"]
    /// Paths that take only a token that is good for more.
    static let wide = ["wide0": "reading", "wide1": "writing"]

    init?(_ target: Substring) {
        let (path, query) =
            target.firstIndex(of: "?").map { (target[..<$0], target[$0...].dropFirst()) } ?? (target, "")
        let parts = path.split(separator: "/")
        let details = query.isEmpty ? parts.dropFirst() : query.split(separator: "/")[...]
        guard let route = parts.first, details.count >= 2, let id = details.first,
            let size = Int(details[details.startIndex + 1])
        else { return nil }
        (self.route, self.id, self.size) = (route, id, size)
        user = details.count > 2 ? details[details.startIndex + 2] : ""
        self.path = query.isEmpty ? nil : parts.last
        scope = self.path.flatMap { Self.wide[String($0)] }
        isClosed = self.path.map { Self.closed.contains(String($0)) } == true
    }

    /// - Parameter path: the last part of a path that many requests have; nil: the request has one of its own.
    static func target(_ route: String, _ path: String?, id: String, size: Int, user: String?) -> String {
        "/\(route)/" + (path.map { "\($0)?" } ?? "") + "\(id)/\(size)" + (user.map { "/\($0)" } ?? "")
    }
}
