import Admin
import ArgumentParser
import Gateway
import Glibc
import Keeping
import World

struct Login: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Leads a person through the login of an identity, once.",
        discussion: """
            The running gateway speaks with the issuer and keeps what the login brings; without a gateway the store is opened here.
            Codes and pages to open are shown as they come; a browser is opened where there is one.

            --paste: for a browser on another machine. Log in there; it ends at an address that it cannot reach: paste that here.
            """)

    @OptionGroup var common: GatewayOptions

    @Argument(help: "The identity's name.")
    var identity: String

    @Flag(name: .long, help: "Only print the page's address.")
    var noBrowser = false

    @Flag(name: .long, help: "Ask for the address at which the browser ends, instead of waiting for the browser.")
    var paste = false

    func run() throws {
        let gateway = try RunningGateway.found(common)
        try gateway.requireIdentity(identity)
        // Without a good file nobody knows where a browser comes back: whatever address it ends at can be pasted.
        let isUnknown = gateway.configuration == nil
        let way = gateway.configuration.flatMap { Gateway.loginRedirect(of: identity, in: $0) }
        var door: RedirectDoor?
        if let way, way.isLoopback, !paste {
            do throws(RedirectDoor.Fault) { door = try RedirectDoor(port: way.port ?? 0, path: way.path) } catch {
                throw ExitCode(ExitStatus.unavailable, saying: "\(error.text); use --paste, or another redirect_uri")
            }
        }
        if paste, way == nil, !isUnknown {
            throw ExitCode(64, saying: "nothing is to be pasted: identity '\(identity)' awaits no browser")
        }
        let desk = try loginDesk(gateway)
        defer { desk.close() }
        let interrupt = Interruption()
        let begun = try desk.begin(.login, identity: identity, port: door?.port)
        var terminal = LoginTerminal(
            isJSON: common.json, opensBrowser: !noBrowser && !paste && way != nil,
            pastes: isUnknown || way != nil && door == nil)
        var told = begun
        while !told.isOver {
            if interrupt.hasCome {
                desk.cancel(told.flow)
                terminal.clear()
                ConfigurationAccess.complain("cancelled")
                interrupt.end()
            }
            if let prompt = told.prompt { terminal.show(prompt, of: told) }
            terminal.progress(told)
            // The browser is answered with what the keeper says of its query.
            let flow = told.flow
            if let door {
                door.serve(milliseconds: 200) { query in
                    desk.redirected(flow, query: query) ?? RedirectReply.over
                }
            } else if told.prompt?.awaitsRedirect == true {
                if let line = terminal.pasted(milliseconds: 200) {
                    let query = line.split(separator: "?", maxSplits: 1).dropFirst().first.map {
                        String($0.prefix { $0 != "#" })
                    }
                    let reply = query.flatMap { desk.redirected(flow, query: $0) }
                    if reply?.isAnswer != true {
                        ConfigurationAccess.complain(
                            "that is not it: \(reply?.text ?? "it has no '?' with an answer behind it"); once more:")
                    }
                }
                if terminal.isAtEnd {
                    desk.cancel(flow)
                    throw ExitCode(64, saying: "the input ended without the address")
                }
            } else {
                SystemTime().pause(milliseconds: 200)
            }
            told = try desk.next(told, .login)
        }
        // Whoever is still connected gets its answer.
        door?.serve(milliseconds: 0) { _ in RedirectReply.over }
        terminal.clear()
        desk.ended(told, .login, identity: identity)
        try tell(told, common, done: "\(identity): logged in")
    }
}

struct Logout: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Forgets what an identity's login brought, and tells the issuer.",
        discussion: "Its routes answer that a login is needed, until the next one.")

    @OptionGroup var common: GatewayOptions

    @Argument(help: "The identity's name.")
    var identity: String

    func run() throws {
        let gateway = try RunningGateway.found(common)
        try gateway.requireIdentity(identity)
        let desk = try loginDesk(gateway)
        defer { desk.close() }
        var told = try desk.begin(.logout, identity: identity, port: nil)
        while !told.isOver {
            SystemTime().pause(milliseconds: 50)
            told = try desk.next(told, .logout)
        }
        desk.ended(told, .logout, identity: identity)
        try tell(told, common, done: "\(identity): logged out")
    }
}

private func tell(_ told: LoginDocument, _ common: GatewayOptions, done: String) throws {
    if common.json {
        print(told.encoded(), terminator: "")
    } else if told.isDone {
        print(done + (told.detail.map { "; \($0)" } ?? ""))
    } else {
        let said = told.detail ?? told.state
        ConfigurationAccess.complain(
            told.state == "expired"
                ? "cardea: nobody logged in in time; run it again" : "cardea: \(told.state): \(said)")
    }
    guard !told.isDone else { return }
    switch told.reason {
    case "configuration", "secret_unreadable", "secret_unusable", "store_unusable":
        throw ExitCode(ExitStatus.configuration)
    case "internal": throw ExitCode(ExitStatus.internalFault)
    default: throw ExitCode(ExitStatus.unavailable)
    }
}

/// Ctrl-C, noticed between two looks, so that the login can be given up where it runs.
private struct Interruption {
    private nonisolated(unsafe) static var signal: Int32 = 0

    init() {
        for number in [SIGINT, SIGTERM, SIGHUP] { Glibc.signal(number) { Interruption.signal = $0 } }
        // A browser that leaves early is no reason to end.
        Glibc.signal(SIGPIPE, SIG_IGN)
    }

    var hasCome: Bool { Self.signal != 0 }

    /// Ends as one that was interrupted, which a shell tells apart from one that failed.
    func end() -> Never {
        let number = Self.signal
        Glibc.signal(number, SIG_DFL)
        raise(number)
        exit(128 + number)
    }
}
