import Testing

/// A comment that cites a page of `docs` leads there, and no comment cites what is not in the repository.
@Suite struct CitationTests {
    @Test(arguments: ["Sources", "Tests"])
    func everyCitationLeadsSomewhere(folder: String) throws {
        let pages = try Papers.pages()
        var count = 0
        for file in try SourceTree.files(under: folder, [".swift", ".c", ".h", ".py"])
        where !Self.examples.contains(file.path) {
            for target in Citations.targets(in: file.text) {
                count += 1
                if let fault = Papers.fault(of: target, in: pages) { Issue.record("\(file): \(target): \(fault)") }
            }
        }
        #expect(count > 0, "the reader of citations has found none")
    }

    @Test(arguments: ["Sources", "Tests"])
    func noCitationLeadsNowhere(folder: String) throws {
        for file in try SourceTree.files(under: folder, [".swift", ".c", ".h"]) where !Self.examples.contains(file.path)
        {
            for remark in Citations.remarks(in: file.text) {
                for stray in Citations.strays(in: remark.text) {
                    Issue.record(
                        "\(file):\(remark.line): '\(stray)' names no page; cite docs/design/PAGE.md#ANCHOR, or a standard with its number"
                    )
                }
            }
        }
    }

    /// `rule5_…` keeps a promise of docs/design/tokens.md, `wish11_…` one of docs/design/wishes.md.
    @Test func everyNumberInATestsNameHasAPlace() throws {
        let pages = try Papers.pages()
        var count = 0
        for file in try SourceTree.files(under: "Tests", [".swift"]) where !Self.examples.contains(file.path) {
            for (kind, page) in [("rule", "docs/design/tokens.md"), ("wish", "docs/design/wishes.md")] {
                for number in Citations.numbers(of: kind, in: file.text) {
                    count += 1
                    if let fault = Papers.fault(of: "\(page)#\(kind)-\(number)", in: pages) {
                        Issue.record("\(file): \(kind)\(number)_: \(fault)")
                    }
                }
            }
        }
        #expect(count > 0, "the reader of names has found none")
    }

    /// These show citations of every form.
    private static let examples: Set = ["Tests/HouseTests/CitationTests.swift", "Tests/HouseTests/Citations.swift"]
}

/// The reader of citations is what the tests above stand on, so it is tried on lines of every form.
@Suite struct CitationReaderTests {
    @Test(arguments: [
        ("/// Sent once (docs/design/tokens.md#rule-5).", ["docs/design/tokens.md#rule-5"]),
        ("// The wire: docs/design/wire/oam-oauth.md.", ["docs/design/wire/oam-oauth.md"]),
        ("// (docs/a.md#x, docs/b.md#y-1)", ["docs/a.md#x", "docs/b.md#y-1"]),
        ("// https://example.com/docs/a.md", []), ("// the folder docs/ has them", []),
    ])
    func aCitationIsSeen(line: String, targets: [String]) { #expect(Citations.targets(in: line) == targets) }

    @Test(arguments: [
        "The answer counts (§4.2).", "Rule 5: how often it was sent.", "what it obtained (rule 8)", "(design §3.3)",
        "see protocols/oam.md", "law 7 of the data path", "Lines (RFC 9112 §2.2), and others (§4)",
        "Rules 2 and 3 (docs/design/tokens.md#rule-3).", "Invariant 4: clear text",
    ])
    func aStrayIsSeen(remark: String) { #expect(!Citations.strays(in: remark).isEmpty) }

    @Test(arguments: [
        "RFC 9110 §9.2.2.", "Lines (RFC 9112 §2.2, §5.1, §5.2)", "(RFC 9112 §2.2, §3, §5, §6): CRLF only",
        "OpenID Connect Core §3.1.3.3.",
        "a time of UTC (SAML core §1.3.3)", "(CSP3 §2.3.1)", "RFC 6749 §3.1 and §3.2", "rules of one route",
        "Rule 4 (docs/design/tokens.md#rule-4)",
        "(docs/design/wire/mobilefirst.md#answer-rule-6)", "reads 2 rules", "without a law",
    ])
    func otherRemarksAreNone(remark: String) { #expect(Citations.strays(in: remark).isEmpty) }

    @Test func linesOfOneCommentAreOneRemark() {
        let text = "/// asks (RFC\n/// 7523 §3);\nlet a = 1  // one\n\n// two\n"
        #expect(
            Citations.remarks(in: text) == [
                .init(line: 1, text: "asks (RFC 7523 §3);"), .init(line: 3, text: "one"), .init(line: 5, text: "two"),
            ])
    }
}
