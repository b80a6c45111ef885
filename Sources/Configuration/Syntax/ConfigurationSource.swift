/// Where the configuration is.
public enum ConfigurationSource: Sendable, Equatable {
    case file(String)
    /// The text itself, from `CARDEA_CONFIG_YAML`; `include` is relative to the working directory.
    case text(String)
    /// No file: one route out of `CARDEA_LISTEN` and its companions.
    case environment

    /// Nothing was found anywhere.
    public struct NotFound: Error, CustomStringConvertible {
        /// Lists the places that were looked at.
        public var description: String {
            "no configuration: looked for --config, CARDEA_CONFIG, CARDEA_CONFIG_YAML, ./cardea.yaml, "
                + "/etc/cardea/cardea.yaml, and \(EnvironmentRoute.variables.joined(separator: ", "))"
        }
    }

    /// The files that are tried without being named.
    public static let places = ["./cardea.yaml", "/etc/cardea/cardea.yaml"]

    /// The first of: `argument` (`--config`), `CARDEA_CONFIG`, `CARDEA_CONFIG_YAML`, the `places` that exist, variables.
    /// A file that was named is taken whether it exists or not: another one in its place would be a surprise.
    public static func find(
        argument: String?, environment: (String) -> String?, places: [String] = places
    ) throws(NotFound) -> ConfigurationSource {
        if let argument { return .file(argument) }
        // An empty variable is how shells and manifests spell "not set".
        if let path = environment("CARDEA_CONFIG"), !path.isEmpty { return .file(path) }
        if let text = environment("CARDEA_CONFIG_YAML"), !text.isEmpty { return .text(text) }
        if let path = places.first(where: FileReader.exists) { return .file(path) }
        if EnvironmentRoute.variables.contains(where: { environment($0)?.isEmpty == false }) { return .environment }
        throw NotFound()
    }
}

/// The start without a file.
package enum EnvironmentRoute {
    package static let variables = [
        "CARDEA_LISTEN", "CARDEA_TO", "CARDEA_TOKEN_URL", "CARDEA_CLIENT_ID", "CARDEA_CLIENT_SECRET",
        "CARDEA_CLIENT_SECRET_FILE", "CARDEA_SCOPES",
    ]

    /// The tree that a file would have given; each value's place is its variable.
    static func tree(environment: (String) -> String?, _ findings: Findings) -> Node? {
        func value(_ name: String) -> Node? {
            guard let text = environment(name), !text.isEmpty else { return nil }
            return .made(text, at: Mark(file: name))
        }
        func required(_ name: String) -> Node? {
            if let node = value(name) { return node }
            findings.error("not set; without a file it is needed", Mark(file: name))
            return nil
        }
        var handshake = [
            entry("token_url", required("CARDEA_TOKEN_URL")), entry("client_id", required("CARDEA_CLIENT_ID")),
        ]
        let file = value("CARDEA_CLIENT_SECRET_FILE")
        if let path = file?.scalar?.text {
            handshake.append(entry("client_secret", .made("file:\(path)", at: Mark(file: "CARDEA_CLIENT_SECRET_FILE"))))
            if value("CARDEA_CLIENT_SECRET") != nil {
                let message = "set beside CARDEA_CLIENT_SECRET_FILE; one of them is needed"
                findings.error(message, Mark(file: "CARDEA_CLIENT_SECRET"))
            }
        } else if required("CARDEA_CLIENT_SECRET") != nil {
            // By reference: the value itself stays out of the tree.
            let reference = Node.made("env:CARDEA_CLIENT_SECRET", at: Mark(file: "CARDEA_CLIENT_SECRET"))
            handshake.append(entry("client_secret", reference))
        }
        var route = [
            entry("listen", required("CARDEA_LISTEN")), entry("to", required("CARDEA_TO")),
            entry("use", .made("default", at: Mark(file: "environment"))),
        ]
        if let text = value("CARDEA_SCOPES")?.scalar?.text {
            let mark = Mark(file: "CARDEA_SCOPES")
            let scopes = text.split { $0 == " " || $0 == "," }.map { Node.made(String($0), at: mark) }
            route.append(entry("scopes", Node(content: .list(scopes), mark: mark)))
        }
        guard findings.diagnostics.isEmpty else { return nil }
        let identity = map([entry("oauth2", map(handshake))])
        return map([
            entry("identities", map([entry("default", identity)])),
            entry("routes", Node(content: .list([map(route)]), mark: Mark(file: "environment"))),
        ])
    }

    private static func entry(_ key: String, _ node: Node?) -> Node.Entry? {
        node.map { Node.Entry(key: key, mark: $0.mark, value: $0) }
    }

    private static func map(_ entries: [Node.Entry?]) -> Node {
        Node(content: .map(entries.compactMap { $0 }), mark: Mark(file: "environment"))
    }
}
