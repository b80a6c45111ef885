import Admin
import ArgumentParser
import Audit
import Configuration
import Gateway
import Glibc
import World

/// `cardea store`: care for the file of tokens, in the running gateway where there is one.
struct StoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store", abstract: "Verifies, compacts or re-seals the token store.",
        discussion: """
            A running gateway does the work while it serves; without one the file is opened, unless another process has it.

            To replace the sealing key: put the new one first in store.key, leave the old one behind it, restart the gateway, run \
            `cardea store rotate`, then remove the old one. Without store.key a new key is made beside the file, and no restart is needed.
            """,
        subcommands: [Verify.self, Rotate.self, Compact.self])

    struct Verify: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Opens every row and says how many are damaged; changes nothing. Exits with 1 when any is.")
        @OptionGroup var common: GatewayOptions
        func run() throws { try StoreRun(.verify, common).run() }
    }

    struct Rotate: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Seals every row with the first key of store.key; then the older keys may go.")
        @OptionGroup var common: GatewayOptions
        func run() throws { try StoreRun(.rotate, common).run() }
    }

    struct Compact: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Gives unused space back to the file system.")
        @OptionGroup var common: GatewayOptions
        func run() throws { try StoreRun(.compact, common).run() }
    }
}

/// A run of a store task, by the admin socket or on the file.
private struct StoreRun {
    let task: StoreTask
    let common: GatewayOptions

    init(_ task: StoreTask, _ common: GatewayOptions) {
        self.task = task
        self.common = common
    }

    func run() throws {
        let gateway = try RunningGateway.found(common)
        let told: StoreDocument
        if let answer = begun(by: gateway) {
            told = try follow(answer, gateway)
        } else {
            let configuration = try gateway.requireConfiguration()
            do throws(StoreRefusal) {
                let work = try Gateway.work(task, on: configuration, environment: ConfigurationAccess.environment) {
                    show($0.rows, $0.total)
                }
                told = StoreDocument(work)
                if task == .rotate {
                    let isGood = told.failure == nil && told.damaged == 0
                    AuditPlace.note(
                        .rotation,
                        [
                            AuditField(.result, .word(isGood ? "done" : "failed")),
                            AuditField(.count, .count(UInt64(clamping: told.resealed))),
                        ], configuration)
                }
            } catch {
                guard error.isInUse, gateway.awaitStart(), let answer = begun(by: gateway) else {
                    throw gateway.absent(error, store: configuration.store.path)
                }
                told = try follow(answer, gateway)
            }
        }
        if isatty(2) == 1 { ConfigurationAccess.write("\r\u{1B}[K") }
        try tell(told)
    }

    private func begun(by gateway: RunningGateway) -> AdminClient.Answer? {
        gateway.client.request("POST", "/store/\(task.rawValue)")
    }

    /// Asks the gateway until its task is over.
    private func follow(_ answer: AdminClient.Answer, _ gateway: RunningGateway) throws -> StoreDocument {
        guard var told = StoreDocument(parsing: answer.body), answer.status == 202 else {
            gateway.complain(of: answer)
            throw ExitCode(ExitStatus.unavailable)
        }
        let number = told.number
        while !told.isOver {
            show(told.rows, told.total)
            SystemTime().pause(milliseconds: 100)
            guard let answer = gateway.client.request("GET", "/store"), answer.status == 200,
                let next = StoreDocument(parsing: answer.body),
                next.number == number
            else {
                throw ExitCode(
                    ExitStatus.unavailable, saying: "the gateway no longer answers; its log says what came of it")
            }
            told = next
        }
        return told
    }

    private func show(_ rows: Int, _ total: Int) {
        guard isatty(2) == 1, !common.json, total > 0 else { return }
        ConfigurationAccess.write("\r\(task.rawValue): \(rows) of \(total) rows")
    }

    private func tell(_ told: StoreDocument) throws {
        if common.json {
            print(told.encoded(), terminator: "")
        } else if let failure = told.failure {
            ConfigurationAccess.complain("cardea: \(failure)")
        } else {
            switch task {
            case .verify:
                print("\(told.rows) rows, \(told.damaged) damaged\(told.finding.map { "; the file: \($0)" } ?? "")")
            case .rotate:
                print("\(told.resealed) of \(told.rows) rows sealed anew; key \(told.key)")
                if told.damaged > 0 { print("\(told.damaged) damaged rows could not be opened") }
            case .compact: print("\(told.bytes) bytes")
            }
        }
        if told.failure != nil { throw ExitCode(ExitStatus.unavailable) }
        if told.damaged > 0 || told.finding != nil { throw ExitCode(1) }
    }
}
