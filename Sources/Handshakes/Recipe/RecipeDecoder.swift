internal import Configuration
internal import Numbers
internal import XML

/// Makes a recipe from a block that `Checker` has seen, and checks what one key cannot know: which name may stand where, and where each
/// secret may go.
struct RecipeDecoder {
    let reader: BlockReader
    var place: String { reader.place }
    let allowsCleartext: Bool
    var secrets: [RecipeSecret] = []
    var challengeTakes: [RecipeTake] = []
    var isSelective = false
    /// The steps read so far.
    var steps: [RecipeStep] = []
    /// The names that fields may use, once the signed values are read.
    var fieldScope = RecipeScope()

    mutating func decode() -> Recipe {
        decodeSecrets()
        let challenge = challenge()
        challengeTakes = challenge.take
        isSelective = challenge.isSelective
        decodeSteps()
        let sign = signedValues()
        let isSigned = !sign.isEmpty
        var recipe = Recipe(
            secrets: secrets, challenge: challenge, key: reader.texts("key") ?? [], steps: steps, sign: sign,
            token: nil,
            inject: [], attempts: attempts(), probe: reader.text("probe"))
        checkKind(recipe)
        checkKey(recipe)
        if !isSigned || reader.has("token") { recipe.token = token() }
        recipe.inject = isSigned ? signedFields() : [tokenField()]
        return recipe
    }

    // MARK: - Findings

    func error(_ message: String, _ mark: Mark) { reader.findings.error(message, mark) }

    /// A template, with its faults at their own columns where the text stands as written.
    mutating func template(_ node: Node?, _ what: String, in scope: RecipeScope) -> RecipeTemplate {
        guard let node, let scalar = node.scalar else { return RecipeTemplate(parts: []) }
        let (template, faults) = RecipeTemplateParser.parse(scalar.text, in: scope)
        for fault in faults {
            var mark = node.mark
            // Beyond an expanded variable nothing is where it was written.
            if let column = scalar.column, scalar.text == scalar.written {
                let before = String(decoding: scalar.text.utf8.prefix(fault.offset), as: UTF8.self)
                mark.column = column + before.unicodeScalars.count
            }
            error("\(what) of \(place) \(fault.reason)", mark)
        }
        return template
    }

    // MARK: - Secrets and challenge

    private mutating func decodeSecrets() {
        for entry in reader.entry("secrets")?.value.map ?? [] {
            let what = "secret '\(Quoted.short(entry.key))' of \(place)"
            let inside = reader.inside(entry.value, RecipeKeys.secret, place: what)
            if inside.node != nil { inside.needRequired() }
            var origins: [Origin] = []
            for node in inside.items("to") ?? [] {
                guard let text = node.scalar?.text, let url = try? BlockReader.httpURL(text) else { continue }
                if url.path != "/" || url.query != nil {
                    error("'to' of secret '\(entry.key)' of \(place) must be an origin, without a path", node.mark)
                }
                origins.append(url.origin)
            }
            if inside.has("to"), inside.items("to")?.isEmpty == true {
                error("'to' of secret '\(entry.key)' of \(place) is empty, so it could go nowhere", inside.mark("to"))
            }
            secrets.append(
                RecipeSecret(name: entry.key, value: inside.secret("value") ?? .environment(name: ""), to: origins))
        }
    }

    private mutating func challenge() -> RecipeChallenge {
        let inside = reader.inside("challenge", RecipeKeys.challenge)
        let statuses = inside.list("status") { text throws(TextFault) in try Units.integer(text, in: 300...599) }
        var challenge = RecipeChallenge(
            statuses: statuses ?? [401], scheme: inside.text("scheme"), header: inside.text("header"),
            json: pointer(inside, "json"), take: [])
        if challenge.statuses.isEmpty {
            error("'status' of 'challenge' of \(place) is empty, so nothing would be one", inside.mark("status"))
        }
        challenge.take = takes(inside, block: RecipeKeys.challengeTake, "the challenge")
        if !challenge.take.isEmpty, !challenge.isSelective {
            error(
                "'take' in 'challenge' of \(place) needs 'scheme', 'header' or 'json': a bare status does not say that a "
                    + "challenge is there", inside.mark("take"))
        }
        for take in challenge.take {
            switch take.source {
            case .param where challenge.scheme == nil:
                error("'\(take.name)' of \(place) takes a 'param', which needs 'scheme'", inside.mark("take"))
            case .json where challenge.json == nil:
                error(
                    "'\(take.name)' of \(place) takes 'json', which needs 'json' beside 'status': only then the body is kept",
                    inside.mark("take"))
            default: break
            }
        }
        return challenge
    }

    mutating func takes(_ inside: BlockReader, block: Block, _ what: String) -> [RecipeTake] {
        var takes: [RecipeTake] = []
        for entry in inside.entry("take")?.value.map ?? [] {
            let reader = inside.inside(entry.value, block)
            if let take = take(reader, name: entry.key, "'\(Quoted.short(entry.key))' in 'take' of \(what)") {
                takes.append(take)
            }
        }
        return takes
    }

    private mutating func take(_ reader: BlockReader, name: String, _ what: String) -> RecipeTake? {
        guard reader.node != nil else { return nil }
        let sources = reader.written(
            ["param", "json", "form", "xml", "header", "cookie"].filter { reader.block[$0] != nil })
        guard sources.count == 1, let key = sources.first else {
            error(
                "\(what) of \(place) needs exactly one of \(reader.block["param"] == nil ? "json, form, xml, header, cookie" : "json, header, cookie, param")",
                reader.mark)
            return nil
        }
        let source: RecipeTake.Source
        switch key {
        case "json":
            guard let pointer = pointer(reader, "json") else { return nil }
            source = .json(pointer)
        case "form": source = .form(reader.text("form") ?? "")
        case "xml":
            guard let path = reader.text("xml").flatMap(XMLPath.init) else {
                error(
                    "'xml' of \(what) of \(place) must be a path such as /Answer/Token or /Answer/@id",
                    reader.mark("xml"))
                return nil
            }
            source = .xml(path)
        case "header": source = .header(reader.text("header") ?? "")
        case "cookie": source = .cookie(reader.text("cookie") ?? "")
        default: source = .param(reader.text("param") ?? "")
        }
        let otherwise = reader.text("else")
        if name == RecipeTake.lifetime, let otherwise, RecipeLifetime.seconds(otherwise) == nil {
            error("'else' of \(what) of \(place) must be seconds or a duration such as 15m", reader.mark("else"))
        }
        return RecipeTake(name: name, source: source, match: pattern(reader, "match"), otherwise: otherwise)
    }

    func pointer(_ reader: BlockReader, _ key: String) -> JSONPointer? {
        reader.parsed(key) { text throws(TextFault) in try JSONPointer(text: text) }
    }

    func pattern(_ reader: BlockReader, _ key: String) -> Pattern? {
        reader.text(key).flatMap { try? Pattern($0) }
    }

    private mutating func attempts() -> RecipeTake? {
        guard reader.has("attempts") else { return nil }
        return take(reader.inside("attempts", RecipeKeys.take), name: "attempts", "'attempts'")
    }

    // MARK: - The whole

    private mutating func checkKind(_ recipe: Recipe) {
        guard reader.node != nil else { return }
        switch (reader.lacks("steps"), reader.lacks("sign")) {
        case (true, true): error("\(place) needs 'steps' or 'sign'", reader.mark)
        case (false, false): break
        case (true, false):
            for key in reader.written(["key", "token", "attempts", "challenge", "probe"]) {
                error("'\(key)' of \(place) is used only with 'steps'", reader.mark(key))
            }
        case (false, true):
            if reader.lacks("token") { error("\(place) needs 'token'", reader.mark) }
        }
        if !recipe.isChallengeDriven, reader.has("probe"), reader.has("steps") {
            error("'probe' of \(place) is used only where 'challenge' has scheme, header or json", reader.mark("probe"))
        }
    }

    private mutating func checkKey(_ recipe: Recipe) {
        let known = recipe.challenge.take.map(\.name)
        for node in reader.items("key") ?? [] {
            guard let name = node.scalar?.text, !known.contains(name) else { continue }
            let near = NearestWord.of(name, in: known).map { "; did you mean '\($0)'?" } ?? ""
            error("'key' of \(place) names '\(Quoted.short(name))', which 'challenge' does not take\(near)", node.mark)
        }
        if Set(recipe.key).count != recipe.key.count {
            error("'key' of \(place) names a value twice", reader.mark("key"))
        }
    }

    // MARK: - Token and fields

    private mutating func token() -> RecipeTemplate {
        var scope = stepScope(before: steps.count, layer: .access)
        // Used long after the challenge: a token must be whole by itself.
        for name in scope.names.keys where name.hasPrefix("challenge.") || name.hasPrefix("request.") {
            scope.names[name] = nil
            scope.withheld[name] = "the token outlives the request that brought it"
        }
        return template(reader.entry("token")?.value, "'token'", in: scope)
    }

    private mutating func tokenField() -> RecipeNamed {
        let node = reader.entry("inject")?.value
        let token = RecipeTemplate.Part.value(.init(terms: [.name(.token)], pipes: []))
        guard let node else {
            return RecipeNamed(name: "Authorization", value: .init(parts: [.text("Bearer "), token]))
        }
        guard node.map != nil else {
            error("'inject' of \(place) must be one field, as a token goes into one", reader.mark("inject"))
            return RecipeNamed(name: "Authorization", value: .init(parts: [token]))
        }
        let inside = reader.inside("inject")
        inside.needRequired()
        var scope = RecipeScope()
        scope.names = ["token": .token]
        let value = template(inside.entry("value")?.value, "'value' in 'inject'", in: scope)
        let texts = value.parts.dropLast().allSatisfy { if case .text = $0 { true } else { false } }
        if inside.has("value"), value.parts.last != token || !texts {
            error("'value' in 'inject' of \(place) must end with '{token}', and have it once", inside.mark("value"))
        }
        return RecipeNamed(name: field(inside), value: value)
    }

    mutating func field(_ inside: BlockReader) -> String {
        let name = inside.text("header") ?? "Authorization"
        if ReservedHeader.contains(name) {
            error("'\(name)' in 'inject' of \(place) is a header of the connection itself", inside.mark("header"))
        }
        return name
    }
}

/// How long taken values are good.
enum RecipeLifetime {
    /// Seconds of a number, or of a duration with its unit; nil where it is neither or not positive. At most a year.
    static func seconds(_ text: String) -> Double? {
        let year = 365.0 * 86_400
        if let span = TimeSpan(decimalSeconds: text) {
            return span > .zero ? min(Double(span.nanoseconds) / 1e9, year) : nil
        }
        guard let duration = try? Units.duration(text), duration > .zero else { return nil }
        return min(Double(duration.wholeNanoseconds) / 1e9, year)
    }
}
