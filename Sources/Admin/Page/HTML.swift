/// HTML in the making. Text goes in by `text` and `attribute` only, which escape; markup is literals of this module.
struct HTML {
    private(set) var source = ""

    /// Markup of ours: the type admits no text that was put together at run time.
    mutating func markup(_ literal: StaticString) {
        literal.withUTF8Buffer { source += String(decoding: $0, as: UTF8.self) }
    }

    mutating func text(_ value: String) { source += Self.escaped(value) }

    /// ` name="value"`.
    mutating func attribute(_ name: StaticString, _ value: String) {
        markup(" ")
        markup(name)
        markup("=\"")
        text(value)
        markup("\"")
    }

    /// An element that holds text alone.
    mutating func element(_ name: StaticString, class style: String? = nil, _ value: String) {
        markup("<")
        markup(name)
        if let style { attribute("class", style) }
        markup(">")
        text(value)
        markup("</")
        markup(name)
        markup(">")
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
            default:
                switch scalar.value {
                case 0x00...0x1F, 0x7F...0x9F, 0x202A...0x202E, 0x2066...0x2069, 0x200E, 0x200F, 0xFDD0...0xFDEF:
                    result += "\u{FFFD}"
                default:
                    if scalar.value & 0xFFFE == 0xFFFE {
                        result += "\u{FFFD}"
                    } else {
                        result.unicodeScalars.append(scalar)
                    }
                }
            }
        }
        return result
    }
}
