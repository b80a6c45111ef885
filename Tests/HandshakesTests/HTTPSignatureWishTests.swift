import FoundationEssentials
import TLS
import Testing

@testable import Handshakes

@Suite struct HTTPSignatureWishTests {
    private static let settings: HTTPSignatureSettings = {
        var settings = HTTPSignatureSettings()
        settings.keyID = "key"
        settings.algorithm = .ed25519
        settings.cover = [.field("x-always")]
        settings.components = [.field("content-type"), .derived(.targetURI)]
        return settings
    }()

    private func verdict(
        _ lines: String..., status: Int = 401, statuses: [Int]? = nil, settings: HTTPSignatureSettings = settings
    ) -> ChallengeVerdict {
        HTTPSignatureHandshake(settings, statuses: statuses).judge(
            UpstreamAnswer(
                status: status, fields: lines.map { (bytes("accept-Signature"), bytes($0)) }, requestURL: "u",
                requestMethod: bytes("GET")))
    }

    private func wish(_ verdict: ChallengeVerdict) -> HTTPSignatureWish? {
        guard case .nonce(let nonce, Challenge(resource: "u")) = verdict else { return nil }
        return (nonce as? HTTPSignatureRequest)?.wish
    }

    private static var malformed: [[String]] {
        get throws {
            let root = #filePath.split(separator: "/").dropLast(2).map { "/" + $0 }.joined()
            let file = root + "/Promises/malformed_accept_signatures.json"
            return try JSONDecoder().decode([[String]].self, from: Data(contentsOf: URL(filePath: file)))
        }
    }

    /// The promises hold the whole gateway to the same table.
    @Test func whatCannotBeReadIsNoWish() throws {
        let table = try Self.malformed
        #expect(table.count >= 50)
        for entry in table {
            guard case .unusable(let reason) = verdict(entry[0]) else {
                Issue.record("\(entry[0]): \(verdict(entry[0]))")
                continue
            }
            #expect(reason.contains(entry[1]), "\(entry[0]): \(reason)")
        }
    }

    @Test(arguments: [
        ("sig=()", "sig", [], nil),
        ("cardea=();nonce=\"n\"", "cardea", [], "n"),
        (
            "sig=(\"@path\" \"content-type\" \"x-always\" \"content-digest\");created;keyid=\"key\";alg=\"ed25519\"",
            "sig",
            ["content-type", "x-always", "content-digest"], nil
        ),
        // Of several the first that may be fulfilled.
        ("a=(\"date\"), b=(\"@target-uri\");nonce=\"\\\"\", c=()", "b", ["@target-uri"], "\""),
    ])
    func whatMayBeAskedFor(line: String, label: String, names: [String], nonce: String?) {
        let found = wish(verdict(line))
        #expect(found?.label == label && found?.components.map(\.name) == names && found?.nonce == nonce)
    }

    @Test(arguments: [
        ("sig=(\"date\" \"@scheme\" \"content-type\")", "asks for date, @scheme, which 'components' does not allow"),
        ("sig=();keyid=\"other\"", "asks for another key"),
        ("sig=();alg=\"hmac-sha256\"", "asks for another algorithm"),
        ("sig=();tag=\"t\"", "asks for another tag"), ("sig=();expires", "asks for 'expires'"),
    ])
    func whatMayNotBeAskedFor(line: String, reason: String) {
        guard case .unusable(let said) = verdict(line) else {
            Issue.record("\(verdict(line))")
            return
        }
        #expect(said.contains(reason), "\(said)")
    }

    /// A name of many does not fill the log.
    @Test func longListsAreCut() {
        let names = (0..<12).map { "\"x-\($0)\"" }.joined(separator: " ")
        guard case .unusable(let said) = verdict("sig=(\(names))") else { return #expect(Bool(false)) }
        #expect(said.contains("x-7, …") && !said.contains("x-8"))
    }

    /// A request is not sent again with the signature that it had: the key was refused.
    @Test func whatIsSignedAnywayIsNoWish() {
        let refused = ChallengeVerdict.challenged(Challenge(resource: "u"))
        #expect(verdict() == refused)
        #expect(verdict("cardea=(\"@method\" \"x-always\");created") == refused)
        #expect(verdict("sig=()", status: 403) == .none)
        #expect(verdict("sig=()", status: 403, statuses: [403]) == refused)
        #expect(wish(verdict("sig=()", statuses: [403])) != nil)
    }

    @Test func whatTheSettingsSayMayBeAskedFor() {
        var settings = Self.settings
        settings.tag = "t"
        settings.expires = 60
        settings.keyID = nil
        settings.algorithm = nil
        let line = "sig=();expires;tag=\"t\";keyid=\"of the key's file\";alg=\"rsa-pss-sha512\""
        #expect(wish(verdict(line, settings: settings))?.label == "sig")
    }
}
