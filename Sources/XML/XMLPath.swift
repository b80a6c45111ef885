internal import Octets

/// A place in an XML document: `/Envelope/Body/Token`, or an attribute at its end, `/Answer/@id`. Names are without prefixes; of which namespace
/// they are is not asked.
public struct XMLPath: Sendable, Hashable, CustomStringConvertible {
    /// From the outermost.
    public let elements: [String]
    /// nil: the element's text.
    public let attribute: String?

    private static let deepest = 32

    /// - Returns: nil for anything else.
    public init?(_ text: String) {
        guard text.utf8.first == UInt8(ascii: "/"), text.utf8.count <= 1024 else { return nil }
        var names = text.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        var attribute: String?
        if let last = names.last, last.hasPrefix("@") {
            attribute = String(last.dropFirst())
            names.removeLast()
        }
        guard (1...Self.deepest).contains(names.count), (names + [attribute].compactMap(\.self)).allSatisfy(Self.isName)
        else { return nil }
        elements = names
        self.attribute = attribute
    }

    /// A name without a colon (Namespaces in XML, section 3), beyond ASCII not looked at closely.
    private static func isName(_ text: String) -> Bool {
        guard let first = text.utf8.first, first.isLetter || first == UInt8(ascii: "_") || first >= 0x80 else {
            return false
        }
        return text.utf8.allSatisfy { $0.isHostNameCharacter || $0 >= 0x80 }
    }

    /// The text as a configuration has it.
    public var description: String {
        "/" + (elements + [attribute.map { "@\($0)" }].compactMap(\.self)).joined(separator: "/")
    }
}
