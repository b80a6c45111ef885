import Admin
import ArgumentParser
import Configuration
import Gateway
import Glibc
import World

/// The gateway that a command asks.
///
/// Since it read its file, somebody may have spoilt or deleted that. It serves on with what it had, and must be reachable then most of
/// all: so a file that is not good only costs what is known of the names in it.
struct RunningGateway {
    /// Its admin socket.
    let socket: String
    let client: AdminClient
    /// The configuration in its file now, where that is good.
    let configuration: Configuration?
    private let fault: ConfigurationFault?
    /// Whom the socket has to belong to; nil where the user named the socket itself.
    private let search: PlaceSearch?
    /// The file that was taken because it lies in this folder; nil where the user named the configuration or the socket.
    private let found: FoundFile?

    /// Who answers at the socket is not the gateway that was meant: its health would be told, and its tokens would go.
    struct Other: Error, CustomStringConvertible {
        let description: String
    }

    /// The same as `init`; another gateway ends the process.
    static func found(_ options: GatewayOptions) throws -> RunningGateway {
        do throws(Other) { return try RunningGateway(options) } catch {
            throw ExitCode(ExitStatus.unavailable, saying: "\(error)")
        }
    }

    /// When the file is not good, standard error is told, and which socket is asked.
    init(_ options: GatewayOptions) throws(Other) {
        let path = options.common.config
        var loaded: LoadedConfiguration?
        var fault: ConfigurationFault?
        do throws(ConfigurationFault) { loaded = try ConfigurationAccess.load(path, warn: { _ in }) } catch {
            fault = error
        }
        if let told = options.socket {
            socket = told
            client = AdminClient(told)
            // The names in a file say nothing of a gateway that serves another one.
            let isOurs = loaded.map { PlaceSearch($0, socket: told).verdict(on: AdminClient(told)).isOurs } ?? false
            (configuration, self.fault, search) = (isOurs ? loaded?.configuration : nil, nil, nil)
            found = nil
            return
        }
        found = FoundFile(path)
        let search: PlaceSearch
        if let loaded {
            socket = ConfigurationAccess.adminSocket(loaded.configuration)
            search = PlaceSearch(loaded, socket: socket)
        } else {
            let named = ConfigurationAccess.remains(of: path)
            let usual = ConfigurationAccess.usualAdminSockets(path)
            // Also where one is named: it may have been renamed in the file, which takes effect with a restart only.
            let ours = ([named.socket].compactMap { $0 } + usual).first {
                PlaceSearch(path, store: named.store, socket: $0).verdict(on: AdminClient($0)).isOurs
            }
            socket = ours ?? named.socket ?? usual[0]
            search = PlaceSearch(path, store: named.store, socket: socket)
            let reasons = fault?.reasons ?? []
            ConfigurationAccess.complain(
                "cardea: the configuration is not good: \(reasons.first ?? "")"
                    + (reasons.count > 1 ? "; and \(reasons.count - 1) more, see 'cardea check'" : "")
                    + "; asking the gateway that may run with an earlier one at \(socket), "
                    + (socket == named.socket ? "which the file names" : "a usual place"))
        }
        client = AdminClient(socket)
        (configuration, self.fault, self.search) = (loaded?.configuration, fault, search)
        if let other = whoElse() { throw other }
    }

    /// Somebody else answers at the socket; nil while it is the gateway that was meant, or nobody. For whoever asks more than once: while a
    /// gateway is away another one may take its socket.
    func whoElse() -> Other? {
        guard let search else { return nil }
        switch search.verdict(on: client) {
        case .ours, .nobody: return nil
        case .other(let theirs):
            let words = "the gateway at \(socket) serves \(theirs.words), not \(search.words)"
            if let found, let advice = found.advice(theirs) { return Other(description: words + advice) }
            return Other(
                description: "\(words); give each gateway an admin.socket of its own, or say --socket \(socket) to ask "
                    + "this one all the same")
        case .silent:
            return Other(
                description: "the gateway at \(socket) does not say what it serves, being of another version; say "
                    + "--socket \(socket) to ask it all the same")
        }
    }

    /// The sentence that nobody answers. Where the file of this folder was taken, the socket is another one than the reader may think of.
    var silence: String { "no gateway answers at \(socket)" + (found.map { ", " + $0.whose } ?? "") }

    /// For what cannot be done without: the configuration, or the end of the process with every mistake on standard error.
    func requireConfiguration() throws -> Configuration {
        if let configuration { return configuration }
        guard fault != nil else {
            throw ExitCode(ExitStatus.unavailable, saying: silence)
        }
        throw statusWithoutAnswer(ExitStatus.configuration)
    }

    /// Waits for a gateway that starts: it has its store before it answers, and who came with a command just then was told that another
    /// process has the store.
    /// - Returns: whether one answers by now.
    func awaitStart(time: some TimeSource = SystemTime()) -> Bool {
        if isatty(2) == 1 {
            ConfigurationAccess.complain("cardea: another process has the store; waiting for it to answer at \(socket)")
        }
        for _ in 0..<Self.looksForStart {
            if client.request("GET", "/livez") != nil { return whoElse() == nil }
            time.pause(milliseconds: Self.betweenLooks)
        }
        return false
    }

    /// Ten seconds in all: a store of a million rows is read in less.
    private static let looksForStart = 50
    private static let betweenLooks: UInt32 = 200

    /// The status that the process ends with when nobody answers.
    func absent(_ advice: String) -> ExitCode {
        ConfigurationAccess.complain("cardea: \(silence)\(advice)")
        return statusWithoutAnswer(ExitStatus.unavailable)
    }

    /// For a command that would have used the store instead.
    func absent(_ refusal: StoreRefusal, store path: String?) -> ExitCode {
        let advice = refusal.isInUse ? "; \(silence), try as its user or root" : ""
        return ExitCode(
            path == nil ? ExitStatus.configuration : ExitStatus.unavailable, saying: "\(refusal)\(advice)")
    }

    /// The file may be the reason that nobody answers, and is told as it stands.
    func statusWithoutAnswer(_ status: Int32) -> ExitCode {
        fault.map { ConfigurationAccess.refuse($0) } ?? ExitCode(status)
    }

    /// The names must stand in the file; where that is not good, the gateway itself is the judge.
    func require(_ names: [String], as kind: String, among defined: (Configuration) -> [String]) throws {
        if let configuration { try Self.require(names, as: kind, among: defined(configuration)) }
    }

    static func require(_ names: [String], as kind: String, among defined: [String]) throws {
        for name in names where !defined.contains(name) {
            throw ExitCode(64, saying: "no \(kind) '\(name)'; defined: \(defined.joined(separator: ", "))")
        }
    }

    func requireIdentity(_ name: String) throws {
        try require([name], as: "identity") { $0.identities.map(\.name) }
    }

    /// The status that the process ends with after an answer that is no success.
    func refused(_ answer: AdminClient.Answer) -> ExitCode {
        complain(of: answer)
        // A name that no file could be asked for, or that stands in a file which the gateway has not taken up.
        return ExitCode(answer.status == 404 ? 64 : ExitStatus.internalFault)
    }

    /// In words, whatever form the gateway gave its refusal.
    func complain(of answer: AdminClient.Answer) {
        ConfigurationAccess.complain(
            "cardea: the gateway refused: \(refusal(in: answer.body) ?? "status \(answer.status)")")
    }
}
