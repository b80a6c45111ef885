internal import CXML
internal import Octets

/// A small XML document that somebody else wrote, for values that a path names.
///
/// A document type is refused before the library sees the document: there are no entities but those of XML itself, and nothing is loaded.
public struct XMLDocument: Sendable {
    private struct Element: Sendable {
        let name: [UInt8]
        let parent: Int
        var attributes: [(name: [UInt8], value: [UInt8])] = []
        /// Its own text, that of its children left out.
        var text: [UInt8] = []
    }

    /// In the order of the document; the parent of the first is -1.
    private var elements: [Element] = []

    /// Bytes of a document.
    public static let largest = 64 * 1024
    private static let deepest = 32
    private static let mostElements = 4096

    /// Whether documents can be read here.
    /// - Throws: `XMLFault` where the library is missing.
    public static func requireLibrary() throws(XMLFault) { _ = try XMLLibrary.open() }

    /// Blocks the thread for as long as 64 KiB of XML take.
    /// - Throws: `XMLFault` for what is no well-formed XML in UTF-8, has a document type, or is too large or too deep; or where the library
    ///   is missing.
    public init(_ document: [UInt8]) throws(XMLFault) {
        guard document.count <= Self.largest else { throw XMLFault("XML over 64 KiB") }
        guard let first = document.first(where: { !$0.isJSONBlank }) else { throw XMLFault("an empty body") }
        guard document.isUTF8, first == UInt8(ascii: "<") || document.starts(with: [0xEF, 0xBB, 0xBF]) else {
            throw XMLFault("a body that is no XML in UTF-8")
        }
        // Looked for in the octets, so that no setting of the library decides it. In a comment or a CDATA section it is refused, too.
        guard !Self.hasDeclaration(document) else { throw XMLFault("XML with a document type, which is not read") }
        let calls = try XMLLibrary.open().calls
        try read(document, calls)
    }

    private static func hasDeclaration(_ document: [UInt8]) -> Bool {
        ["<!DOCTYPE", "<!ENTITY", "<!ELEMENT", "<!ATTLIST", "<!NOTATION"].contains { word in
            document.firstRange(of: Array(word.utf8)) != nil
        }
    }

    private mutating func read(_ document: [UInt8], _ calls: cxml_calls) throws(XMLFault) {
        // The name of the encoding overrules what the document says of itself: its octets were found to be UTF-8.
        let options = Int32(CXML_QUIET | CXML_NO_NETWORK)
        let text = document.map { CChar(bitPattern: $0) }
        let fault: XMLFault? = text.withUnsafeBufferPointer { text in
            guard let reader = calls.reader(text.baseAddress, Int32(text.count), nil, "UTF-8", options) else {
                return XMLFault("XML that cannot be read")
            }
            defer { calls.free_reader(reader) }
            do throws(XMLFault) {
                try walk(reader, calls)
                return nil
            } catch { return error }
        }
        if let fault { throw fault }
        guard !elements.isEmpty else { throw XMLFault("a body that is no XML") }
    }

    private mutating func walk(_ reader: UnsafeMutableRawPointer, _ calls: cxml_calls) throws(XMLFault) {
        var open: [Int] = []
        while true {
            switch calls.read(reader) {
            case 0: return
            case 1: break
            default: throw XMLFault("a body that is no well-formed XML")
            }
            switch Int(calls.node_type(reader)) {
            case CXML_ELEMENT:
                guard elements.count < Self.mostElements else { throw XMLFault("XML with too many elements") }
                guard open.count < Self.deepest else { throw XMLFault("XML nested too deeply") }
                let isEmpty = calls.is_empty_element(reader) == 1
                var element = Element(name: Self.octets(calls.local_name(reader)), parent: open.last ?? -1)
                while calls.next_attribute(reader) == 1 {
                    if calls.is_namespace(reader) == 1 { continue }
                    guard element.attributes.count < Self.deepest * 8 else {
                        throw XMLFault("XML with too many attributes")
                    }
                    element.attributes.append(
                        (Self.octets(calls.local_name(reader)), Self.octets(calls.value(reader))))
                }
                _ = calls.move_to_element(reader)
                elements.append(element)
                if !isEmpty { open.append(elements.count - 1) }
            case CXML_END_ELEMENT: _ = open.popLast()
            case CXML_TEXT, CXML_CDATA, CXML_SIGNIFICANT_SPACE:
                guard let last = open.last else { break }
                elements[last].text += Self.octets(calls.value(reader))
            case CXML_ENTITY_REFERENCE: throw XMLFault("XML with an entity, which is not read")
            case CXML_DOCUMENT_TYPE: throw XMLFault("XML with a document type, which is not read")
            default: break
            }
        }
    }

    private static func octets(_ text: UnsafePointer<UInt8>?) -> [UInt8] {
        guard let text else { return [] }
        var count = 0
        while text[count] != 0 { count += 1 }
        return Array(UnsafeBufferPointer(start: text, count: count))
    }
}

// MARK: - Values

extension XMLDocument {
    /// The text of the element, or the value of the attribute, blanks around it removed; nil where nothing is, or nothing but blanks.
    /// - Throws: where two are there: which of them was meant must not be a matter of luck.
    public func value(at path: XMLPath) throws(XMLFault) -> [UInt8]? {
        var found: [UInt8]?
        for index in elements.indices where isAt(index, path.elements[...]) {
            let value: [UInt8]?
            if let attribute = path.attribute {
                let named = elements[index].attributes.filter { $0.name.elementsEqual(attribute.utf8) }
                guard named.count <= 1 else { throw Self.twice }
                value = named.first?.value
            } else {
                value = elements[index].text
            }
            guard let value else { continue }
            guard found == nil else { throw Self.twice }
            found = value
        }
        guard let found else { return nil }
        let text = found.drop(while: \.isJSONBlank)
        let blanks = text.reversed().prefix(while: \.isJSONBlank).count
        return text.count == blanks ? nil : Array(text.dropLast(blanks))
    }

    private static let twice = XMLFault("XML with two values there")

    private func isAt(_ index: Int, _ names: ArraySlice<String>) -> Bool {
        guard let last = names.last else { return index == -1 }
        guard index >= 0, elements[index].name.elementsEqual(last.utf8) else { return false }
        return isAt(elements[index].parent, names.dropLast())
    }
}

extension XMLDocument: CustomStringConvertible, CustomReflectable {
    /// The number of elements alone.
    public var description: String { "XML of \(elements.count) elements" }
    /// Empty, so that `dump` prints nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
