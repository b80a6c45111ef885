internal import Octets

/// A time as RFC 3339 writes it: `2026-11-22T02:15:00.25Z`, `2026-11-22T03:15:00+01:00`.
enum InternetTime {
    private static let longest = 40

    /// Seconds since 1970, parts of one left out; nil for anything else. XML Schema's `24:00:00` is taken for midnight.
    static func seconds(_ text: some Collection<UInt8>) -> Int64? {
        let text = Array(text)
        let pattern = Array("0000-00-00T00:00:00".utf8)
        guard text.count > pattern.count, text.count <= longest else { return nil }
        var numbers: [Int64] = [0]
        for (byte, shape) in zip(text, pattern) {
            if shape == UInt8(ascii: "0") {
                guard byte.isDigit else { return nil }
                numbers[numbers.count - 1] = numbers[numbers.count - 1] * 10 + Int64(byte & 0x0F)
            } else {
                guard byte == shape || shape == UInt8(ascii: "T") && byte == UInt8(ascii: "t") else { return nil }
                numbers.append(0)
            }
        }
        guard (1...12).contains(numbers[1]), (1...31).contains(numbers[2]), numbers[3] < 25, numbers[4] < 60,
            numbers[5] < 61, let offset = offset(text[pattern.count...])
        else { return nil }
        let (year, month) = (Int(numbers[0]), Int(numbers[1]))
        let days = CivilDate(year: year, month: month, day: Int(numbers[2])).daysSince1970
        let nextMonth = CivilDate(year: month == 12 ? year + 1 : year, month: month % 12 + 1, day: 1).daysSince1970
        guard days < nextMonth else { return nil }
        // Four digits of a year and two of all else: no sum is near the end of 64 bits.
        return Int64(days) * 86_400 + numbers[3] * 3600 + numbers[4] * 60 + numbers[5] - offset
    }

    /// Seconds that the text behind the seconds is ahead of UTC: a fraction, or none, and then `Z` or `+hh:mm`.
    private static func offset(_ text: ArraySlice<UInt8>) -> Int64? {
        var rest = text
        if rest.first == UInt8(ascii: ".") {
            let digits = rest.dropFirst().prefix(while: \.isDigit)
            guard !digits.isEmpty else { return nil }
            rest = rest[digits.endIndex...]
        }
        if rest.elementsEqual("Z".utf8) || rest.elementsEqual("z".utf8) { return 0 }
        guard let sign = rest.first, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-"), rest.count == 6 else {
            return nil
        }
        let digits = Array(rest.dropFirst())
        guard digits[2] == UInt8(ascii: ":"), [0, 1, 3, 4].allSatisfy({ digits[$0].isDigit }) else { return nil }
        func number(_ at: Int) -> Int64 { Int64(digits[at] & 0x0F) * 10 + Int64(digits[at + 1] & 0x0F) }
        guard number(0) < 24, number(3) < 60 else { return nil }
        let seconds = number(0) * 3600 + number(3) * 60
        return sign == UInt8(ascii: "-") ? -seconds : seconds
    }
}
