internal import Configuration
internal import DataPath
internal import Handshakes

/// The placeholders of a confined program, by route.
extension GatewayCompiler {
    /// - Parameter edits: of the route.
    func placeholderPlan(of route: ConfiguredRoute, _ plan: IdentityPlan?) -> PlaceholderPlan? {
        guard !placeholders.isEmpty else { return nil }
        let own = variables(of: route)
        let texts = placeholders.sorted { $0.key < $1.key }.map { variable, text in
            PlaceholderPlan.Text(
                variable: variable, text: text, takers: takers(of: variable), isTaken: own.contains(variable))
        }
        var fields: [[UInt8]] = []
        if let plan, case .header(let name, _, _) = route.inject {
            let first = name ?? plan.handshake.injection(for: []).name
            fields = ([first] + (plan.signer?.fieldNames ?? [])).map { Array($0.lowercased().utf8) }
        }
        return PlaceholderPlan(texts, fields: fields)
    }

    private func variables(of route: ConfiguredRoute) -> Set<String> {
        guard case .identity(let name) = route.use else { return [] }
        return configuration.identities.first { $0.name == name }?.secretVariables ?? []
    }

    private func takers(of variable: String) -> String {
        let names = configuration.routes.filter { variables(of: $0).contains(variable) }.map { "'\($0.name)'" }
        switch names.count {
        case 0: return "no route takes"
        case 1: return "the route \(names[0]) takes, and no other"
        default: return "the routes \(names.joined(separator: ", ")) take, and no other"
        }
    }
}
