internal import Configuration
internal import Numbers
internal import Octets
internal import TLS

/// The names that a template may use in its place.
struct RecipeScope {
    /// Names as they are written, such as `secret.password`.
    var names: [String: RecipeName] = [:]
    /// Names that are known elsewhere, and why not here.
    var withheld: [String: String] = [:]
    var allowsRequestHeaders = false
    /// Signed values that are bytes instead of text.
    var raw: Set<String> = []
    /// Signed values with bytes that were received, as they came.
    var received: Set<String> = []
    /// Text around received values has no form of its own: each must be encoded by a pipe.
    var isFreeText = false
    /// The text is a field's value: what a caller sends must not end a quoted string in it (RFC 9110 §5.6.4).
    var isFieldValue = false
    /// The result may be bytes.
    var allowsRaw = false
}

/// Reads one template. Every fault is reported, with its place, as far as the reading goes on.
struct RecipeTemplateParser {
    struct Fault: Error, Equatable {
        /// A sentence about the template, without its start.
        var reason: String
        /// Bytes before the place that is meant.
        var offset: Int
    }

    private let text: [UInt8]
    private let scope: RecipeScope
    private var at = 0
    private var faults: [Fault] = []
    private var depth = 0

    static let longest = TextForm.longestTemplate
    private static let deepest = 4
    private static let mostTerms = 32

    static func parse(_ text: String, in scope: RecipeScope) -> (template: RecipeTemplate, faults: [Fault]) {
        var parser = RecipeTemplateParser(text: Array(text.utf8), scope: scope)
        let template = parser.template()
        return (template, parser.faults)
    }

    // MARK: - Template

    private mutating func template() -> RecipeTemplate {
        var parts: [RecipeTemplate.Part] = []
        var plain: [UInt8] = []
        var isQuoted = false
        func flush() { if !plain.isEmpty { parts.append(.text(String(decoding: plain, as: UTF8.self))) } }
        guard text.count <= Self.longest else {
            fault("is longer than 16 KiB", at: 0)
            return RecipeTemplate(parts: [])
        }
        while at < text.count {
            let byte = text[at]
            let isBrace = byte == UInt8(ascii: "{") || byte == UInt8(ascii: "}")
            if isBrace, at + 1 < text.count, text[at + 1] == byte {
                plain.append(byte)
                at += 2
            } else if byte == UInt8(ascii: "}") {
                fault("has a lone '}'; '}}' is the sign itself", at: at)
                at += 1
            } else if byte == UInt8(ascii: "{") {
                flush()
                plain = []
                let begin = at
                at += 1
                do throws(Fault) {
                    let expression = try expression()
                    guard take("}") else { throw Fault(reason: "has a '{' that is not closed", offset: begin) }
                    check(expression, from: begin)
                    if isQuoted, scope.isFieldValue, expression.shows(scope.received, where: \.isCallers) {
                        fault(
                            "has a caller's value between quotes, which it could end; say what encodes it: 'json', 'url', 'base64' or 'hex'",
                            at: begin)
                    }
                    parts.append(.value(expression))
                } catch {
                    faults.append(error)
                    recover(from: begin)
                }
            } else {
                if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
                plain.append(byte)
                at += 1
            }
        }
        flush()
        return RecipeTemplate(parts: parts)
    }

    /// Behind the next closing brace, so that what follows is looked at, too.
    private mutating func recover(from begin: Int) {
        while at < text.count, text[at] != UInt8(ascii: "}") { at += 1 }
        at = min(max(at, begin) + 1, text.count)
    }

    private mutating func check(_ expression: RecipeTemplate.Expression, from begin: Int) {
        if !scope.allowsRaw, expression.isRaw(scope.raw) {
            fault("puts raw bytes into text; end with 'hex', 'base64' or 'base64url'", at: begin)
        }
        if scope.isFreeText, expression.shows(scope.received, where: \.isReceived) {
            fault(
                "puts a received value into free text; say what encodes it: 'json', 'xml', 'url', 'base64' or 'hex'",
                at: begin)
        }
    }

    // MARK: - Expression

    private mutating func expression() throws(Fault) -> RecipeTemplate.Expression {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.deepest else { throw Fault(reason: "is nested deeper than 4 levels", offset: at) }
        var terms: [RecipeTemplate.Term] = []
        var pipes: [RecipeTemplate.Pipe] = []
        let begin = at
        while true {
            skipBlanks()
            guard at < text.count, text[at] != UInt8(ascii: "}"), text[at] != UInt8(ascii: ")"),
                text[at] != UInt8(ascii: "|")
            else { break }
            terms.append(try term())
            guard terms.count <= Self.mostTerms else { throw Fault(reason: "has more than 32 terms", offset: begin) }
        }
        guard !terms.isEmpty else { throw Fault(reason: "names nothing between its braces", offset: begin) }
        while take("|") {
            let start = at
            let pipe = try pipe()
            let signed = RecipeTemplate.Expression(terms: terms, pipes: pipes)
            if case .jws = pipe, signed.shows(scope.received, where: \.isReceived) {
                fault("signs a received value that is not encoded; write '(… | json)' around it", at: start)
            }
            pipes.append(pipe)
            guard pipes.count <= 8 else { throw Fault(reason: "has more than 8 pipes", offset: start) }
            skipBlanks()
        }
        return RecipeTemplate.Expression(terms: terms, pipes: pipes)
    }

    private mutating func term() throws(Fault) -> RecipeTemplate.Term {
        let begin = at
        let byte = text[at]
        if byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\"") {
            guard let end = text[(at + 1)...].firstIndex(of: byte) else {
                throw Fault(reason: "has a text that is not closed", offset: begin)
            }
            at = end + 1
            return .text(String(decoding: text[(begin + 1)..<end], as: UTF8.self))
        }
        if take("(") {
            let inner = try expression()
            guard take(")") else { throw Fault(reason: "has a '(' that is not closed", offset: begin) }
            return .inner(inner)
        }
        return .name(try name())
    }

    private mutating func word() -> String {
        let begin = at
        while at < text.count, text[at].isHostNameCharacter { at += 1 }
        return String(decoding: text[begin..<at], as: UTF8.self)
    }

    private mutating func name() throws(Fault) -> RecipeName {
        let begin = at
        let word = word()
        guard !word.isEmpty else {
            let sign = Quoted.short(String(decoding: text[at...].prefix(1), as: UTF8.self))
            throw Fault(reason: "has '\(sign)' where a name or a text in quotes is expected", offset: begin)
        }
        if scope.names["now"] != nil, let moment = try moment(word, from: begin) { return moment }
        if let name = scope.names[word] { return name }
        let header = "request.header."
        if scope.allowsRequestHeaders, word.hasPrefix(header), word.utf8.count > header.utf8.count {
            return .requestHeader(String(word.dropFirst(header.count)))
        }
        if let reason = scope.withheld[word] {
            throw Fault(reason: "cannot use '\(word)': \(reason)", offset: begin)
        }
        var reason = "names '\(Quoted.short(word))', which is not known here"
        let known = scope.names.keys.sorted()
        if let near = NearestWord.of(word, in: known) {
            reason += "; did you mean '\(near)'?"
        } else {
            reason += "; known: \(known.joined(separator: ", "))"
        }
        throw Fault(reason: reason, offset: begin)
    }

    /// `now+540`, `now-60`.
    private mutating func moment(_ word: String, from begin: Int) throws(Fault) -> RecipeName? {
        let digits: Substring
        let isEarlier = word.hasPrefix("now-")
        if isEarlier {
            digits = word.dropFirst(4)
        } else {
            guard word == "now", take("+") else { return nil }
            digits = self.word()[...]
        }
        guard digits.utf8.first != UInt8(ascii: "-"),
            let seconds = ReceivedNumber(digits)?.within(0...RecipeName.farthestMoment)
        else { throw Fault(reason: "needs seconds of at most a year behind 'now'", offset: begin) }
        return .moment(isEarlier ? -seconds : seconds)
    }

    // MARK: - Pipes

    private mutating func pipe() throws(Fault) -> RecipeTemplate.Pipe {
        skipBlanks()
        let begin = at
        let word = word()
        if let pipe = RecipeTemplate.Pipe.Plain(rawValue: word) { return .plain(pipe) }
        guard word == "hmac_sha256" || word == "jws" else {
            let known = RecipeTemplate.Pipe.Plain.allCases.map(\.rawValue).sorted() + ["hmac_sha256", "jws"]
            let near = NearestWord.of(word, in: known).map { "did you mean '\($0)'?" }
            throw Fault(
                reason: "has '\(Quoted.short(word))' where a pipe is expected; "
                    + (near ?? "known: \(known.joined(separator: ", "))"), offset: begin)
        }
        skipBlanks()
        guard take("(") else { throw Fault(reason: "needs a key: '\(word)(secret.NAME)'", offset: begin) }
        skipBlanks()
        let start = at
        let key = try name()
        skipBlanks()
        if word == "jws" {
            guard case .secret(let secret) = key, take(",") else {
                throw Fault(reason: "needs a secret and an algorithm: 'jws(secret.NAME, RS256)'", offset: start)
            }
            skipBlanks()
            let spot = at
            let text = self.word()
            guard let algorithm = JWSAlgorithm(rawValue: text) else {
                let known = JWSAlgorithm.allCases.map(\.rawValue).joined(separator: ", ")
                throw Fault(reason: "has '\(Quoted.short(text))' where one of \(known) is expected", offset: spot)
            }
            skipBlanks()
            let id = take(",") ? try keyID() : nil
            try close(begin)
            return .jws(secret: secret, algorithm, keyID: id)
        }
        switch key {
        case .secret, .signed, .step, .token: break
        default: throw Fault(reason: "needs a secret, a step's or an earlier signed value as its key", offset: start)
        }
        try close(begin)
        return .hmacSHA256(key)
    }

    /// The third word of `jws`, in quotes.
    private mutating func keyID() throws(Fault) -> String {
        skipBlanks()
        let begin = at
        guard at < text.count, text[at] == UInt8(ascii: "'") || text[at] == UInt8(ascii: "\""),
            case .text(let id) = try term(), (1...256).contains(id.utf8.count), id.isFieldContent
        else { throw Fault(reason: "needs a key's id in quotes: 'jws(secret.NAME, RS256, \"ID\")'", offset: begin) }
        return id
    }

    private mutating func close(_ begin: Int) throws(Fault) {
        skipBlanks()
        guard take(")") else { throw Fault(reason: "has a '(' that is not closed", offset: begin) }
    }

    private mutating func skipBlanks() {
        while at < text.count, text[at] == 0x20 || text[at] == 0x09 || text[at] == 0x0A { at += 1 }
    }

    private mutating func take(_ sign: Unicode.Scalar) -> Bool {
        guard at < text.count, text[at] == UInt8(ascii: sign) else { return false }
        at += 1
        return true
    }

    private mutating func fault(_ reason: String, at offset: Int) {
        faults.append(Fault(reason: reason, offset: offset))
    }
}
