import Octets
import Testing

@testable import HTTP1

@Suite struct ConfinedPlaceholderTests {
    static let token = "\(Placeholder.confined)0123456789abcdef0123456789abcdef"

    private func edits(_ place: CredentialPlace = .header, named name: String = "") -> RequestEdits {
        var edits = RequestEdits()
        edits.place = place
        edits.placeName = octets(name)
        return edits
    }

    /// Each part that was found, decoded, with a `+` before it where the credential replaces it.
    private func parts(_ lines: String, _ edits: RequestEdits, target: String = "/") throws -> [String] {
        let bytes = octets("GET \(target) HTTP/1.1\r\nHost: h\r\n\(lines)\r\n")
        let head = try parsedRequest(bytes)
        return head.placeholderParts(in: bytes.span, edits, fields: [octets("authorization"), octets("x-date")]).map {
            ($0.isReplaced ? "+" : "") + (text(bytes, $0.field) ?? "") + ":" + text(bytes.span.decoded($0))
        }
    }

    @Test func aHeadWithoutOneHasNoParts() throws {
        let lines = "Authorization: Basic \(Base64.encode(octets("u:p")))\r\nX: cardea-confine-\r\nCookie: a=b\r\n"
        #expect(try parts(lines, edits(), target: "/p?q=cardea-confined").isEmpty)
    }

    @Test func theFieldsOfTheCredentialReplaceIt() throws {
        #expect(
            try parts("AUTHORIZATION: Bearer \(Self.token)\r\n", edits()) == ["+AUTHORIZATION:Bearer \(Self.token)"])
        #expect(
            try parts("X-Date: \(Self.token)\r\nX-Other: a\(Self.token)\r\n", edits()) == [
                "+X-Date:\(Self.token)", "X-Other:a\(Self.token)",
            ])
        var renamed = edits()
        renamed.renamed = octets("authorization")
        #expect(try parts("Authorization: \(Self.token)\r\n", renamed) == ["Authorization:\(Self.token)"])
    }

    @Test(arguments: ["u:\(token)", "\(token):x", "uv:\(token)", "uvw:\(token)", "\(token)"])
    func basicIsLookedInto(credentials: String) throws {
        let encoded = Base64.encode(octets(credentials))
        #expect(try parts("Authorization: bAsic  \(encoded)\r\n", edits()) == ["+Authorization:\(credentials)"])
        #expect(try parts("X: Basic \(encoded)\r\n", edits()) == ["X:\(credentials)"])
        #expect(try parts("X: Basic\t \(encoded)\r\n", edits()) == ["X:\(credentials)"])
        #expect(try parts("X: Other \(encoded)\r\n", edits()).isEmpty)
    }

    @Test func methodAndNamesAreLookedInto() throws {
        let bytes = octets("\(Self.token) / HTTP/1.1\r\nHost: h\r\nX-\(Self.token): 1\r\n\r\n")
        let parts = try parsedRequest(bytes).placeholderParts(in: bytes.span, edits(), fields: [])
        #expect(parts.map(\.place) == [.method, .name])
        #expect(!parts.contains { $0.isReplaced })
    }

    @Test func parametersAndCookiesAreTakenApart() throws {
        let encoded = Self.token.replacing("-", with: "%2d")
        let target = "/p?key=\(Self.token)&a=1;b=\(encoded)&k%65y=\(encoded)"
        #expect(
            try parts("", edits(.query, named: "key"), target: target) == [
                "+:key=\(Self.token)", ":b=\(Self.token)", "+:key=\(Self.token)",
            ])
        #expect(try parts("", edits(.query, named: "key"), target: "/\(Self.token)?a") == [":/\(Self.token)"])
        let cookies = "Cookie: a=1; key=\(Self.token); b=\(Self.token)\r\n"
        #expect(
            try parts(cookies, edits(.cookie, named: "key")) == [
                "+Cookie:key=\(Self.token)", "Cookie:b=\(Self.token)",
            ])
        #expect(try parts(cookies, edits()).count == 2)
    }
}
