import ArgumentParser
import Audit
import Configuration
import Glibc
import Octets
import Reactor
import TLS
import World

/// `cardea audit`: the key of an audit log, and whether the log is as it was written.
struct AuditCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit", abstract: "Begins an audit log's chain, or verifies it.",
        subcommands: [Initialize.self, Verify.self])

    struct Initialize: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "init", abstract: "Makes the first key of an audit log, and prints it once.",
            discussion: """
                Standard output gets the first key, 64 hexadecimal digits, and nothing else: keep it away from this machine, for whoever \
                has it could write the whole log anew. 'audit verify --key' needs it. LOG.key gets the key that follows from it and is \
                replaced after each group of records; made by root, it belongs to the owner of the folder.
                """)

        @OptionGroup var common: CommonOptions

        @Argument(help: "The log's path; none: audit.path of the configuration.")
        var log: String?

        func run() throws {
            // No core file has the key, and a reader that has gone is an error of the write.
            _ = Hardening.apply()
            let log = try self.log ?? configuredLog(common)
            var digits: [UInt8]
            do throws(AuditFault) {
                digits = try ChainKeyFile.begin(beside: log, random: SystemRandom())
            } catch { throw ExitCode(ExitStatus.configuration, saying: "\(error)") }
            let path = ChainKeyFile.path(beside: log)
            var text: [UInt8] = []
            text.reserveCapacity(4096)
            if common.json { text += "{\"key_file\":\(path.jsonQuoted),\"first_key\":\"".utf8 }
            text += digits
            text += common.json ? Array("\"}\n".utf8) : [0x0A]
            defer {
                digits.wipe()
                text.wipe()
            }
            guard Glibc.write(1, text, text.count) == text.count else {
                // Nobody has the key, so nothing could ever be verified.
                ChainKeyFile.undo(beside: log)
                throw ExitCode(ExitStatus.unavailable, saying: "the first key could not be printed; nothing was made")
            }
            ConfigurationAccess.complain(
                "\(path): the key of the first group\nthe line on standard output is the first key: keep it elsewhere, "
                    + "it is not kept here; 'cardea audit verify --key' needs it")
        }
    }

    struct Verify: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Says whether an audit log is as it was written. Exits with 1 when it is not.",
            discussion: """
                Files are named in the order in which they were written, oldest first; - is standard input, so that packed ones can be \
                piped in.

                With --key every record that was changed, removed or moved is found. Records that were cut off the end are found by the \
                key file beside the last file, where it can be read, and by --head. Without --key the numbers alone are looked at.
                """)

        @OptionGroup var common: CommonOptions

        @Argument(help: "The log's files, oldest first; none: audit.path of the configuration.")
        var files: [String] = []

        @Option(
            name: .long,
            help: "Where the first key is, which 'audit init' printed: file:/path, env:NAME, credential:name or exec:.")
        var key: String?

        @Option(
            name: .long,
            help:
                "COUNT:HASH that the log had at some time, from /metrics, the gateway's log or an earlier verification."
        )
        var head: [String] = []

        func run() throws {
            // The first key passes through this process: no core file has it.
            _ = Hardening.apply()
            let files = self.files.isEmpty ? [try configuredLog(common)] : self.files
            let heads = try head.map { text in
                guard let head = ChainHead(text) else {
                    throw ValidationError("--head is COUNT:HASH, a number and 64 hexadecimal digits")
                }
                return head
            }
            guard let key else { return try verify(files, nil, heads) }
            try verify(files, try firstKey(key), heads)
        }

        private func verify(_ files: [String], _ key: ChainKey?, _ heads: [ChainHead]) throws {
            let isKeyed = self.key != nil
            do throws(LogFiles.Finding) {
                tell(try LogFiles.verify(files, key: key, noted: heads, time: SystemTime()), isKeyed: isKeyed)
            } catch {
                let place = error.line.map { "\(error.path):\($0)" } ?? error.path
                guard let fault = error.fault else {
                    throw ExitCode(ExitStatus.unavailable, saying: "\(place): \(error.reason)")
                }
                if common.json {
                    print("{\"good\":false,\"place\":\(place.jsonQuoted),\"finding\":\(fault.words.jsonQuoted)}")
                }
                throw ExitCode(1, saying: "\(place): \(fault.words)")
            }
        }

        private func tell(_ result: LogFiles.Result, isKeyed: Bool) {
            if common.json {
                let first = result.first.map { "\($0)" } ?? "null"
                print(
                    "{\"good\":true,\"keyed\":\(isKeyed),\"end_known\":\(result.isEndKnown),\"first\":\(first),\"head\":\"\(result.head)\"}"
                )
                return
            }
            switch result.first {
            case nil: print("no records")
            case 1?: print("\(result.head.count) records, as they were written")
            case let first?:
                print("records \(first) to \(result.head.count), as they were written; those before are elsewhere")
            }
            print("head \(result.head)")
            if !isKeyed {
                ConfigurationAccess.complain(
                    "without --key only the numbers were looked at: whoever could write to the log could have changed any record"
                )
            }
            if !result.isEndKnown {
                ConfigurationAccess.complain(
                    "neither the key file beside the log nor a --head of its last record: records could have been cut off behind "
                        + "\(result.notedCount > 0 ? "record \(result.notedCount)" : "any record")")
            }
        }

        private func firstKey(_ text: String) throws -> ChainKey {
            let reference = try? SecretReference(text: text)
            let isLiteral = if case .literal? = reference { true } else { false }
            guard let reference, !isLiteral else {
                // The text may be the key itself, which is not repeated then.
                throw ValidationError(
                    "--key names where the first key is: file:/path, env:NAME, credential:name or exec:; other users see arguments"
                )
            }
            do throws(SecretFault) {
                let secret = try readSecret(reference, environment: ConfigurationAccess.environment)
                var text = secret.withBytes { Array($0) }
                defer { text.wipe() }
                if let key = ChainKey(text: text[...]) { return key }
            } catch { throw ExitCode(ExitStatus.unavailable, saying: "--key: \(error)") }
            throw ExitCode(
                ExitStatus.configuration, saying: "--key: \(reference): no first key, which has 64 hexadecimal digits")
        }
    }
}

/// `audit.path`, for commands that are given no file.
private func configuredLog(_ common: CommonOptions) throws -> String {
    let configuration = try ConfigurationAccess.loaded(common.config)
    if let audit = configuration.audit { return audit.path }
    throw ExitCode(64, saying: "the configuration has no 'audit'; name the log, or give 'audit' a 'path'")
}

extension ChainFault {
    /// What was found, for people.
    fileprivate var words: String {
        switch self {
        case .notARecord: "the line is no record of an audit log"
        case .torn: "the file ends within a record: it was cut, or its writer was killed and has not been started again"
        case .changed(let number): "record \(number) was changed, or --key is another log's"
        case .missing(let from, let through):
            from == through ? "record \(from) is missing" : "records \(from) to \(through) are missing"
        case .outOfPlace(let number, let expected):
            "record \(number) stands where record \(expected) belongs: records were moved or repeated, or the files are not in order"
        case .group(let group, let number, let expected):
            "record \(number) says it is of group \(group); the group here is \(expected)"
        case .openGroup(let group, let number):
            "group \(group) has no end behind record \(number): records were cut off there, or its writer was killed and has not been started again"
        case .beginsWithin(let number):
            "the first record is number \(number), in the middle of a file: what stood before it is missing"
        case .tooManyGroups(let group):
            "the first record says it is of group \(group), which is further than this log can have got"
        case .otherThanHead(let count): "record \(count) is not the one that the head was taken of"
        case .cut(let end, let head): "the log ends with record \(end), but it had \(head): its end is missing"
        case .headBefore(let head, let first):
            "the head is of record \(head), and the files begin with record \(first); name the files before it, too"
        case .noKeyFile: "the key file beside the log was changed: it holds no key of an audit log"
        case .otherKey:
            "the key file beside the log does not follow from --key and the last record: the log's end is missing, or it was changed"
        }
    }
}
