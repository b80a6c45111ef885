internal import Numbers
internal import Octets

extension IssuerAnswer {
    /// The longest pause that an issuer may impose, in seconds.
    static let longestPause = 300

    /// Seconds to wait by `Retry-After` (RFC 9110 §10.2.3), 0–300; nil if absent or unreadable.
    ///
    /// A date counts from the answer's own `Date`: both come from the issuer's clock, so its skew cancels out and no clock of ours
    /// is needed.
    public var retryAfter: Int? {
        guard let text = header("retry-after") else { return nil }
        let bytes = text.utf8.drop(while: \.isBlank)
        let digits = bytes.prefix(while: \.isDigit)
        if !digits.isEmpty, bytes.dropFirst(digits.count).allSatisfy(\.isBlank) {
            return ReceivedNumber(decimal: digits)?.clamped(to: 0...Self.longestPause)
        }
        guard let until = HTTPDate.seconds(text), let date = header("date"), let sent = HTTPDate.seconds(date) else {
            return nil
        }
        return Swift.min(Swift.max(until - sent, 0), Self.longestPause)
    }
}

extension IssuerAnswer {
    /// The failure of an answer that asks to come again later (408, 425, 429, 5xx).
    func unavailable(_ reason: String) -> GrantFailure {
        .issuerUnavailable(retryAfterSeconds: retryAfter, reason: reason)
    }

    /// The JSON object in the body, without which the step fails.
    func object(_ step: String) throws(GrantFailure) -> AnswerObject {
        do throws(AnswerObject.Fault) { return try AnswerObject(body) } catch {
            throw .issuerAnswerInvalid(reason: "\(step): \(error.rawValue)")
        }
    }
}

extension IssuerAnswer {
    /// The issuer's own clock when it answered, in seconds since 1970; nil if it does not say, or not over TLS, where anybody could.
    public var issuerTime: Int64? {
        overTLS ? date : nil
    }

    /// The same, whoever may have said it: for spans between two moments of one answer.
    var date: Int64? { header("date").flatMap { HTTPDate.seconds($0) }.map { Int64($0) } }
}

/// The three date forms of RFC 9110 §5.6.7.
enum HTTPDate {
    /// Seconds since 1970; nil if the text is none of the forms.
    static func seconds(_ text: String) -> Int? {
        guard text.utf8.count <= 40 else { return nil }
        let words = text.split { " ,-".contains($0) }.map(String.init)
        switch words.count {
        // Sun, 06 Nov 1994 08:49:37 GMT · Sunday, 06-Nov-94 08:49:37 GMT
        case 6 where words[5] == "GMT":
            guard let day = number(words[1]), let month = month(words[2]), var year = number(words[3]) else {
                return nil
            }
            // A two-digit year is in this century as far as a pause of minutes can tell.
            if words[3].utf8.count == 2 { year += 2000 }
            return instant(year, month, day, words[4])
        // Sun Nov  6 08:49:37 1994
        case 5:
            guard let month = month(words[1]), let day = number(words[2]), let year = number(words[4]) else {
                return nil
            }
            return instant(year, month, day, words[3])
        default: return nil
        }
    }

    private static func instant(_ year: Int, _ month: Int, _ day: Int, _ time: String) -> Int? {
        let parts = time.split(separator: ":", omittingEmptySubsequences: false).map { number(String($0)) }
        guard parts.count == 3, let hour = parts[0], let minute = parts[1], let second = parts[2],
            (1970...9999).contains(year), (1...31).contains(day), hour < 24, minute < 60, second <= 60
        else { return nil }
        let days = CivilDate(year: year, month: month, day: day).daysSince1970
        return ((days * 24 + hour) * 60 + minute) * 60 + second
    }

    private static func number(_ text: String) -> Int? {
        (1...4).contains(text.utf8.count) ? ReceivedNumber(text)?.within(0...9999) : nil
    }

    private static func month(_ text: String) -> Int? {
        let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        return names.firstIndex(of: text).map { $0 + 1 }
    }
}
