internal import Configuration
internal import Octets

/// A part of a request that a signature covers, by the name that the signature gives it (RFC 9421 §2).
enum HTTPSignatureComponent: Sendable, Hashable {
    /// A part that is no field (RFC 9421 §2.2).
    enum Derived: String, CaseIterable, Sendable {
        case method = "@method"
        case authority = "@authority"
        case path = "@path"
        case query = "@query"
        case scheme = "@scheme"
        case targetURI = "@target-uri"
    }

    case derived(Derived)
    /// All lines of the field of this name, which is in lower case.
    case field(String)

    static let contentDigest = HTTPSignatureComponent.field("content-digest")

    /// Covered by every signature.
    static let minimum: [HTTPSignatureComponent] = [
        .derived(.method), .derived(.authority), .derived(.path), .derived(.query),
    ]

    static let longestName = 64

    /// - Returns: nil for what is no component of a request, or cannot be covered.
    init?(_ name: String) {
        if name.hasPrefix("@") {
            guard let derived = Derived(rawValue: name) else { return nil }
            self = .derived(derived)
            return
        }
        guard (1...Self.longestName).contains(name.utf8.count), name == name.lowercased(),
            name.utf8.allSatisfy(\.isTokenCharacter), !Self.isOfConnection(name)
        else { return nil }
        self = .field(name)
    }

    var name: String {
        switch self {
        case .derived(let derived): derived.rawValue
        case .field(let name): name
        }
    }

    /// Fields that the next server does not see as they were sent, and those that hold the signature.
    private static func isOfConnection(_ name: String) -> Bool {
        ["signature", "signature-input"].contains(name) || name != "content-length" && ReservedHeader.contains(name)
    }
}

/// The values of a request's components.
struct HTTPSignatureMessage {
    private let method: String
    private let scheme: String
    private let authority: String
    private let path: ArraySlice<UInt8>
    /// With its question mark; nil where the target has none.
    private let query: ArraySlice<UInt8>?
    private let fields: [(name: String, value: String)]

    /// - Parameter contentDigest: the value that the request will have; nil for none.
    /// - Throws: where the request has a target that is no path.
    init(_ request: RequestToSign, contentDigest: [UInt8]?) throws(SigningFault) {
        method = request.method
        scheme = request.url.hasPrefix("https:") ? "https" : "http"
        authority = request.headers.first { $0.name.utf8.matches("host") }?.value ?? ""
        let target = request.originForm
        let cut = target.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex
        path = target[..<cut]
        query = cut < target.endIndex ? target[cut...] : nil
        guard path.first ?? UInt8(ascii: "/") == UInt8(ascii: "/") else {
            throw SigningFault("its target is no path", isCallers: true)
        }
        let digest = contentDigest.map { [("content-digest", String(decoding: $0, as: UTF8.self))] } ?? []
        fields = request.headers + digest
    }

    /// - Returns: nil where the request has no such field.
    /// - Throws: where its value cannot stand in a signature base (RFC 9421 §2.5).
    func value(of component: HTTPSignatureComponent) throws(SigningFault) -> [UInt8]? {
        guard let value = octets(of: component) else { return nil }
        guard value.allSatisfy({ (0x20...0x7E).contains($0) || $0 == 0x09 }) else {
            throw SigningFault(
                "'\(component.name)', which is signed, has octets that are no printable ASCII", isCallers: true)
        }
        return value
    }

    private func octets(of component: HTTPSignatureComponent) -> [UInt8]? {
        switch component {
        case .derived(.method): Array(method.utf8)
        case .derived(.authority): Array(normalAuthority.utf8)
        case .derived(.path): path.isEmpty ? [UInt8(ascii: "/")] : Array(path)
        case .derived(.query): query.map { Array($0) } ?? [UInt8(ascii: "?")]
        case .derived(.scheme): Array(scheme.utf8)
        case .derived(.targetURI):
            Array("\(scheme)://\(authority)".utf8) + (path.isEmpty ? [UInt8(ascii: "/")] : path) + (query ?? [])
        case .field(let name): values(of: name)
        }
    }

    /// In lower case and without the scheme's own port (RFC 9421 §2.2.3).
    private var normalAuthority: String {
        let authority = authority.lowercased()
        let port = scheme == "https" ? ":443" : ":80"
        return authority.hasSuffix(port) ? String(authority.dropLast(port.utf8.count)) : authority
    }

    /// The lines of one name are one value (RFC 9421 §2.1).
    private func values(of name: String) -> [UInt8]? {
        let values = fields.filter { $0.name.utf8.matches(name) }.map { field in
            var value = Array(field.value.utf8)[...]
            while value.last?.isBlank == true { value.removeLast() }
            return value.drop(while: \.isBlank)
        }
        return values.isEmpty ? nil : Array(values.joined(separator: Array(", ".utf8)))
    }
}
