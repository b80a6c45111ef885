/// A header line, its value as received except for the white space around it. Octets above 0x7F are read as Latin-1.
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
    var framing = Framing.none
    /// Octets of the body, where the site reads it before it looks for who answers.
    var body: [UInt8] = []

    var path: String { String(target.prefix { $0 != "?" }) }

    /// Query parameters, form-decoded; the first of a name wins.
    var query: [String: String] {
        let pairs = Form.parse(target.drop { $0 != "?" }.dropFirst()) ?? []
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

    /// The credential behind the scheme in the one `Authorization` field. Scheme names differ in no case (RFC 9110 §11.1), but some servers
    /// compare octets, so the lab does.
    func credential(_ scheme: String) -> String? {
        guard let value = single("Authorization"), value.hasPrefix(scheme + " ") else { return nil }
        return String(value.dropFirst(scheme.count + 1))
    }

    /// User and password (RFC 7617).
    var basic: (user: String, password: String)? {
        guard let text = credential("Basic").flatMap(Base64.decodeText), let colon = text.firstIndex(of: ":") else {
            return nil
        }
        return (String(text[..<colon]), String(text[text.index(after: colon)...]))
    }
}

/// The received body.
struct Body: Sendable {
    var length = 0
    var sha256: [UInt8] = []
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

    init(_ status: Int = 200) {
        self.status = status
        reason = Self.reasons[status] ?? "Status"
    }

    private static let reasons = [
        200: "OK", 201: "Created", 204: "No Content", 302: "Found", 400: "Bad Request", 401: "Unauthorized",
        403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 409: "Conflict", 429: "Too Many Requests",
    ]

    static func json(_ value: JSON, _ status: Int = 200) -> Response {
        bytes(value.bytes, "application/json", status)
    }

    static func text(_ text: String, _ status: Int = 200) -> Response { bytes(Array(text.utf8), "text/plain", status) }

    static func html(_ text: String, _ status: Int = 200) -> Response { bytes(Array(text.utf8), "text/html", status) }

    static func redirect(to location: String) -> Response { Response(302).with("Location", location) }

    static func pattern(_ count: Int, chunked: Bool, type: String) -> Response {
        var response = Response(200).with("Content-Type", type)
        response.payload = .pattern(count, chunked: chunked)
        return response
    }

    private static func bytes(_ bytes: [UInt8], _ type: String, _ status: Int) -> Response {
        var response = Response(status).with("Content-Type", type)
        response.payload = .bytes(bytes)
        return response
    }

    func with(_ name: String, _ value: String) -> Response {
        var copy = self
        copy.fields.append(Field(name: name, value: value))
        return copy
    }

    func with(status: Int) -> Response {
        var copy = self
        copy.status = status
        copy.reason = Self.reasons[status] ?? "Status"
        return copy
    }

    /// 204 and 304 have no body whatever their fields say (RFC 9112 §6.3).
    var hasNoBody: Bool { status < 200 || status == 204 || status == 304 }
}
