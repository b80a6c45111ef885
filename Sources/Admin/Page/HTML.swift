/// Markup of the page: literals of this module, with what is interpolated between them.
///
/// A text that is interpolated stays a text: it is escaped, for elements and for attributes in double quotes. Markup is interpolated as
/// it is.
struct HTML: ExpressibleByStringInterpolation, Sendable {
    /// The markup as a document has it.
    let source: String

    /// The type admits no text that was put together at run time.
    init(stringLiteral literal: StaticString) { source = "\(literal)" }

    /// A file of this module.
    init(embedded file: [UInt8]) { source = String(decoding: file, as: UTF8.self) }

    init(stringInterpolation interpolation: StringInterpolation) { source = interpolation.source }

    struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var source = ""

        init(literalCapacity: Int, interpolationCount: Int) { source.reserveCapacity(2 * literalCapacity) }

        mutating func appendLiteral(_ literal: StaticString) { source += "\(literal)" }
        mutating func appendInterpolation(_ text: String) { source += HTML.escaped(text) }
        mutating func appendInterpolation(_ number: Int) { source += "\(number)" }
        mutating func appendInterpolation(_ markup: HTML?) { source += markup?.source ?? "" }
        mutating func appendInterpolation(_ parts: [HTML]) { for part in parts { source += part.source } }
    }

    /// Also what HTML forbids in text (control characters, noncharacters), and what would turn the direction of the text after it.
    static func escaped(_ value: String) -> String {
        var result = ""
        result.reserveCapacity(value.utf8.count)
        for scalar in value.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "'": result += "&#39;"
            case "\n", "\t": result += " "
            default: result.unicodeScalars.append(isForbidden(scalar.value) ? "\u{FFFD}" : scalar)
            }
        }
        return result
    }

    private static func isForbidden(_ scalar: UInt32) -> Bool {
        switch scalar {
        case 0x00...0x1F, 0x7F...0x9F, 0x202A...0x202E, 0x2066...0x2069, 0x200E, 0x200F, 0xFDD0...0xFDEF: true
        default: scalar & 0xFFFE == 0xFFFE
        }
    }
}
