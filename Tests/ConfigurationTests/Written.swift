@testable import Configuration

/// A file that a test writes, with the one scheme that it knows.
struct Written {
    /// A scheme whose block has a key of each kind.
    struct Stamp: ConfiguredScheme {
        static let key = KeySpec(
            Block(
                name: "stamp", description: "A stamp.",
                keys: [
                    KeySpec("seal", .secret, "What it is made with.", required: true),
                    KeySpec("carrier", .text(.headerName), "Where it goes."),
                ]))

        let carrier: String
        var writtenFields: [String] { ["x-written"] }
        init(_ keys: BlockReader, of identity: SchemeOwner) { carrier = keys.text("carrier") ?? "Authorization" }
    }

    /// A scheme that has a certificate in place of a token.
    struct Pin: ConfiguredScheme {
        static let key = KeySpec(Block(name: "pin", description: "A pin.", keys: []))
        static var hasToken: Bool { false }
        init(_ keys: BlockReader, of identity: SchemeOwner) {}
    }

    let text: String
    let loaded: LoadResult

    init(_ text: String) {
        self.text = text
        loaded = Configuration.load(.text(text), schemes: [Stamp.self, Pin.self]) { _ in nil }
    }

    /// Loads a file with a route of the identity `a` on `127.0.0.1:1` to `https://u`, unless the route says otherwise.
    init(route: String, listeners: String = "", more: String = "") {
        let base = [("listen", "\"127.0.0.1:1\""), ("to", "https://u"), ("use", "a")]
        let missing = base.filter { !(" " + route).contains(" \($0.0):") }.map { "\($0.0): \($0.1)" }
        self.init(
            """
            identities: {a: {stamp: {seal: env:S}}, b: {pin: {}}, c: {stamp: {seal: env:S, carrier: Host}}}
            listeners: {\(listeners)}
            \(more)
            routes: [{\((missing + (route.isEmpty ? [] : [route])).joined(separator: ", "))}]
            """)
    }

    /// Loads a file with the listener `l` and a route that uses it.
    init(listener: String) {
        self.init(
            """
            listeners: {l: {\(listener)}}
            routes: [{listen: l, match: {host: h}, to: https://u, use: none, callers: {unsafe_open: true}}]
            """)
    }

    var route: Route? { loaded.configuration?.routes.first }
    var listener: Listener? { loaded.configuration?.listeners.first }

    /// Everything that was found: the key that it points to, how much it matters (`!` or `?`), and the text.
    var findings: [String] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return loaded.diagnostics.map { found in
            let line = lines[max(found.mark.line - 1, 0)].dropFirst(found.mark.column - 1)
            let key = line.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
            return "\(key)\(found.severity == .error ? "!" : "?") \(found.message)"
        }
    }
}
