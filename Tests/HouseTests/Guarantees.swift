/// The guarantees of docs/security/guarantees.md: what each number says, and the tests that hold it.
enum Guarantees {
    static let path = "docs/security/guarantees.md"

    struct Guarantee: Equatable {
        var number: Int
        var title: String
        var tests: [Named]
    }

    /// A suite or a page of promises, with those of its tests that stand behind it in brackets.
    struct Named: Equatable {
        var name: String
        var cases: [String] = []
    }

    /// The statement that each number was given to, from 1. A number is never given to another one: where a statement only got better words,
    /// they change here and in the page; where it goes, both say "gone".
    static let statements = [
        "one credential, and it is ours", "a token goes to its upstream alone", "issuers come from the configuration",
        "clear text has to be asked for", "who may call is said", "TLS 1.2 or better, names verified",
        "secrets are references", "secrets are told nowhere", "ambiguity is refused", "a path has one meaning",
        "web pages are no callers", "a claimed address is a claim", "a proxy gives credentials to routes alone",
        "received data chooses no place", "no echo and no index", "the process gives up what it does not need",
        "a connection that a caller authenticated is that caller's", "a received number has no arithmetic",
        "no account is locked by us", "users are kept apart", "a placeholder opens nothing",
        "all that is received has a bound", "what changes something asks who you are", "a stolen store tells little",
        "the shared server forges nothing", "a refresh token is spent once", "an audit log shows its changes",
        "a confined program holds no secret",
        "a concealed credential does not come back",
    ]

    /// - Returns: the guarantees in the page's order, and what is wrong with its form.
    static func read(_ text: String) -> (all: [Guarantee], faults: [String]) {
        var all: [Guarantee] = []
        var faults: [String] = []
        for part in text.split(separator: "<a id=\"invariant-", omittingEmptySubsequences: false).dropFirst() {
            let number = Int(part.prefix { $0.isNumber }) ?? 0
            let lines = part.split(separator: "\n")
            let mark = "## Invariant \(number): "
            guard let heading = lines.first(where: { $0.hasPrefix("## ") }), heading.hasPrefix(mark) else {
                faults.append("invariant \(number): its heading does not begin with '\(mark)'")
                continue
            }
            let last = paragraphs(of: part).last { $0.hasPrefix("`") }
            let title = String(heading.dropFirst(mark.count))
            let found = Guarantee(number: number, title: title, tests: last.map { tests(in: $0) } ?? [])
            if found.tests.isEmpty, title != "gone" { faults.append("invariant \(number): no test is named behind it") }
            let due = all.count + 1
            if number != due {
                faults.append("invariant \(number) stands where \(due) is due: numbers go up by one, each once")
            }
            all.append(found)
        }
        return (all, faults)
    }

    private static func paragraphs(of text: Substring) -> [Substring] {
        text.split(separator: "\n\n").map { $0.drop { $0 == "\n" } }
    }

    /// Names between backquotes, those in brackets with the name before the bracket.
    static func tests(in paragraph: Substring) -> [Named] {
        var named: [Named] = []
        for (index, part) in paragraph.split(separator: "`", omittingEmptySubsequences: false).enumerated()
        where index % 2 == 1 {
            let name = part.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            let before = paragraph[..<part.startIndex]
            let isInBrackets = before.count { $0 == "(" } > before.count { $0 == ")" }
            if isInBrackets, let last = named.indices.last {
                named[last].cases.append(name)
            } else {
                named.append(Named(name: name))
            }
        }
        return named
    }
}

// MARK: - Whether the tests are there

extension Guarantees {
    /// The tests of each file under `Tests`.
    struct Inventory {
        /// By the name of a page of promises.
        var promises: [String: Set<String>] = [:]
        /// By the name of a suite.
        var suites: [String: Set<String>] = [:]

        mutating func add(_ file: SourceTree.File) {
            if file.name.hasSuffix(".py") {
                promises[file.name] = Set(Papers.functions(in: file.text).filter { $0.hasPrefix("test_") })
                return
            }
            let tests = Papers.tests(in: file.text)
            // A suite may go on in an extension, in another file.
            for suite in Set(Papers.suites(in: file.text) + Papers.names(behind: "extension ", in: file.text)) {
                suites[suite, default: []].formUnion(tests)
            }
        }

        /// Why no test stands behind the name; nil where there is one, and each of the named cases.
        func fault(of named: Named) -> String? {
            let last = named.name.split(separator: "/").last.map(String.init) ?? named.name
            let isPage = last.hasSuffix(".py")
            guard let tests = isPage ? promises[last] : suites[last], !tests.isEmpty else {
                return "there is no \(isPage ? "page" : "suite") '\(named.name)' with a test"
            }
            return named.cases.first { !tests.contains($0) }.map { "'\(named.name)' has no test '\($0)'" }
        }
    }
}

// MARK: - Who cites them

extension Guarantees {
    /// Numbers behind the words "invariant" and "guarantee", such as 3 and 14 in "invariants 3 and 14".
    static func numbers(in text: String) -> [Int] {
        var numbers: [Int] = []
        var isOpen = false
        for word in text.split(whereSeparator: \.isWhitespace) {
            let bare = word.drop { "([*_`".contains($0) }
            let digits = bare.prefix { $0.isNumber }
            if isOpen, let number = Int(digits), bare.dropFirst(digits.count).first.map({ !$0.isLetter }) ?? true {
                numbers.append(number)
                continue
            }
            if isOpen, bare == "and" || bare == "to" { continue }
            isOpen = ["invariant", "invariants", "guarantee", "guarantees"].contains(bare.lowercased())
        }
        return numbers
    }

    /// Links whose words are a number that is not the one that they lead to.
    static func misled(in text: String) -> [String] {
        text.split(separator: "](").dropLast().compactMap { part in
            guard let open = part.lastIndex(of: "[") else { return nil }
            let words = part[part.index(after: open)...]
            let target = text[part.endIndex...].dropFirst(2).prefix { $0 != ")" }
            guard let number = target.split(separator: "#invariant-").last, target.contains("#invariant-"),
                !words.isEmpty, words.allSatisfy(\.isNumber), words != number
            else { return nil }
            return "[\(words)] leads to invariant \(number)"
        }
    }
}
