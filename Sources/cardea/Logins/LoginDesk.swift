import Admin
import ArgumentParser
import Audit
import Configuration
import Gateway
import Keeping
import Octets
import Reactor

/// Where a login is run: in the gateway behind its admin socket, or here where none runs.
protocol LoginDesk {
    func begin(_ command: LoginVerb, identity: String, port: UInt16?) throws -> LoginDocument
    /// Nil when nobody answers any more, or the login is not known.
    func look(_ flow: String) -> LoginDocument?
    func redirected(_ flow: String, query: String) -> RedirectReply?
    /// The login or logout is over: told where no gateway has told it.
    func ended(_ told: LoginDocument, _ command: LoginVerb, identity: String)
    func cancel(_ flow: String)
    func close()
}

enum LoginVerb: String { case login, logout }

extension LoginDesk {
    /// How far a login or logout is that was under way.
    func next(_ told: LoginDocument, _ command: LoginVerb) throws -> LoginDocument {
        if let next = look(told.flow) { return next }
        throw ExitCode(
            ExitStatus.unavailable,
            saying: "the gateway no longer answers; its log says what came of the \(command.rawValue)")
    }
}

/// The running gateway's, else one on the store itself.
func loginDesk(_ gateway: RunningGateway) throws -> any LoginDesk {
    if gateway.client.request("GET", "/livez") != nil { return GatewayDesk(client: gateway.client) }
    let configuration = try gateway.requireConfiguration()
    // A refresh token passes through this process: no core file of it.
    _ = Hardening.apply()
    do throws(StoreRefusal) {
        return OwnDesk(
            try OfflineLogin(configuration, environment: ConfigurationAccess.environment), configuration)
    } catch {
        if error.isInUse, gateway.awaitStart() { return GatewayDesk(client: gateway.client) }
        throw gateway.absent(error, store: configuration.store.path)
    }
}

private struct GatewayDesk: LoginDesk {
    let client: AdminClient

    func begin(_ command: LoginVerb, identity: String, port: UInt16?) throws -> LoginDocument {
        let target =
            "/\(command.rawValue)?identity=\(PercentEncoding.encode(identity))" + (port.map { "&port=\($0)" } ?? "")
        guard let answer = client.request("POST", target) else {
            throw ExitCode(ExitStatus.unavailable, saying: "the gateway does not answer")
        }
        if answer.status == 202, let told = LoginDocument(parsing: answer.body) { return told }
        throw ExitCode(
            answer.status == 404 || answer.status == 409 ? 64 : ExitStatus.internalFault,
            saying: refusal(in: answer.body) ?? "the gateway refused: \(answer.status)")
    }

    func look(_ flow: String) -> LoginDocument? {
        client.request("GET", "/login?flow=\(flow)").flatMap { LoginDocument(parsing: $0.body) }
    }

    func redirected(_ flow: String, query: String) -> RedirectReply? {
        client.request("POST", "/login/redirect?flow=\(flow)&answer=\(PercentEncoding.encode(query))").flatMap {
            RedirectReply(parsing: $0.body)
        }
    }

    func ended(_ told: LoginDocument, _ command: LoginVerb, identity: String) {}
    func cancel(_ flow: String) { _ = client.request("POST", "/login/cancel?flow=\(flow)") }
    func close() {}
}

private struct OwnDesk: LoginDesk {
    let keeper: OfflineLogin
    let configuration: Configuration

    init(_ keeper: OfflineLogin, _ configuration: Configuration) {
        self.keeper = keeper
        self.configuration = configuration
    }

    func begin(_ command: LoginVerb, identity: String, port: UInt16?) throws -> LoginDocument {
        let start =
            command == .login ? keeper.login(identity: identity, redirectPort: port) : keeper.logout(identity: identity)
        switch start {
        case .started(let report): return LoginDocument(report)
        case .unknown: throw ExitCode(64, saying: "there is no identity '\(identity)'")
        case .refused(let reason): throw ExitCode(64, saying: reason)
        }
    }

    func look(_ flow: String) -> LoginDocument? { keeper.loginReport(flow).map { LoginDocument($0) } }

    func redirected(_ flow: String, query: String) -> RedirectReply? {
        keeper.loginRedirected(flow, query: query)
    }

    func ended(_ told: LoginDocument, _ command: LoginVerb, identity: String) {
        AuditPlace.note(
            command == .login ? .login : .logout,
            [AuditField(.identity, .name(identity)), AuditField(.result, .word(told.isDone ? "done" : "failed"))],
            configuration)
    }

    func cancel(_ flow: String) { _ = keeper.cancelLogin(flow) }
    func close() { keeper.close() }
}
