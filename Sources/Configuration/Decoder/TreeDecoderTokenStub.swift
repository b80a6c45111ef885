/// `token_stub`: a route that forwards nothing.
extension TreeDecoder {
    private static let keysOfStub: Set = ["name", "listen", "match", "callers", "token_stub", "to", "use"]

    /// Keeps `callers` of the defaults for all routes: only whom they admit has a meaning here.
    static func defaultsOfStub(_ base: Node) -> Node {
        guard let entries = base.map else { return base }
        return Node(content: .map(entries.filter { $0.key == "callers" }), mark: base.mark)
    }

    mutating func tokenStub(_ reader: BlockReader, place: String) -> TokenStub {
        // `to` and `use` are looked at where they are read.
        let others = Keys.route.keys.map(\.name).filter { !Self.keysOfStub.contains($0) }
        for key in reader.written(others) {
            error("'\(key)' of \(place) has no meaning beside 'token_stub', which forwards nothing", reader.mark(key))
        }
        let inside = reader.inside("token_stub", Keys.tokenStub)
        inside.refuseEmpty("grants", "'grants' of \(place) is an empty list, so that nothing would be answered")
        let grants = inside.texts("grants").map { $0.compactMap(TokenStub.Grant.init) }
        return TokenStub(lifetime: inside.duration("lifetime"), grants: grants ?? TokenStub.Grant.allCases)
    }
}
