import Testing

/// Each guarantee to those who have to trust the gateway has a number and a test, and a cited number means one that exists.
@Suite struct GuaranteeTests {
    @Test func everyGuaranteeHasATestThatIsThere() throws {
        let page = try #require(try Papers.pages()[Guarantees.path])
        let (all, faults) = Guarantees.read(page.text)
        for fault in faults { Issue.record("\(Guarantees.path): \(fault)") }
        var inventory = Guarantees.Inventory()
        for file in try SourceTree.files(under: "Tests", [".swift", ".py"]) { inventory.add(file) }
        for guarantee in all {
            for named in guarantee.tests {
                if let fault = inventory.fault(of: named) {
                    Issue.record("\(Guarantees.path): invariant \(guarantee.number): \(fault)")
                }
            }
        }
    }

    @Test func noNumberIsGivenToAnotherStatement() throws {
        let page = try #require(try Papers.pages()[Guarantees.path])
        let all = Guarantees.read(page.text).all
        #expect(all.count == Guarantees.statements.count, "a number came or went: Guarantees.statements has it, too")
        for (guarantee, statement) in zip(all, Guarantees.statements) where guarantee.title != statement {
            Issue.record(
                "invariant \(guarantee.number) was '\(statement)' and is '\(guarantee.title)': another takes the next number"
            )
        }
    }

    /// Citations by path are resolved by `CitationTests` and links by `PaperTests`; these are the bare words, and the words of links.
    @Test func everyCitedNumberExists() throws {
        let pages = try Papers.pages()
        let known = Set(Guarantees.read(try #require(pages[Guarantees.path]).text).all.map(\.number))
        var texts = pages.values.map { (path: $0.path, text: $0.text) }
        for folder in ["Sources", "Tests"] {
            texts += try SourceTree.files(under: folder, [".swift", ".c", ".h", ".py"])
                .filter { !Self.examples.contains($0.path) }.map { ($0.path, $0.text) }
        }
        var count = 0
        for (path, text) in texts {
            for number in Guarantees.numbers(in: text) {
                count += 1
                #expect(known.contains(number), "\(path): there is no invariant \(number)")
            }
            for fault in Guarantees.misled(in: text) { Issue.record("\(path): \(fault)") }
        }
        #expect(count > 0, "the reader of numbers has found none")
    }

    /// These show citations of every form.
    private static let examples: Set = [
        "Tests/HouseTests/CitationTests.swift", "Tests/HouseTests/Citations.swift",
        "Tests/HouseTests/GuaranteeTests.swift", "Tests/HouseTests/Guarantees.swift",
    ]
}

/// The readers are what the tests above stand on, so they are tried on texts of every form.
@Suite struct GuaranteeReaderTests {
    private static let good = """
        # Page
        <a id="invariant-1"></a>
        ## Invariant 1: one

        Words with `code`.

        `ATests`, `B/CTests` (`aCase`, `another
        case`); `test_x.py`.

        <a id="invariant-2"></a>
        ## Invariant 2: gone

        """

    @Test func whatIsWrittenIsRead() {
        let (all, faults) = Guarantees.read(Self.good)
        #expect(faults == [] && all.map(\.title) == ["one", "gone"])
        #expect(
            all.first?.tests == [
                .init(name: "ATests"), .init(name: "B/CTests", cases: ["aCase", "another case"]),
                .init(name: "test_x.py"),
            ])
    }

    @Test(arguments: [
        ("invariant-2", "invariant-1", "begin with"), ("Invariant 2: gone", "Invariant 3: gone", "begin with"),
        ("2: gone", "2: two", "no test"), ("-2\"></a>\n## Invariant 2", "-3\"></a>\n## Invariant 3", "is due"),
        ("-2\"></a>\n## Invariant 2", "-1\"></a>\n## Invariant 1", "is due"),
    ])
    func aFaultOfFormIsSeen(part: String, wrong: String, words: String) {
        let faults = Guarantees.read(Self.good.replacing(part, with: wrong)).faults
        #expect(faults.contains { $0.contains(words) }, "\(faults)")
    }

    @Test func aTestThatIsNotThereIsSeen() {
        var inventory = Guarantees.Inventory()
        for (path, text) in [
            ("A.swift", "@Suite struct ATests {\n @Test func one() {}\n @Test(x: [1]) func `a b`() {}"),
            ("B.swift", "extension ATests {\n @Test func two() {}\n func help() {}"),
            ("C.swift", "struct EmptyTests {}"), ("test_x.py", "\ndef test_one():\n    pass\n\ndef other():\n"),
        ] {
            inventory.add(.init(path: "Tests/a/\(path)", text: text))
        }
        for (name, cases, isThere) in [
            ("ATests", ["one", "two", "a b"], true), ("a/ATests", [], true), ("ATests", ["help"], false),
            ("BTests", [], false), ("EmptyTests", [], false), ("test_x.py", ["test_one"], true),
            ("test_x.py", ["other"], false), ("test_y.py", [], false),
        ] {
            #expect((inventory.fault(of: .init(name: name, cases: cases)) == nil) == isThere, "\(name) \(cases)")
        }
    }

    @Test(arguments: [
        ("invariant 4", [4]), ("[guarantees 2, 3 and 14](x#y)", [2, 3, 14]), ("Invariants 3\nand 5.", [3, 5]),
        ("an invariant of 4", []), ("guarantee 24h", []), ("the guarantees", []), ("## Invariant 7: x", [7]),
    ])
    func numbersAreRead(text: String, numbers: [Int]) { #expect(Guarantees.numbers(in: text) == numbers) }

    @Test func aLinkSaysWhereItLeads() {
        let text = "([7](g.md#invariant-7), [8](g.md#invariant-9), [words 3](g.md#invariant-4))"
        #expect(Guarantees.misled(in: text) == ["[8] leads to invariant 9"])
    }
}
