import GoldenFiles
import Testing

/// The events of the log, found where they are made: their text is a literal there.
@Suite struct GoldenEventTests {
    @Test func everyEventHasTheNameThatItHad() throws {
        var lines: Set<String> = []
        for file in try SourceTree.files(under: "Sources", [".swift"]) where file.module != "cardea-lab" {
            for event in LoggedEvent.all(in: file.text) { lines.insert("event \(event.level): \(event.message)") }
            for name in LoggedEvent.fields(in: file.text) { lines.insert("field: \(name)") }
        }
        #expect(lines.count > 100, "no events were found where there are many")
        let file = GoldenFile(
            "log-events.txt", "Level and text of every event of the log, and the names of fields.",
            cost: "alerts on a line of the log stay silent, and scripts that read fields find nothing.")
        if let difference = file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
    }

    /// The facts behind metrics.txt are made by hand; a name that only the sources have is found here.
    @Test func everyMetricIsInItsGoldenFile() throws {
        let known = Set(GoldenFile("metrics.txt", "", cost: "").lines.map { String($0.prefix { $0 != " " }) })
        for file in try SourceTree.files(under: "Sources", [".swift"])
        where ["Admin", "DataPath", "Gateway", "Keeping", "Telemetry"].contains(file.module) {
            for name in file.text.matches(of: /\"((?:cardea|process)_[a-z0-9_]+)\"/).map({ String($0.1) }) {
                #expect(
                    known.contains(name),
                    "\(file): \(name) is in no line of Tests/Golden/metrics.txt; bring it into that test")
            }
        }
    }

    /// The rows behind store-rows.txt are made by hand, too.
    @Test func everyKindOfRowIsInItsGoldenFiles() throws {
        let rows = GoldenFile("store-rows.txt", "", cost: "").lines
        let kinds = GoldenFile("store-kinds.txt", "", cost: "").lines
        var found = 0
        for file in try SourceTree.files(under: "Sources", [".swift"]) {
            guard let start = file.text.firstRange(of: "enum RowKind {") else { continue }
            for match in file.text[start.upperBound...].prefix(4000).matches(
                of: /static let ([a-zA-Z]+): UInt8 = ([0-9]+)/)
            {
                found += 1
                #expect(
                    rows.contains { $0.hasPrefix("kind \(match.2) ") },
                    "\(file): rows of kind \(match.1) are in no line of store-rows.txt")
                #expect(
                    kinds.contains("number of \(match.1): \(match.2)"),
                    "\(file): \(match.1) is in no line of store-kinds.txt")
            }
        }
        #expect(found >= 10)
    }
}

/// The reader of events is what the test above stands on.
@Suite struct EventReaderTests {
    @Test func everyFormIsSeen() {
        let text = """
            events.warn("one", [LogField("reason", .name(x))])
            keeper.events?.info(
                "two")
            // events.error("no")
            log.log(.error, "three", fields)
            write(LogEvent(time: now(), level: .warn, message: "six", fields: fields))
            print("four")
            Plan.error("five")
            """
        #expect(
            LoggedEvent.all(in: text).map { "\($0.level) \($0.message)" } == [
                "error three", "info two", "warn one", "warn six",
            ])
        #expect(LoggedEvent.fields(in: text) == ["reason"])
    }
}

struct LoggedEvent: Hashable {
    let level: String
    let message: String

    static func all(in text: String) -> [LoggedEvent] {
        let code = withoutComments(text)
        let named = code.matches(of: /(?:events|log)\??\.(debug|info|warn|error)\(\s*"([^"\\]*)"/).map {
            LoggedEvent(level: String($0.1), message: String($0.2))
        }
        let leveled = code.matches(of: /\.log\(\s*\.(debug|info|warn|error),\s*"([^"\\]*)"/)
            .map { LoggedEvent(level: String($0.1), message: String($0.2)) }
        let made = code.matches(of: /LogEvent\([^"]*level:\s*\.(debug|info|warn|error),\s*message:\s*"([^"\\]*)"/)
            .map { LoggedEvent(level: String($0.1), message: String($0.2)) }
        return Set(named + leveled + made).sorted { ($0.level, $0.message) < ($1.level, $1.message) }
    }

    static func fields(in text: String) -> [String] {
        Set(withoutComments(text).matches(of: /LogField\(\s*"([^"\\]*)"/).map { String($0.1) }).sorted()
    }

    private static func withoutComments(_ text: String) -> String {
        text.split(separator: "\n").filter { !$0.drop(while: { $0 == " " }).hasPrefix("//") }.joined(separator: "\n")
    }
}
