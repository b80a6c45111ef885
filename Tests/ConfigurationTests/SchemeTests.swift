import Testing

@testable import Configuration

/// Files with schemes that only this test knows: `Configuration` decodes what all identities have in common, whatever the scheme.
@Suite struct SchemeTests {
    /// A ticket that a desk gives for a password, or several of them.
    struct Ticket: ConfiguredScheme {
        static let key = KeySpec(block)
        private static let block = Block(
            name: "ticket", description: "A ticket.",
            keys: [
                KeySpec("desk", .text(.httpURL), "Where tickets are given.", required: true),
                KeySpec("color", .words(Color.self), "Its color."),
                KeySpec("password", .secret, "What the desk wants to hear.", required: true, digest: .place),
                KeySpec("window", .integer(1...9), "Which window is asked first.", digest: .nothing),
                KeySpec("guards", .named(.word, .secret), "What each guard wants to hear."),
            ])

        enum Color: String, CaseIterable {
            case red = "red"
            case blue = "blue"
        }

        let color: Color
        static var defaultLifetime: Duration? { .seconds(7) }
        var allowedScopes: [String]? { ["stalls"] }
        var writtenFields: [String] { ["x-ticket"] }

        init(_ keys: BlockReader, of identity: SchemeOwner) {
            color = keys.word("color")
            keys.checkURL("desk", of: identity.network)
            if color == .blue { keys.need(["window"], " for 'color: blue'") }
        }

        func check(_ route: Route, _ keys: BlockReader, of identity: Identity) {
            if route.to?.pathPrefix == "/closed" { keys.refuse("to", "is closed to identity '\(identity.name)'") }
        }
    }

    struct Badge: ConfiguredScheme {
        static let key = KeySpec(
            "badge", .list(.block(Block(name: "badge", description: "A badge.", keys: []))), "Badges.")
        static var hasToken: Bool { false }
        let count: Int
        init(_ keys: BlockReader, of identity: SchemeOwner) { count = keys.each.count }
    }

    private static func load(_ identity: String, route: String = "", to: String = "https://u") -> LoadResult {
        let text = """
            identities: {a: {\(identity)}}
            routes: [{listen: "127.0.0.1:1", to: "\(to)", use: a\(route)}]
            """
        return Configuration.load(.text(text), schemes: [Ticket.self, Badge.self]) { _ in nil }
    }

    private static let ticket = "desk: \"https://d\", password: file:/p"

    @Test func aBlockBecomesTheSchemesValue() throws {
        let loaded = Self.load("ticket: {\(Self.ticket), guards: {anna: env:A, bert: env:B}}").configuration
        let identity = try #require(loaded?.identities.first)
        #expect((identity.scheme as? Ticket)?.color == .red)
        #expect(identity.token.defaultLifetime == .seconds(7))
        #expect(identity.secrets.map(\.key) == ["password", "guards.anna", "guards.bert"])
        let badges = try #require(Self.load("badge: [{}, {}]").configuration?.identities.first)
        #expect((badges.scheme as? Badge)?.count == 2 && badges.canonicalForm.isEmpty)
    }

    @Test(arguments: [
        ("ticket: {desk: \"https://d\"}", "", "identity 'a' (ticket) needs 'password'"),
        ("ticket: {\(ticket), color: blue}", "", "identity 'a' (ticket) needs 'window' for 'color: blue'"),
        ("ticket: {\(ticket), color: green}", "", "'color' must be one of red, blue, not 'green'"),
        ("ticket: 1", "", "'ticket' must be a map (desk, color, password, window, …), not a single value"),
        (
            "ticket: {desk: \"http://d\", password: file:/p}", "",
            "'desk' of identity 'a' (ticket) sends credentials in clear text"
        ),
        ("badge: []", "", "'badge' of identity 'a' is an empty list"),
        ("badge: [{}], ticket: {\(ticket)}", "", "identity 'a' has 2 handshakes (ticket, badge)"),
        ("scopes: [x]", "", "identity 'a' needs exactly one handshake: ticket, badge"),
        ("oauth2: {}", "", "unknown key 'oauth2' in identity 'a'"),
        ("ticket: {\(ticket)}", ", scopes: [x]", "asks for scope 'x', which 'allowed_scopes' of identity 'a' does not"),
        (
            "ticket: {\(ticket)}", ", headers: {remove: [X-Ticket]}",
            "edits 'X-Ticket', which identity 'a' writes"
        ),
        ("ticket: {\(ticket)}", ", callers: local, subject: from_caller_token", "has one credential for everybody"),
    ])
    func whatIsWrongIsSaid(identity: String, route: String, complaint: String) {
        let errors = Self.load(identity, route: route).errors.map(\.message)
        #expect(errors.contains { $0.contains(complaint) }, "\(errors)")
    }

    @Test func aSchemeLooksAtItsRoutes() {
        let errors = Self.load("ticket: {\(Self.ticket)}", to: "https://u/closed").errors.map(\.message)
        #expect(errors == ["'to' of route '127.0.0.1:1' is closed to identity 'a'"])
        let warnings = Self.load("badge: [{}]", route: ", scopes: [x]").diagnostics.map(\.message)
        #expect(warnings.contains("'scopes' of route '127.0.0.1:1' has no effect with a certificate"))
    }

    @Test func aKeySaysWhatOfItCounts() {
        func form(_ more: String, _ password: String = "file:/p") -> [UInt8]? {
            Self.load("ticket: {desk: \"https://d\", password: \"\(password)\"\(more)}").configuration?.identities
                .first?
                .canonicalForm
        }
        let plain = form("")
        #expect(plain != nil)
        #expect(form(", window: 3") == plain && form(", color: red") == plain)
        #expect(form(", color: blue, window: 3") != plain)
        #expect(form("", "file:/q") != plain, "the place says who we are")
        #expect(form(", guards: {anna: env:A}") == form(", guards: {anna: env:B}"), "only that there is a secret")
    }

    @Test func twoThatNobodyCanTellApartAreRefused() {
        let text = """
            identities:
              a: {ticket: {\(Self.ticket), guards: {anna: env:A}}}
              b: {ticket: {\(Self.ticket), guards: {anna: env:B}}}
            routes: [{listen: "127.0.0.1:1", to: https://u, use: a}, {listen: "127.0.0.1:2", to: https://u, use: b}]
            """
        let loaded = Configuration.load(.text(text), schemes: [Ticket.self]) { _ in nil }
        #expect(
            loaded.errors.map(\.message).contains { $0.hasPrefix("identity 'b' differs from 'a' at most in secrets") })
    }

    @Test func theSchemaHasTheKeys() {
        let schema = Configuration.jsonSchema([Ticket.self, Badge.self])
        #expect(
            schema.contains("\"ticket\"") && schema.contains("Which window is asked first.")
                && !schema.contains("oauth2\""))
    }
}
