internal import Configuration
internal import HTTP1
internal import Octets
internal import XML

/// Where a recipe's takes and conditions look: an answer's fields and, read once, its JSON.
struct RecipeAnswer {
    let status: Int
    private let fields: [(name: [UInt8], value: [UInt8])]
    private let body: [UInt8]
    /// The challenge of the recipe's scheme.
    private let challenge: AuthChallenge?
    private let tree: Result<JSONTree, JSONTree.Fault>
    /// nil where no value is taken out of XML.
    private let document: Result<XMLDocument, XMLFault>?

    /// - Parameter takes: the values that will be asked for.
    init(_ answer: IssuerAnswer, for takes: [RecipeTake] = []) {
        let isXML = takes.contains(where: \.isXML)
        document = isXML ? Result { () throws(XMLFault) in try XMLDocument(answer.body) } : nil
        status = answer.status
        fields = answer.headers.map { (Array($0.name.utf8), Array($0.value.utf8)) }
        body = answer.body
        challenge = nil
        tree = Result { () throws(JSONTree.Fault) in try JSONTree(answer.body) }
    }

    init(_ answer: UpstreamAnswer, challenge: AuthChallenge?) {
        document = nil
        status = answer.status
        fields = answer.fields
        body = answer.body ?? []
        self.challenge = challenge
        tree =
            answer.body == nil
            ? .failure(.empty) : Result { () throws(JSONTree.Fault) in try JSONTree(answer.body ?? []) }
    }

    /// Says what is missing or wrong, never what was received.
    typealias Fault = TextFault
}

// MARK: - Values

extension RecipeAnswer {
    /// The value that a take names, checked against its bound.
    func value(of take: RecipeTake) throws(Fault) -> Secret {
        if var bytes = try found(take) {
            defer { bytes.wipe() }
            guard bytes.count <= Recipe.Bound.taken else { throw Fault("'\(take.name)' is longer than 32 KiB") }
            return Secret(bytes)
        }
        guard let otherwise = take.otherwise else { throw Fault("no '\(take.name)'") }
        return Secret(otherwise)
    }

    func values(of takes: [RecipeTake]) throws(Fault) -> [String: Secret] {
        var values: [String: Secret] = [:]
        for take in takes { values[take.name] = try value(of: take) }
        return values
    }

    private func found(_ take: RecipeTake) throws(Fault) -> [UInt8]? {
        guard let bytes = try source(take), !bytes.isEmpty else { return nil }
        guard let match = take.match else { return bytes }
        guard bytes.count <= Pattern.longestInput else { throw Fault("'\(take.name)' is too long for its 'match'") }
        return match.firstGroup(in: bytes).map { Array(bytes[$0]) }
    }

    private func source(_ take: RecipeTake) throws(Fault) -> [UInt8]? {
        switch take.source {
        case .header(let name):
            // Which of two was meant must not be a matter of luck.
            guard Set(fields.filter { $0.name.matches(name) }.map { Self.trimmed($0.value) }).count <= 1 else {
                throw Fault("'\(take.name)': two values of \(name)")
            }
            return self[field: name]
        case .cookie(let name): return cookie(name)
        case .json(let pointer):
            do throws(JSONTree.Fault) {
                // Where nothing is, `else` may speak; where the body is broken, nothing does.
                guard !body.isEmpty, let value = try tree.get().value(at: pointer.tokens) else { return nil }
                if case .null = value { return nil }
                guard let bytes = value.scalar else { throw .notJSON }
                return bytes
            } catch {
                throw Fault("'\(take.name)': \(error.rawValue)")
            }
        case .form(let name):
            guard body.isUTF8 else { throw Fault("'\(take.name)': a body that is no form") }
            // Some servers end every body with a line's end.
            let form = body.dropLast(body.reversed().prefix { $0 == 0x0D || $0 == 0x0A }.count)
            let found = FormMembers.values(of: name, in: Array(form))
            guard found.count <= 1 else { throw Fault("'\(take.name)': a form with a duplicate member") }
            return found.first
        case .xml(let path):
            do throws(XMLFault) { return try document?.get().value(at: path) } catch {
                throw Fault("'\(take.name)': \(error)")
            }
        case .param(let name):
            switch challenge?[name] {
            case nil, .absent?: return nil
            case .one(let bytes)?: return bytes
            case .duplicate?: throw Fault("duplicate \(name)")
            }
        }
    }

    /// The first value of a field, blanks around it removed.
    subscript(field name: String) -> [UInt8]? {
        guard let value = fields.first(where: { $0.name.matches(name) })?.value else { return nil }
        return Self.trimmed(value)
    }

    private static func trimmed(_ value: [UInt8]) -> [UInt8] {
        Array(Array(value.drop(while: \.isBlank)).reversed().drop(while: \.isBlank).reversed())
    }

    /// The last cookie of the name wins, as in a browser (RFC 6265 §5.3). An empty one takes it away.
    private func cookie(_ name: String) -> [UInt8]? {
        var found: [UInt8]?
        for field in fields where field.name.matches("Set-Cookie") {
            let pair = field.value.prefix { $0 != UInt8(ascii: ";") }
            guard let cut = pair.firstIndex(of: UInt8(ascii: "=")) else { continue }
            let key = pair[..<cut].drop(while: \.isBlank)
            guard key.elementsEqual(name.utf8) else { continue }
            let value = pair[(cut + 1)...].drop(while: \.isBlank)
            found = Array(value.prefix(value.count - value.reversed().prefix(while: \.isBlank).count))
        }
        return found
    }

    /// Whether a place of the body is there; false where the body is no JSON.
    func has(_ pointer: JSONPointer) -> Bool {
        guard let tree = try? tree.get(), let value = try? tree.value(at: pointer.tokens) else { return false }
        if case .null = value { return false }
        return true
    }

    func meets(_ refusal: RecipeRefusal) -> Bool {
        guard refusal.statuses.contains(status) else { return false }
        guard let pointer = refusal.json else { return true }
        guard let match = refusal.match else { return has(pointer) }
        guard let bytes = (try? tree.get().value(at: pointer.tokens))?.scalar else { return false }
        return match.firstGroup(in: bytes) != nil
    }
}
