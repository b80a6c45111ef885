/// One header line, its value as received except for the white space around it. Octets above 0x7F are read as Latin-1.
struct Field: Sendable {
    let name: String
    let value: String
}

/// How a request says where its body ends (RFC 9112 §6).
enum Framing: Sendable, Equatable {
    case none
    case length(Int)
    case chunked
}

/// A request head that passed every check of the strict reader.
struct Request: Sendable {
    let method: String
    /// Origin form, or `*`.
    let target: String
    let minorVersion: Int
    let fields: [Field]
    let framing: Framing

    var path: String {
        target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).first.map(String.init) ?? target
    }

    /// Query parameters, form-decoded; the first of a name wins.
    var query: [String: String] {
        guard let mark = target.firstIndex(of: "?") else { return [:] }
        let pairs = Form.parse(String(target[target.index(after: mark)...])) ?? []
        return Dictionary(pairs.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
    }

    /// All values of a field, in order.
    func values(_ name: String) -> [String] {
        let wanted = name.lowercased()
        return fields.filter { $0.name.lowercased() == wanted }.map(\.value)
    }

    /// The value of a field that stands exactly once.
    func single(_ name: String) -> String? {
        let all = values(name)
        return all.count == 1 ? all[0] : nil
    }

    var host: String { single("Host") ?? "" }

    var expectsContinue: Bool {
        minorVersion > 0 && values("Expect").contains { $0.lowercased() == "100-continue" }
    }

    var keepsAlive: Bool {
        let options = values("Connection").flatMap { $0.split(separator: ",") }.map {
            $0.lowercased().filter { $0 != " " && $0 != "\t" }
        }
        return minorVersion > 0 ? !options.contains("close") : options.contains("keep-alive")
    }
}

/// What was received as a body.
struct Body: Sendable {
    var length = 0
    var sha256 = ""
    /// The octets themselves, if no more than the reader was asked to keep.
    var bytes: [UInt8] = []
    var trailers: [Field] = []
}

/// An answer to send.
struct Response: Sendable {
    enum Payload: Sendable {
        case bytes([UInt8])
        /// A repeated pattern of this length, so that megabytes need no memory.
        case pattern(Int, chunked: Bool)

        var length: Int {
            switch self {
            case .bytes(let bytes): bytes.count
            case .pattern(let count, _): count
            }
        }
    }

    var status: Int
    var reason: String
    var fields: [Field] = []
    var payload: Payload = .bytes([])
    /// Say `Connection: close` and mean it.
    var closes = false

    init(_ status: Int, _ reason: String, _ fields: [(String, String)] = []) {
        self.status = status
        self.reason = reason
        self.fields = fields.map { Field(name: $0.0, value: $0.1) }
    }

    static func json(_ status: Int, _ value: JSON, _ fields: [(String, String)] = []) -> Response {
        json(status, "OK", value, fields)
    }

    static func json(_ status: Int, _ reason: String, _ value: JSON, _ fields: [(String, String)] = []) -> Response {
        var response = Response(status, reason, [("Content-Type", "application/json")] + fields)
        response.payload = .bytes(value.bytes)
        return response
    }

    static func text(_ status: Int, _ reason: String, _ text: String, type: String = "text/plain") -> Response {
        var response = Response(status, reason, [("Content-Type", type)])
        response.payload = .bytes(Array(text.utf8))
        return response
    }

    /// 204 and 304 have no body whatever their fields say (RFC 9112 §6.3).
    var hasNoBody: Bool { status < 200 || status == 204 || status == 304 }
}

/// `application/x-www-form-urlencoded`.
enum Form {
    /// Nil when a percent sign is not followed by two hexadecimal digits or the result is not UTF-8.
    static func decode(_ text: some StringProtocol) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): bytes.append(0x20)
            case UInt8(ascii: "%"):
                guard rest.count >= 2, let digits = String(validating: rest.prefix(2), as: UTF8.self),
                    digits.allSatisfy(\.isHexDigit), let value = UInt8(digits, radix: 16)
                else { return nil }
                bytes.append(value)
                rest = rest.dropFirst(2)
            default: bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }

    static func parse(_ text: String) -> [(name: String, value: String)]? {
        var pairs: [(name: String, value: String)] = []
        for part in text.split(separator: "&") {
            let halves = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = decode(halves[0]), let value = decode(halves.count > 1 ? halves[1] : "") else {
                return nil
            }
            pairs.append((name, value))
        }
        return pairs
    }
}
