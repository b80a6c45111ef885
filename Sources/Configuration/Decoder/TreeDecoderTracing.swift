/// `tracing`.
extension TreeDecoder {
    /// Whether requests belong to traces.
    var isTracing: Bool { root.entry("tracing")?.value.map != nil || root.boolean("tracing") }

    mutating func tracing() -> Tracing? {
        guard isTracing else { return nil }
        let reader = root.inside("tracing", Keys.tracing)
        return Tracing(
            ratio: reader.parsed("ratio", Units.share) ?? 0, export: export(reader), service: reader.line("service"))
    }

    private mutating func export(_ reader: BlockReader) -> Tracing.Export? {
        guard let endpoint = reader.httpURL("endpoint"), let text = reader.text("endpoint") else {
            for key in reader.written(["headers", "service", "network"]) where reader.lacks("endpoint") {
                error("'\(key)' in 'tracing' goes only with 'endpoint'", reader.mark(key))
            }
            return nil
        }
        let network = network(in: reader.inside("network", Keys.network))
        if endpoint.origin.isCleartext, !endpoint.origin.isLoopback, !network.allowCleartext {
            reader.error(
                "'endpoint' of 'tracing' gets spans in clear text; use https:, or network: {allow_cleartext: true}",
                at: "endpoint")
        }
        if endpoint.query != nil { reader.refuse("endpoint", "must not have a query") }
        reader.checkHeaders("headers", own: ["content-type"])
        let headers = (reader.entry("headers")?.value.map ?? []).compactMap { entry -> Tracing.Header? in
            guard let text = entry.value.scalar?.text, let value = try? SecretReference(text: text) else { return nil }
            return Tracing.Header(name: entry.key, value: value)
        }
        // The path that collectors have by themselves (OTLP specification, "OTLP/HTTP Request").
        let hasPath = !["", "/"].contains(endpoint.path)
        let base = text.hasSuffix("/") ? String(text.dropLast()) : text
        return Tracing.Export(url: hasPath ? text : base + "/v1/traces", headers: headers, network: network)
    }
}
