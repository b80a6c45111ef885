import Testing

/// The bounds that docs/security/bounds.md tells are those of the code.
@Suite struct BoundTests {
    @Test func defaultsAreThoseOfTheReference() throws {
        let pages = try Papers.pages()
        let reference = try #require(pages["docs/reference/configuration.md"]).text
        let rows = Bounds.rows(under: "key", in: try #require(pages[Bounds.path]).text)
        for row in rows {
            guard let written = Bounds.written(of: row.name, in: reference) else {
                Issue.record("\(Bounds.path): there is no key \(row.name)")
                continue
            }
            // Words stand for a default that is reckoned when the gateway starts.
            let told = row.value.hasPrefix("`") ? row.value : ""
            #expect(told == written, "\(Bounds.path): \(row.name) has the default '\(written)'")
        }
        #expect(!rows.isEmpty, "the reader of tables has found none")
    }

    @Test func constantsAreThoseOfTheCode() throws {
        let text = try #require(try Papers.pages()[Bounds.path]).text
        let files = try SourceTree.files(under: "Sources", [".swift"]).filter { $0.module != "cardea-lab" }
        let rows = Bounds.rows(under: "constant", in: text)
        for row in rows {
            let values = Bounds.values(of: row.name, in: files)
            guard let told = Bounds.number(row.value), !values.isEmpty else {
                Issue.record("\(Bounds.path): '\(row.value)' or the constant \(row.name) is no number")
                continue
            }
            // The code counts times in nanoseconds, mostly.
            let isTime = row.value.hasSuffix(" s")
            #expect(
                values.contains(told) || isTime && values.contains(told * 1_000_000_000),
                "\(Bounds.path): \(row.name) is \(values), and not \(row.value)")
        }
        #expect(!rows.isEmpty, "the reader of tables has found none")
    }
}

@Suite struct BoundReaderTests {
    @Test func tablesAreRead() {
        let text =
            "| what | bound | constant |\n|---|---|---|\n| a \\| b | 4 KiB | `A.b` |\n\n| x | y | key |\n| a | `5s` | `c.d` | z |"
        #expect(Bounds.rows(under: "constant", in: text) == [.init(value: "4 KiB", name: "A.b")])
        #expect(Bounds.rows(under: "key", in: text) == [.init(value: "`5s`", name: "c.d")])
    }

    @Test func theReferenceIsRead() {
        let text =
            "| <a id=\"a.b\"></a>`b` | `x` \\| `y` | `5s` | `b: 5s` | Words. |\n| <a id=\"a.c\"></a>`c` | text |  | | Words. |"
        #expect(Bounds.written(of: "a.b", in: text) == "`5s`")
        #expect(Bounds.written(of: "a.c", in: text) == "")
        #expect(Bounds.written(of: "a.d", in: text) == nil)
    }

    @Test(
        arguments: [
            ("64 * 1024", 65536), ("1 << 20", 1_048_576), ("10_000_000_000", 10_000_000_000), ("107", 107),
            ("a + 1", nil),
            (".seconds(3)", nil), ("1 + 1", nil),
        ] as [(String, Int?)])
    func constantsAreReckoned(text: String, value: Int?) { #expect(Bounds.value(of: text[...]) == value) }

    @Test(arguments: [
        ("64 KiB", 65536), ("2 GiB", 2 << 30), ("10 s", 10), ("4096", 4096), ("many", nil), ("4 miles", nil),
    ])
    func boundsAreRead(text: String, value: Int?) { #expect(Bounds.number(text) == value) }
}
