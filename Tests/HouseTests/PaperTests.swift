import FoundationEssentials
import Testing

/// The papers hold together: links lead somewhere, no place is named twice, and the top of the repository has what it should.
@Suite struct PaperTests {
    @Test func everyLinkLeadsSomewhere() throws {
        let pages = try Papers.pages()
        for page in pages.values {
            for link in page.links {
                let target = Self.resolved(link, from: page.path)
                if target.hasSuffix(".md") || target.contains(".md#") {
                    if let fault = Papers.fault(of: target, in: pages, isLink: true) {
                        Issue.record("\(page.path): \(link): \(fault)")
                    }
                } else {
                    #expect(
                        FileManager.default.fileExists(atPath: "\(SourceTree.root)/\(target)"),
                        "\(page.path): \(link) is not there")
                }
            }
        }
    }

    @Test func aLinkMayNameAHeadingAndACitationMayNot() {
        let page = Papers.Page(
            path: "page.md", text: "# Rule 5: sent once\n```\n# no heading\n```\n<a id=\"x\"></a>\n")
        for (place, isLink, isThere) in [
            ("rule-5-sent-once", true, true), ("rule-5-sent-once", false, false), ("x", false, true),
            ("no-heading", true, false),
        ] {
            #expect(
                (Papers.fault(of: "page.md#\(place)", in: [page.path: page], isLink: isLink) == nil) == isThere,
                "\(place)")
        }
    }

    @Test func everyPlaceHasANameOfItsOwn() throws {
        for page in try Papers.pages().values {
            let names = page.anchors
            #expect(Set(names).count == names.count, "\(page.path) names a place twice")
        }
    }

    @Test(arguments: ["docs/design/", "docs/security/"]) func everyPageIsInItsIndex(below: String) throws {
        let pages = try Papers.pages()
        for path in pages.keys.sorted() where path.hasPrefix(below) && !path.hasSuffix("/README.md") {
            let folder = path.split(separator: "/").dropLast().joined(separator: "/")
            let index = pages["\(folder)/README.md"]
            let links = (index?.links ?? []).map { Self.resolved($0, from: "\(folder)/README.md") }
            #expect(links.contains(path), "\(path) is not in \(folder)/README.md")
        }
    }

    /// Sources, tests and promises that a paper names between backquotes are there.
    @Test func everyNamedFileAndTestIsThere() throws {
        let files =
            try SourceTree.files(under: "Sources", [".swift"]) + SourceTree.files(under: "Tests", [".swift", ".py"])
        let names = Set(files.map(\.name) + (try SourceTree.files(under: "Tests", [".swift"]).map(\.module)))
        let suites = Set(files.filter { $0.path.hasPrefix("Tests/") }.flatMap { Papers.suites(in: $0.text) })
        let promises = Set(files.filter { $0.name.hasSuffix(".py") }.flatMap { Papers.functions(in: $0.text) })
        for page in try Papers.pages().values {
            for word in page.quoted {
                let last = word.split(separator: "/").last.map(String.init) ?? word
                switch true {
                case last.hasSuffix(".swift"), last.hasSuffix(".py"):
                    #expect(names.contains(last), "\(page.path): \(word) is not there")
                case last.hasPrefix("test_"):
                    #expect(promises.contains(last), "\(page.path): there is no promise \(word)")
                case last.hasSuffix("Tests") && last != "Tests":
                    #expect(suites.contains(last) || names.contains(last), "\(page.path): there is no suite \(word)")
                default: break
                }
            }
        }
    }

    /// docs/design/modules.md#top
    @Test func theTopHasNothingElse() throws {
        let expected: Set = [
            "Package.swift", "Package.resolved", "Makefile", "LICENSE", "Sources", "Tests", "config", "deploy", "docs",
        ]
        for name in try FileManager.default.contentsOfDirectory(atPath: SourceTree.root) where !name.hasPrefix(".") {
            #expect(expected.contains(name) || Papers.top.contains(name), "\(name) has no place at the top level")
        }
    }

    /// A link as it stands, from the folder of its page.
    static func resolved(_ link: String, from path: String) -> String {
        if link.hasPrefix("#") { return path + link }
        var parts = path.split(separator: "/").dropLast().map(String.init)
        for part in link.split(separator: "/") {
            switch part {
            case "..": _ = parts.popLast()
            case ".": continue
            default: parts.append(String(part))
            }
        }
        return parts.joined(separator: "/")
    }
}
