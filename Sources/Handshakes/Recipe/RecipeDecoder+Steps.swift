internal import Configuration

extension RecipeDecoder {
    private static let methods = ["get": "GET", "post": "POST", "put": "PUT"]
    private static let ownNames: Set<String> = [
        "secret", "challenge", "request", "identity", "sign", "token", "uuid", "now", "now_iso", "now_basic",
        "date_basic",
    ]

    // MARK: - Steps

    mutating func decodeSteps() {
        let nodes = reader.items("steps") ?? []
        if reader.has("steps"), nodes.isEmpty { error("'steps' of \(place) is empty", reader.mark("steps")) }
        if nodes.count > Recipe.Bound.steps {
            error("'steps' of \(place) has \(nodes.count) steps; at most 8 are made", nodes[Recipe.Bound.steps].mark)
        }
        for node in nodes.prefix(Recipe.Bound.steps) where node.map != nil { step(node) }
        guard let last = steps.last, last.layer != .access, let node = nodes.last else { return }
        error(
            "the last step of \(place) must be on the access layer: it is what is made anew when the upstream refuses the token",
            node.mark)
    }

    private mutating func step(_ node: Node) {
        let inside = reader.inside(node, RecipeKeys.step, place: "a step of \(place)")
        let name = inside.text("name") ?? ""
        let what = "step '\(Quoted.short(name))'"
        inside.needRequired()
        if Self.ownNames.contains(name) {
            error("a step of \(place) cannot be named '\(name)', which templates already know", inside.mark("name"))
        }
        if steps.contains(where: { $0.name == name }) {
            error("\(place) has two steps named '\(name)'", inside.mark("name"))
        }
        let layer: RecipeStep.Layer = inside.word("layer")
        if let before = steps.last, layer < before.layer {
            error(
                "\(what) of \(place) is on the \(layer.rawValue) layer, behind a step of the \(before.layer.rawValue) layer; "
                    + "what is kept longer comes first", inside.mark("layer"))
        }
        let scope = stepScope(before: steps.count, layer: layer)
        let written = inside.written(Self.methods.keys.sorted())
        guard written.count == 1, let method = written.first else {
            return error("\(what) of \(place) needs exactly one of get, post, put", inside.mark)
        }
        var step = RecipeStep(
            name: name, layer: layer, method: Self.methods[method] ?? "GET",
            origin: Origin(scheme: .https, host: "", port: 443), target: .init(parts: []), headers: [], body: .none,
            accepted: [], rejected: .init(statuses: [401], json: nil, match: nil), stale: nil, take: [])
        url(inside, method, of: &step, in: scope, what)
        headers(inside, of: &step, in: scope, what)
        body(inside, of: &step, in: scope, what)
        answers(inside, of: &step, what)
        step.take = takes(inside, block: RecipeKeys.take, what)
        checkOrigins(step, inside.mark(method), what)
        steps.append(step)
    }

    /// The scheme, host and port are text: only what comes behind them may hold values.
    private mutating func url(
        _ inside: BlockReader, _ key: String, of step: inout RecipeStep, in scope: RecipeScope, _ what: String
    ) {
        guard let node = inside.entry(key)?.value, let text = node.scalar?.text else { return }
        let mark = node.mark
        let start = text.firstRange(of: "://")?.upperBound ?? text.startIndex
        let authorityEnd = text[start...].firstIndex { $0 == "/" || $0 == "?" } ?? text.endIndex
        guard !text[..<authorityEnd].contains("{") else {
            return error("'\(key)' of \(what) of \(place): scheme, host and port must not be templates", mark)
        }
        var whole = template(node, "'\(key)' of \(what)", in: scope)
        let shown = whole.parts.map { part in
            if case .text(let text) = part { text } else { "x" }
        }.joined()
        do {
            let url = try BlockReader.httpURL(shown)
            step.origin = url.origin
            if url.origin.isCleartext, !url.origin.isLoopback, !allowsCleartext {
                error(
                    "'\(key)' of \(what) of \(place) sends credentials in clear text; use https:, or network: {allow_cleartext: true}",
                    mark)
            }
        } catch {
            return self.error("'\(key)' of \(what) of \(place) \(error.reason)", mark)
        }
        if case .text(let first)? = whole.parts.first {
            var rest = String(first.dropFirst(text[..<authorityEnd].count))
            if !rest.hasPrefix("/") { rest = "/" + rest }
            whole.parts[0] = .text(rest)
        }
        step.target = whole
    }

    private mutating func headers(
        _ inside: BlockReader, of step: inout RecipeStep, in scope: RecipeScope, _ what: String
    ) {
        var seen: Set<String> = []
        for entry in inside.entry("headers")?.value.map ?? [] {
            if ReservedHeader.contains(entry.key) {
                error("'\(entry.key)' in 'headers' of \(what) of \(place) is written by the gateway itself", entry.mark)
            }
            if !seen.insert(entry.key.lowercased()).inserted {
                error("'\(entry.key)' in 'headers' of \(what) of \(place) is given twice", entry.mark)
            }
            let value = template(entry.value, "'\(entry.key)' in 'headers' of \(what)", in: scope)
            step.headers.append(RecipeNamed(name: entry.key, value: value))
        }
    }

    private mutating func body(_ inside: BlockReader, of step: inout RecipeStep, in scope: RecipeScope, _ what: String)
    {
        let written = inside.written(["json", "form", "text"])
        if written.count > 1 {
            error(
                "\(what) of \(place) has \(written.joined(separator: " and ")); a body is one of them",
                inside.mark(written[1]))
        }
        guard let key = written.first, let node = inside.entry(key)?.value else { return }
        if step.method == "GET" { error("'\(key)' of \(what) of \(place): a GET has no body", inside.mark(key)) }
        switch key {
        case "json": step.body = .json(json(node, "'json' of \(what)", in: scope))
        case "form":
            step.body = .form(
                (node.map ?? []).map { entry in
                    RecipeNamed(
                        name: entry.key,
                        value: template(entry.value, "'\(Quoted.short(entry.key))' in 'form' of \(what)", in: scope))
                })
        default:
            var free = scope
            free.isFreeText = true
            step.body = .text(template(node, "'text' of \(what)", in: free))
        }
    }

    private mutating func json(_ node: Node, _ what: String, in scope: RecipeScope) -> RecipeJSON {
        switch node.content {
        case .scalar(let scalar):
            if scalar.isAbsent { return .literal("null") }
            if scalar.isPlain, Self.isLiteral(scalar.text) { return .literal(scalar.text) }
            return .string(template(node, what, in: scope))
        case .list(let items): return .list(items.map { json($0, what, in: scope) })
        case .map(let entries):
            // An object whose one member is null is possible; one whose name has a dot or a bar would be strange.
            if node.isUnquotedTemplate, let entry = entries.first, entry.key.contains(where: { ".|".contains($0) }) {
                let name = Quoted.short(entry.key)
                error("{\(name)} in \(what) of \(place) is a map to YAML; write \"{\(name)}\" in quotes", entry.mark)
            }
            return .object(entries.map { .init(name: $0.key, value: json($0.value, what, in: scope)) })
        }
    }

    /// Whether JSON itself writes the text without quotes (RFC 8259 §3, §6).
    private static func isLiteral(_ text: String) -> Bool {
        if ["true", "false", "null"].contains(text) { return true }
        let number = try? Pattern("^(-?(?:0|[1-9]\\d{0,17})(?:\\.\\d{1,18})?(?:[eE][+-]?\\d{1,3})?)$")
        return text.utf8.count <= 64 && number?.firstGroup(in: Array(text.utf8)) != nil
    }

    private mutating func answers(_ inside: BlockReader, of step: inout RecipeStep, _ what: String) {
        let accepted = inside.inside("accepted", RecipeKeys.accepted)
        if inside.has("accepted") { accepted.called("'accepted' of \(what) of \(place)").needRequired() }
        step.accepted =
            accepted.list("status") { text throws(TextFault) in try Units.integer(text, in: 200...399) } ?? []
        step.rejected = refusal(inside.inside("rejected", RecipeKeys.rejected), "'rejected' of \(what)")
        if inside.has("stale") {
            let stale = inside.inside("stale").called("'stale' of \(what) of \(place)")
            stale.needRequired()
            if !steps.contains(where: { $0.layer < step.layer }) {
                error(
                    "'stale' of \(what) of \(place): no step before it is on a layer that is kept", inside.mark("stale")
                )
            }
            step.stale = refusal(stale, "'stale' of \(what)")
        }
        if let both = step.rejected.statuses.first(where: { step.accepted.contains($0) }), step.rejected.json == nil {
            error("status \(both) of \(what) of \(place) is 'accepted' and 'rejected'", inside.mark("accepted"))
        }
    }

    private mutating func refusal(_ reader: BlockReader, _ what: String) -> RecipeRefusal {
        let statuses = reader.list("status") { text throws(TextFault) in try Units.integer(text, in: 200...499) }
        let refusal = RecipeRefusal(
            statuses: statuses ?? (reader.block.name == "recipe_rejected" ? [401] : []), json: pointer(reader, "json"),
            match: pattern(reader, "match"))
        if refusal.match != nil, refusal.json == nil {
            error("'match' in \(what) of \(place) needs 'json', the place that it looks at", reader.mark("match"))
        }
        return refusal
    }

    /// A secret leaves for its own origins only.
    private mutating func checkOrigins(_ step: RecipeStep, _ mark: Mark, _ what: String) {
        for name in step.secrets.sorted() {
            guard let secret = secrets.first(where: { $0.name == name }), !secret.to.contains(step.origin) else {
                continue
            }
            error(
                "\(what) of \(place) sends secret '\(name)' to \(step.origin), which its 'to' does not name", mark)
        }
    }

    // MARK: - Names

    /// The names that a step may use: secrets, the challenge and the request where its layer allows them, and the steps before it.
    func stepScope(before index: Int, layer: RecipeStep.Layer) -> RecipeScope {
        var scope = commonScope()
        for take in challengeTakes { scope.names["challenge.\(take.name)"] = .challenge(take.name) }
        for part in [RecipeName.RequestPart.url, .host, .path, .method] {
            let name = "request.\(part.rawValue)"
            if isSelective {
                scope.names[name] = .request(part)
            } else {
                scope.withheld[name] = "without scheme, header or json in 'challenge' tokens are had ahead of requests"
            }
        }
        scope.withheld["request.query"] = "it is there only with 'sign'"
        scope.withheld["request.body_sha256"] = "it is there only with 'sign'"
        if layer != .access {
            for name in scope.names.keys where name.hasPrefix("challenge.") || name.hasPrefix("request.") {
                scope.names[name] = nil
                scope.withheld[name] = "what the \(layer.rawValue) layer keeps serves every request"
            }
        }
        for step in steps.prefix(index) {
            for take in step.take where take.name != RecipeTake.lifetime {
                scope.names["\(step.name).\(take.name)"] = .step(step.name, take: take.name)
            }
        }
        return scope
    }

    private func commonScope() -> RecipeScope {
        var scope = RecipeScope()
        for secret in secrets { scope.names["secret.\(secret.name)"] = .secret(secret.name) }
        for name in RecipeName.Own.allCases { scope.names[name.rawValue] = .own(name) }
        return scope
    }

    // MARK: - Signing

    mutating func signedValues() -> [RecipeNamed] {
        let entries = reader.entry("sign")?.value.map ?? []
        if reader.has("sign"), entries.isEmpty { error("'sign' of \(place) is empty", reader.mark("sign")) }
        if entries.count > Recipe.Bound.signed {
            error(
                "'sign' of \(place) has \(entries.count) values; at most 16 are computed",
                entries[Recipe.Bound.signed].mark)
        }
        var values: [RecipeNamed] = []
        var scope = signedScope()
        scope.allowsRaw = true
        for entry in entries.prefix(Recipe.Bound.signed) {
            let value = template(entry.value, "'\(Quoted.short(entry.key))' in 'sign'", in: scope)
            values.append(RecipeNamed(name: entry.key, value: value))
            scope.names["sign.\(entry.key)"] = .signed(entry.key)
            scope.withheld["sign.\(entry.key)"] = nil
            if value.isRaw(scope.raw) { scope.raw.insert(entry.key) }
            if value.shows(scope.received, where: \.isReceived) { scope.received.insert(entry.key) }
        }
        scope.allowsRaw = false
        scope.isFieldValue = true
        fieldScope = scope
        return values
    }

    private func signedScope() -> RecipeScope {
        var scope = commonScope()
        for part in RecipeName.RequestPart.allCases { scope.names["request.\(part.rawValue)"] = .request(part) }
        scope.allowsRequestHeaders = true
        for step in steps {
            for take in step.take where take.name != RecipeTake.lifetime {
                scope.names["\(step.name).\(take.name)"] = .step(step.name, take: take.name)
            }
        }
        if reader.has("token") {
            scope.names["token"] = .token
        } else {
            scope.withheld["token"] = "there is no 'token'"
        }
        for take in challengeTakes {
            scope.withheld["challenge.\(take.name)"] = "the challenge is over when a request is signed"
        }
        for entry in reader.entry("sign")?.value.map ?? [] {
            scope.withheld["sign.\(entry.key)"] = "only values before it are known"
        }
        return scope
    }

    mutating func signedFields() -> [RecipeNamed] {
        let node = reader.entry("inject")?.value
        guard let node else {
            error("\(place) needs 'inject': what is signed goes into its fields", reader.mark)
            return []
        }
        let items = node.list ?? [node]
        if items.isEmpty || items.count > Recipe.Bound.fields {
            error("'inject' of \(place) must have 1 to 8 fields", reader.mark("inject"))
        }
        var fields: [RecipeNamed] = []
        for item in items.prefix(Recipe.Bound.fields) where item.map != nil {
            let inside = reader.inside(item, RecipeKeys.field, place: "'inject' of \(place)")
            inside.needRequired()
            let name = field(inside)
            if fields.contains(where: { $0.name.lowercased() == name.lowercased() }) {
                error("'inject' of \(place) has '\(name)' twice", inside.mark("header"))
            }
            fields.append(
                RecipeNamed(
                    name: name, value: template(inside.entry("value")?.value, "'value' in 'inject'", in: fieldScope)))
        }
        return fields
    }
}
