import Testing

@testable import Configuration

/// Each sign of a pattern stands for exactly its bytes, out of all 256.
@Suite struct PatternClassTests {
    private func taken(_ pattern: String) throws -> [UInt8] {
        let pattern = try Pattern(pattern)
        return (UInt8.min...UInt8.max).filter { pattern.firstGroup(in: [$0]) == 0..<1 }
    }

    private static let digits = Array("0123456789".utf8)
    private static let words = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz".utf8)
    private static let blanks = Array("\t\n\u{0B}\u{0C}\r ".utf8)

    private static func others(_ bytes: [UInt8]) -> [UInt8] { (UInt8.min...UInt8.max).filter { !bytes.contains($0) } }

    static let classes: [(text: String, bytes: [UInt8])] = [
        ("\\d", digits), ("\\D", others(digits)), ("\\w", words), ("\\W", others(words)), ("\\s", blanks),
        ("\\S", others(blanks)), (".", others([0x0A])), ("[\\d_]", digits + [0x5F]), ("[^\\w]", others(words)),
        ("[\\D]", others(digits)), ("[^\\S]", blanks), ("[\\d\\s]", blanks + digits),
        ("[\\x00-\\x7f]", Array(0...0x7F)), ("[\\x80-\\xff]", Array(0x80...0xFF)),
        ("[^\\x00-\\x7f]", Array(0x80...0xFF)), ("[\\x7f-\\x80]", [0x7F, 0x80]), ("[b-d]", Array("bcd".utf8)),
        ("[b-b]", Array("b".utf8)), ("[b-cx-y]", Array("bcxy".utf8)), ("[-b]", Array("-b".utf8)),
        ("[b-]", Array("-b".utf8)), ("[\\d-]", Array("-".utf8) + digits), ("[+--]", Array("+,-".utf8)),
        ("[b\\-d]", Array("-bd".utf8)), ("[*?.(){}|$+]", Array("$()*+.?{|}".utf8)), ("[b^]", Array("^b".utf8)),
        ("[^^]", others(Array("^".utf8))), ("[\\^]", Array("^".utf8)), ("[\\]\\[]", Array("[]".utf8)),
    ]

    @Test(arguments: classes)
    func aClassHasItsBytesAndNoOthers(text: String, bytes: [UInt8]) throws {
        #expect(try taken("(\(text))") == bytes)
    }

    @Test(arguments: UInt8.min...UInt8.max)
    func aByteInHexadecimalIsItselfAlone(byte: UInt8) throws {
        let digits = String(byte, radix: 16)
        let text = "\\x" + (digits.count < 2 ? "0" : "") + digits
        for pattern in ["(\(text))", "([\(text)])", "(\(text.uppercased().replacing("\\X", with: "\\x")))"] {
            #expect(try taken(pattern) == [byte], "\(pattern)")
        }
        #expect(try taken("([^\(text)])") == Self.others([byte]))
    }

    /// Letters and digits behind a backslash have a meaning or are refused; any other visible sign there is itself.
    @Test(arguments: UInt8.min...0x7F)
    func aSignBehindABackslashIsItselfUnlessItHasAMeaning(byte: UInt8) throws {
        let sign = String(Character(Unicode.Scalar(byte)))
        let named: [String: UInt8] = ["t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D]
        for pattern in ["(\\\(sign))", "([\\\(sign)])"] {
            if "dDwWsS".contains(sign) {
                #expect(throws: Never.self) { try Pattern(pattern) }
            } else if let meant = named[sign] {
                #expect(try taken(pattern) == [meant])
            } else if (0x20...0x7E).contains(byte), !byte.isLetterOrDigitOfASCII {
                #expect(try taken(pattern) == [byte])
            } else {
                #expect(throws: Pattern.Fault.self) { try Pattern(pattern) }
            }
        }
    }

    @Test func signsWithoutAMeaningStandForThemselves() throws {
        for byte in UInt8(0)...0x7F where !"^$.|()[]{}*+?\\".utf8.contains(byte) {
            #expect(try taken("(\(Character(Unicode.Scalar(byte))))") == [byte])
        }
    }
}

extension UInt8 {
    fileprivate var isLetterOrDigitOfASCII: Bool {
        let sign = Character(Unicode.Scalar(self))
        return sign.isLetter || sign.isNumber
    }
}
