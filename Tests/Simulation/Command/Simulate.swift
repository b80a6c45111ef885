import ArgumentParser
import FoundationEssentials
import Glibc

/// Runs whole gateways in virtual time, and judges them by what they promise.
@main
struct Simulate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cardea-sim",
        abstract: "Three gateways, what they call and who calls them, on one thread, in virtual time, from one seed.",
        discussion: """
            One line for each seed. Where a promise is broken, the faults of the seed are shrunk to a short list with which it still \
            is, and the end of that history is told. The same seed, size and faults give the same hash on every machine, except under TLS.
            """)

    @Option(help: "The first seed.") var seed: UInt64 = 1
    @Option(help: "How many seeds, one after the other.") var seeds: UInt64 = 1
    @Option(help: "Real seconds after which no further seed is begun; 0: no bound.") var within = 0
    @Option(help: "Virtual seconds in which callers ask.") var seconds: UInt64 = 30
    @Option(help: "Virtual milliseconds from one fault to the next, on average; 0: none.") var pace: UInt64 = 1000
    @Option(help: "Callers; 0: as many as the seed has.") var callers = 0
    @Option(help: "Gateways.") var gateways = 3
    @Option(help: "Lines of the story that are told of a broken promise.") var lines = 40
    @Option(help: "Runs that shrinking may take; 0: the faults stay as they were drawn.") var shrink = 60
    @Option(help: "Only seeds with these faults: calm (none), mild (such as cost no request) or rough.")
    var only: FaultPlan.Mildness?
    @Flag(help: "Tell the whole story, broken or not.") var tell = false
    @Flag(help: "End with the first seed that breaks a promise.") var first = false

    func run() throws {
        guard seeds > 1 else {
            guard try tellsNothingBroken(seed) else { throw ExitCode(1) }
            return
        }
        let began = Date()
        var broken: [UInt64] = []
        var run: UInt64 = 0
        var skipped: UInt64 = 0
        while run < seeds, within == 0 || Date().timeIntervalSince(began) < Double(within) {
            let number = seed + run
            run += 1
            guard only == nil || plan(number).mildness == only else {
                skipped += 1
                continue
            }
            if try !runAlone(number) { broken.append(number) }
            if first, !broken.isEmpty { break }
        }
        say("\(run - skipped - UInt64(broken.count)) passed, \(broken.count) failed")
        guard broken.isEmpty else {
            say("promises are broken with the seeds \(broken)")
            throw ExitCode(1)
        }
    }

    /// Each seed has a process of its own: a trap ends one history and no other, and what killed gateways leave behind goes with it.
    private func runAlone(_ number: UInt64) throws -> Bool {
        let arguments = [
            CommandLine.arguments[0], "--seed", "\(number)", "--seconds", "\(seconds)", "--pace", "\(pace)",
            "--callers", "\(callers)",
            "--gateways", "\(gateways)", "--lines", "\(lines)", "--shrink", "\(shrink)",
        ]
        var pointers = arguments.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var child = pid_t()
        guard posix_spawn(&child, "/proc/self/exe", nil, nil, &pointers, environ) == 0 else {
            throw SimulationFault("no process for seed \(number)")
        }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        if status & 0x7f != 0 { say("  BROKEN: the process of seed \(number) ended by signal \(status & 0x7f)") }
        return status == 0
    }

    private func tellsNothingBroken(_ number: UInt64) throws -> Bool {
        let start = Date()
        let world = try history(number, plan(number), keeps: tell ? .max / 4 : 0)
        say(summary(world, took: Date().timeIntervalSince(start)))
        if tell { for line in world.journal.lines { print(line) } }
        guard let violation = world.verdicts.violations.first else { return true }
        for violation in world.verdicts.violations.prefix(5) { say("  \(violation)") }
        try explain(number, world.plan, violation.invariant)
        return false
    }

    /// Whoever reads along sees each line at once.
    private func say(_ line: String) {
        print(line)
        fflush(nil)
    }

    private func plan(_ seed: UInt64) -> FaultPlan {
        FaultPlan(seed: seed, duration: .seconds(seconds), pace: .milliseconds(pace), gateways: gateways)
    }

    private func history(_ seed: UInt64, _ plan: FaultPlan, keeps lines: Int) throws -> World {
        let size = World.Size(gateways: gateways, callers: callers == 0 ? nil : callers, duration: .seconds(seconds))
        let world = try World(seed: seed, size: size, plan: plan, keepsLines: lines)
        try world.run()
        return world
    }

    /// The shortest list of faults that was found, and the story up to the first broken promise.
    private func explain(_ seed: UInt64, _ plan: FaultPlan, _ invariant: Invariant) throws {
        var shrinking = Shrinking(plan.faults, most: shrink) { faults in
            let world = try history(seed, plan.with(faults), keeps: 0)
            return world.verdicts.violations.contains { $0.invariant == invariant }
        }
        try shrinking.shrink()
        say("  with \(shrinking.faults.count) of \(plan.faults.count) faults, after \(shrinking.runs) runs:")
        for fault in shrinking.faults { say("    \(fault)") }
        let world = try history(seed, plan.with(shrinking.faults), keeps: .max / 4)
        let told = world.verdicts.violations.first { $0.invariant == invariant }
        let end = world.journal.lines.firstIndex { $0.contains("BROKEN \(invariant.rawValue)") }
        let before = world.journal.lines.prefix(end.map { $0 + 1 } ?? world.journal.lines.count)
        let story = before.filter { Self.matters($0, to: told?.words ?? "") }
        for line in story.suffix(lines) { say("    \(line)") }
    }

    /// Requests that went their way are no part of a story that is not about them.
    private static func matters(_ line: String, to words: String) -> Bool {
        let request = words.split(separator: " ").first {
            $0.first == "c" && $0.contains("n") && $0.contains { $0.isNumber }
        }
        if let request, line.contains(request) { return true }
        let isRoutine = line.contains(" route=") || line.contains("store has its turn") || line.contains("redis does")
        return !isRoutine && !line.contains(" gets ") && !line.contains("  c")
    }

    private func summary(_ world: World, took seconds: Double) -> String {
        var outcomes: [Int: UInt64] = [:]
        for caller in world.callers { outcomes.merge(caller.outcomes) { $0 + $1 } }
        let all = outcomes.values.reduce(0, +)
        let list = outcomes.sorted { $0.key < $1.key }.map { "\($0.key == 0 ? "cut" : "\($0.key)") \($0.value)" }
        let checks = world.verdicts.checks.values.reduce(0, +)
        let hash = "hash \(String(world.journal.hash, radix: 16))"
        return
            "seed \(world.seed): \(world.plan.faults.count) faults, \(all) exchanges (\(list.joined(separator: ", "))), "
            + "\(world.issuer.calls) grants, \(checks) checks, \(world.certificate == nil ? hash : "TLS"), "
            + "\(Int(Double(all) / max(seconds, 0.001)))/s"
    }
}

extension FaultPlan.Mildness: ExpressibleByArgument {}

extension Violation: CustomStringConvertible {
    var description: String { "BROKEN \(invariant.rawValue) at \(Journal.text(time)): \(words)" }
}
