import ArgumentParser
import Configuration
import Gateway
import Glibc
import Handshakes
import Octets

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Validates a configuration; with --live also tries it.",
        discussion: """
            All mistakes are reported at once. --live gets one token per identity and connects to every upstream.
            A warning alone ends with 0, since the gateway would serve; with --strict it ends as an error does, for a pipeline.
            """)

    @OptionGroup var common: CommonOptions

    @Argument(help: "Files to check; none: the one that run would use.", completion: .configurationFile)
    var files: [String] = []

    @Flag(name: .long, help: "Also get one token per identity and connect to every upstream.")
    var live = false

    @Flag(name: .long, help: "Warnings fail, too: the status is then that of a file with mistakes.")
    var strict = false

    @Flag(name: .long, help: "Also say what run --confine would lack, in the configuration and on this machine.")
    var confine = false

    func run() throws {
        // A process that becomes a program is made before anything else.
        let space = confine ? ProgramSpace(["true"]) : nil
        let environment = ConfigurationAccess.environment
        var sources: [ConfigurationSource] = files.map { .file($0) }
        if sources.isEmpty {
            do {
                sources = [try ConfigurationSource.find(argument: common.config, environment: environment)]
            } catch {
                throw ExitCode(ExitStatus.configuration, saying: "\(error)")
            }
        }
        var diagnostics: [Diagnostic] = []
        var configurations: [Configuration] = []
        for source in sources {
            let source = confine ? source.standing : source
            let result = Configuration.load(source, environment: environment)
            diagnostics += result.diagnostics
            guard let configuration = result.configuration else { continue }
            diagnostics += configuration.checkSecrets(
                environment: environment, fault: configuration.sealingKeyFault)
            diagnostics += configuration.checkPrograms()
            diagnostics += configuration.checkRefreshTokens(environment: environment)
            diagnostics += configuration.checkStore()
            diagnostics += configuration.checkAudit()
            diagnostics += configuration.checkStart(environment: environment)
            diagnostics += configuration.checkClientKeys(environment: environment)
            if let space {
                let loaded = LoadedConfiguration(
                    configuration: configuration, source: source, files: WatchedFiles(result.files))
                diagnostics += ConfinedProgram.lacks(of: loaded, in: space)
            }
            configurations.append(configuration)
        }
        let errors = diagnostics.filter { $0.severity == .error }.count
        var findings: [LiveFinding] = []
        if live, errors == 0 {
            for configuration in configurations {
                do {
                    findings += try LiveCheck.run(configuration, environment: environment)
                } catch {
                    throw ExitCode(ExitStatus.configuration, saying: "\(error)")
                }
            }
        }
        // Whatever is no error is a warning.
        let isRefused = errors > 0 || strict && !diagnostics.isEmpty
        report(diagnostics, findings, errors: errors, isRefused: isRefused)
        if isRefused { throw ExitCode(ExitStatus.configuration) }
        if findings.contains(where: { !$0.isGood }) { throw ExitCode(ExitStatus.unavailable) }
    }

    /// Who misses what failed; of a thousand routes the first will do.
    private static func places(_ routes: [String]) -> String {
        guard !routes.isEmpty else { return "" }
        let named = routes.prefix(3).joined(separator: ", ")
        let more = routes.count > 3 ? " and \(routes.count - 3) more" : ""
        return " (\(routes.count == 1 ? "route" : "routes") \(named)\(more))"
    }

    private func report(_ diagnostics: [Diagnostic], _ findings: [LiveFinding], errors: Int, isRefused: Bool) {
        let failed = findings.filter { !$0.isGood }.count
        let warnings = diagnostics.count - errors
        if common.json {
            let items = diagnostics.map { diagnostic in
                "{\"file\":\(diagnostic.mark.file.jsonQuoted),\"line\":\(diagnostic.mark.line),\"column\":\(diagnostic.mark.column),"
                    + "\"severity\":\"\(diagnostic.severity.rawValue)\",\"message\":\(diagnostic.message.jsonQuoted)}"
            }
            let live = findings.map { finding in
                "{\"subject\":\(finding.subject.jsonQuoted),\"good\":\(finding.isGood),\"tried\":\(finding.isTried),"
                    + "\"milliseconds\":\(finding.milliseconds),\"text\":\(finding.text.jsonQuoted),"
                    + "\"routes\":[\(finding.routes.map(\.jsonQuoted).joined(separator: ","))]}"
            }
            print(
                "{\"good\":\(!isRefused && failed == 0),\"errors\":\(errors),\"warnings\":\(warnings),\"diagnostics\":[\(items.joined(separator: ","))],"
                    + "\"failed\":\(failed),\"live\":[\(live.joined(separator: ","))]}"
            )
            return
        }
        for diagnostic in diagnostics { print("\(diagnostic)") }
        for finding in findings {
            let word = !finding.isTried ? "skip" : finding.isGood ? "good" : "FAIL"
            print(
                "\(word)  \(finding.subject)  \(finding.milliseconds) ms  \(finding.text)\(Self.places(finding.routes))"
            )
        }
        if errors > 0 {
            print(errors == 1 ? "1 error" : "\(errors) errors")
        } else {
            var outcome: [String] = []
            if failed > 0 { outcome.append("\(failed) of \(findings.count) failed") }
            // Nothing failed and yet it is not good: the warnings are why, and --strict says so.
            if failed == 0, !isRefused { outcome.append("good") }
            let left = findings.filter { !$0.isTried }.count
            if left > 0 { outcome.append("\(left) not tried") }
            if warnings > 0 {
                outcome.append(
                    (warnings == 1 ? "1 warning" : "\(warnings) warnings") + (isRefused ? ", refused by --strict" : ""))
            }
            print(outcome.joined(separator: ", "))
        }
    }
}
