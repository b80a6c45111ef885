import Testing

/// What the process takes from the world is handed to it (docs/design/modules.md#world): clocks, randomness, names, threads and waits are
/// reached for in the files that implement them and nowhere else.
@Suite struct SeamTests {
    @Test func theWorldIsReachedForInItsImplementationsAlone() throws {
        for file in try SourceTree.files(under: "Sources", [".swift", ".c", ".h"]) where !Self.isExcluded(file) {
            let allowed = Seams.implementations[file.path]?.calls ?? []
            for (number, call) in Seams.calls(in: file.text) where !allowed.contains(call) {
                Issue.record(
                    "\(file):\(number): '\(call)' takes something from the world; have it handed to you (Seams.swift)")
            }
        }
    }

    @Test func everyImplementationIsThereAndSaysWhy() throws {
        let files = try SourceTree.files(under: "Sources", [".swift", ".c", ".h"])
        for (path, implementation) in Seams.implementations {
            #expect(!implementation.reason.isEmpty)
            guard let file = files.first(where: { $0.path == path }) else {
                Issue.record("\(path) is gone")
                continue
            }
            let made = Set(Seams.calls(in: file.text).map(\.call))
            #expect(Set(implementation.calls) == made, "\(path) makes the calls \(made.sorted())")
        }
    }

    /// Simulates systems of others in a process of its own, by real clocks.
    private static func isExcluded(_ file: SourceTree.File) -> Bool { file.module == "cardea-lab" }
}

/// The reader of calls is what the lint stands on.
@Suite struct SeamReaderTests {
    @Test(arguments: [
        ("let a = UInt32.random(in: 0 ... .max)", ".random(in"), ("chance: .random(in: 0...1)", ".random(in"),
        ("        usleep(5000)", "usleep("), ("let now = Int64(time(nil))", "time(nil)"),
        ("let ready = Glibc.poll(&watched, 1, 5)", "poll("), ("poll(&watched, 1, 5)", "poll("),
        ("let loop = try Loop(kernel: Kernel())", "Kernel()"), ("let n = SystemTime().awake()", "SystemTime()"),
        ("Task.detached { await self.run() }", "Task.detached"),
        ("static uint64_t a(void) { clock_gettime(0, 0); }", "clock_gettime("),
        ("var generator = SystemRandomNumberGenerator()", "SystemRandomNumberGenerator"),
    ])
    func aCallIsSeen(line: String, call: String) { #expect(Seams.calls(in: line).map(\.call) == [call]) }

    @Test(arguments: [
        "// usleep(5000)", "/// until `poll(` returns", "self.poll(device)", "func poll(_ device: Device) {",
        "let a = maySleep(5)", "handshake.random(16)", "unusleep(5)",
        "init(time: any TimeSource = SystemTime()) {", "init(random: any RandomSource = SystemRandom()) {",
        "let wait = settings.poll", "return 0 // as usleep( would",
    ])
    func otherLinesAreNone(line: String) { #expect(Seams.calls(in: line).isEmpty) }

    @Test func linesAreCounted() {
        let found = Seams.calls(in: "a\nusleep(1)\n\nusleep(2)\n")
        #expect(found.map(\.line) == [2, 4])
    }
}
