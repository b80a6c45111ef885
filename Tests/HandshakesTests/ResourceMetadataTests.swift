import Testing

@testable import Handshakes

@Suite struct ResourceMetadataTests {
    struct Case: Sendable {
        var resource: String
        var url: String
        var request: String
        var isIts: Bool
        init(_ resource: String, at url: String, for request: String, _ isIts: Bool) {
            (self.resource, self.url, self.request, self.isIts) = (resource, url, request, isIts)
        }
    }

    static let known = "https://a.example/.well-known/oauth-protected-resource"

    static let cases = [
        Case("https://a.example", at: known, for: "https://a.example/x", true),
        Case("https://a.example/", at: known, for: "https://a.example/", true),
        Case("https://a.example:443", at: known, for: "https://a.example/x?y", true),
        Case("https://a.example/x", at: known + "/x", for: "https://a.example/x/y", true),
        Case("https://a.example/x", at: known + "/x", for: "https://a.example/x?y=/z", true),
        Case("https://a.example/x?q", at: known + "/x?q", for: "https://a.example/x?q", true),
        Case("https://a.example/any?q=1", at: "https://a.example/m", for: "https://a.example/any?q=1", true),
        Case("https://a.example/x", at: known + "/x", for: "https://a.example/xy", false),
        Case("https://a.example/x", at: known + "/x", for: "https://a.example/", false),
        Case("https://a.example/x/", at: known + "/x/", for: "https://a.example/x", false),
        Case("https://a.example/x?q", at: known + "/x?q", for: "https://a.example/x/y?q", false),
        Case("https://a.example/x", at: known, for: "https://a.example/x/y", false),
        Case("https://a.example/x", at: "https://a.example/m", for: "https://a.example/x/y", false),
        Case("https://b.example/", at: known, for: "https://a.example/", false),
        Case("http://a.example/", at: known, for: "https://a.example/x", false),
        Case("https://a.example/#x", at: known, for: "https://a.example/", false),
        Case("", at: known, for: "https://a.example/", false),
    ]

    @Test(arguments: cases) func describesWhatWasAskedFor(example: Case) throws {
        let metadata = ResourceMetadata(resource: example.resource, issuers: [])
        let url = try #require(IssuerURL(example.url))
        #expect(metadata.describes(example.request, readAt: url) == example.isIts)
    }

    @Test func standsAtTheUpstreamAlone() throws {
        let origin = "https://a.example"
        #expect(try ResourceMetadata.url("HTTPS://A.example:443/m?x", origin: origin).path == "/m?x")
        for text in [
            "http://a.example/m", "https://a.example:444/m", "https://b.example/m", "https://a.example.b.example/m",
            "https://a.example@b.example/m", "https://a.example/m#x", "/m", "//a.example/m", "", "javascript:x",
            "https://a.example/../m", "https://a.example/\u{0A}",
        ] {
            #expect(throws: ResourceMetadataFault.self, "\(text)") {
                try ResourceMetadata.url(text, origin: origin)
            }
        }
    }

    @Test func onlyTextsAreIssuersAndOnlySoMany() throws {
        let long = String(repeating: "x", count: 600)
        let many = (0..<40).map { "\"https://\($0).example\"" }.joined(separator: ",")
        let metadata = try ResourceMetadata(
            Array("{\"resource\":\"r\",\"authorization_servers\":[1,null,[],\"\(long)\",\"a\",\(many)]}".utf8))
        #expect(metadata.issuers.first == "a" && metadata.issuers.count == 12 && metadata.resource == "r")
        for body in ["", "[]", "{}", "{\"resource\":\"r\"}", "{\"resource\":1,\"authorization_servers\":[]}", "<x>"] {
            #expect(throws: ResourceMetadataFault.self, "\(body)") { try ResourceMetadata(Array(body.utf8)) }
        }
    }
}
