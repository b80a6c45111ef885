internal import Octets
internal import TLS

/// The signature that a server asks for by `Accept-Signature` (RFC 9421 §5.1), as far as it may.
struct HTTPSignatureWish: Sendable, Equatable {
    var label: String
    /// Covered beside those that every signature covers.
    var components: [HTTPSignatureComponent]
    var nonce: String?

    static let longestNonce = 1024
}

/// The wish of the answer to one request, which the same request fulfils when it is sent again. No other request does.
final class HTTPSignatureRequest: ServerNonce, @unchecked Sendable {
    let wish: HTTPSignatureWish

    init(_ wish: HTTPSignatureWish) {
        self.wish = wish
        super.init(isStale: false)
    }
}

extension HTTPSignatureSettings {
    /// The meaning of the `Accept-Signature` of a refusal.
    enum Asked: Equatable {
        /// There is none, or it asks for nothing but what the request was sent with.
        case nothing
        case wish(HTTPSignatureWish)
        /// The reason is safe text: names of components and parameters have the letters of such names alone.
        case unusable(reason: String)
    }

    /// - Parameter lines: the value of each `Accept-Signature`.
    func asked(_ lines: [[UInt8]]) -> Asked {
        guard !lines.isEmpty else { return .nothing }
        let members: [StructuredDictionary.Member]
        do throws(StructuredDictionary.Fault) { members = try StructuredDictionary(lines).members } catch {
            return .unusable(reason: "Accept-Signature: \(error.rawValue)")
        }
        guard !members.isEmpty else { return .unusable(reason: "Accept-Signature: it asks for nothing") }
        var complaint: String?
        var isSent = false
        for member in members {
            // The first that may be fulfilled, and was not yet, counts.
            do throws(Complaint) {
                let asked = try asked(member)
                guard asked == .nothing else { return asked }
                isSent = true
            } catch { complaint = complaint ?? error.reason }
        }
        if isSent { return .nothing }
        return .unusable(reason: "Accept-Signature \(complaint ?? "asks for nothing")")
    }

    private struct Complaint: Error {
        var reason: String
        init(_ reason: String) { self.reason = reason }
    }

    private func asked(_ member: StructuredDictionary.Member) throws(Complaint) -> Asked {
        guard case .list(let items, let parameters) = member.value else {
            throw Complaint("has a member that lists no components")
        }
        var wish = HTTPSignatureWish(label: member.key, components: try components(items))
        for parameter in parameters { try take(parameter, into: &wish) }
        let isSent = wish.components.allSatisfy { cover.contains($0) } && wish.nonce == nil && wish.label == label
        return isSent ? .nothing : .wish(wish)
    }

    /// The components that a signature has not covered anyway: the minimum is left out.
    private func components(_ items: [StructuredItem]) throws(Complaint) -> [HTTPSignatureComponent] {
        var asked: [HTTPSignatureComponent] = []
        var refused: [String] = []
        for item in items {
            guard case .string(let name) = item.value else { throw Complaint("has a component that is no string") }
            guard let component = HTTPSignatureComponent(name) else {
                let isName = name.utf8.count <= HTTPSignatureComponent.longestName && name.isComponentName
                throw Complaint("asks for \(isName ? "'\(name)', " : "a component ")which is not signed here")
            }
            guard item.parameters.isEmpty else {
                throw Complaint("asks for '\(name)' with a parameter, which is not signed here")
            }
            guard !asked.contains(component) else { throw Complaint("asks for '\(name)' twice") }
            asked.append(component)
            if !mayCover(component) { refused.append(name) }
        }
        guard refused.isEmpty else {
            let names = refused.prefix(8).joined(separator: ", ") + (refused.count > 8 ? ", …" : "")
            throw Complaint("asks for \(names), which 'components' does not allow")
        }
        return asked.filter { !HTTPSignatureComponent.minimum.contains($0) }
    }

    private func mayCover(_ component: HTTPSignatureComponent) -> Bool {
        HTTPSignatureComponent.minimum.contains(component) || component == .contentDigest || cover.contains(component)
            || components.contains(component)
    }

    /// A parameter either says of the signature what it is anyway, or is the nonce.
    private func take(_ parameter: StructuredParameter, into wish: inout HTTPSignatureWish) throws(Complaint) {
        switch (parameter.key, parameter.value) {
        case ("created", .boolean(true)): break
        case ("expires", .boolean(true)):
            if expires == nil { throw Complaint("asks for 'expires', which the identity does not set") }
        case ("nonce", .string(let nonce)):
            guard (1...HTTPSignatureWish.longestNonce).contains(nonce.utf8.count) else {
                throw Complaint("has a nonce that is empty, or longer than \(HTTPSignatureWish.longestNonce) bytes")
            }
            wish.nonce = nonce
        // A server chooses neither key nor algorithm.
        case ("keyid", .string(let id)):
            if let keyID, id != keyID { throw Complaint("asks for another key") }
        case ("alg", .string(let word)):
            if let known = isShared ? .hmac : algorithm, word != known.rawValue {
                throw Complaint("asks for another algorithm")
            }
        case ("tag", .string(let word)):
            if word != tag { throw Complaint("asks for another tag") }
        case ("created", _), ("expires", _), ("nonce", _), ("keyid", _), ("alg", _), ("tag", _):
            throw Complaint("has a '\(parameter.key)' of the wrong type")
        default: throw Complaint("asks for the parameter '\(parameter.key)', which is not known here")
        }
    }
}

extension String {
    fileprivate var isComponentName: Bool {
        !isEmpty && utf8.allSatisfy { $0.isTokenCharacter || $0 == UInt8(ascii: "@") }
    }
}
