@testable import Configuration
@testable import Handshakes

/// A load from text, with what a test asks about it.
struct Trial {
    var result: LoadResult
    /// The model also where there are errors.
    var draft: Configuration?

    init(_ text: String, environment: [String: String] = [:]) {
        self.init(.text(text), environment: environment)
    }

    init(_ source: ConfigurationSource, environment: [String: String] = [:]) {
        result = Configuration.load(source) { environment[$0] }
        var loader = Loader(schemes: Schemes.all) { environment[$0] }
        draft = loader.load(source).0
    }

    var errors: [String] { result.errors.map(\.message) }
    var warnings: [String] { result.diagnostics.filter { $0.severity == .warning }.map(\.message) }
    /// `line message` of everything found.
    var lines: [String] { result.diagnostics.map { "\($0.mark.line) \($0.message)" } }

    /// A sound file with `identity` as the body of the identity `a` and `route` as further keys of its one route.
    static func around(identity: String = "static: {value: env:V}", route: String = "", top: String = "") -> String {
        """
        identities:
          a: {\(identity)}
        routes:
          - {listen: "127.0.0.1:8080", to: "https://u.example.com", use: a\(route.isEmpty ? "" : ", " + route)}
        \(top)
        """
    }

    /// The keys of all schemes, in the order of the list.
    static let schemes: [String] = Schemes.all.map { scheme in scheme.key.name }

    static let oauth2 = "token_url: https://i.example.com/t, client_id: c, client_secret: env:S"
    static let webgate =
        "service: https://i.example.com/s, user_agent_prefix: P, client_id: c, username: u, password: env:S"
}
