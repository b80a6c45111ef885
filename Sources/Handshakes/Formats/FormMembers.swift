internal import Octets

/// A body in form encoding (application/x-www-form-urlencoded).
enum FormMembers {
    /// The values of the members with a name, decoded; `+` is a blank. A percent sign without two digits stands for itself.
    static func values(of name: String, in body: [UInt8]) -> [[UInt8]] {
        body.split(separator: UInt8(ascii: "&")).compactMap { member in
            let cut = member.firstIndex(of: UInt8(ascii: "=")) ?? member.endIndex
            guard decoded(member[..<cut]).elementsEqual(name.utf8) else { return nil }
            return decoded(member[cut...].dropFirst())
        }
    }

    private static func decoded(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var index = text.startIndex
        while index < text.endIndex {
            let byte = text[index]
            index += 1
            if byte == UInt8(ascii: "%"), index + 1 < text.endIndex,
                let octet = Hexadecimal.octet(text[index], text[index + 1])
            {
                result.append(octet)
                index += 2
            } else {
                result.append(byte == UInt8(ascii: "+") ? 0x20 : byte)
            }
        }
        return result
    }
}
