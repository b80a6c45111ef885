import Admin
import ArgumentParser
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
    func redirected(_ flow: String, query: String) -> RedirectDocument?
    func cancel(_ flow: String)
    func close()
}

enum LoginVerb: String { case login, logout }

extension LoginDesk {
    fileprivate func refused(_ reason: String, _ status: Int32) -> any Error {
        ConfigurationAccess.complain("cardea: \(reason)")
        return ExitCode(status)
    }
}

/// The running gateway's, else one on the store itself.
func loginDesk(_ gateway: RunningGateway) throws -> any LoginDesk {
    if gateway.client.request("GET", "/livez") != nil { return GatewayDesk(client: gateway.client) }
    let configuration = try gateway.requireConfiguration()
    // A refresh token passes through this process: no core file of it.
    _ = Hardening.apply()
    do throws(StoreRefusal) {
        return OwnDesk(try OfflineLogin(configuration, environment: ConfigurationAccess.environment))
    } catch {
        let advice =
            error.isInUse
            ? "; no gateway answers at \(gateway.socket), try as its user or root" : ""
        ConfigurationAccess.complain("cardea: \(error)\(advice)")
        throw ExitCode(configuration.store.path == nil ? ExitStatus.configuration : ExitStatus.unavailable)
    }
}

private struct GatewayDesk: LoginDesk {
    let client: AdminClient

    func begin(_ command: LoginVerb, identity: String, port: UInt16?) throws -> LoginDocument {
        let target =
            "/\(command.rawValue)?identity=\(PercentEncoding.encode(identity))" + (port.map { "&port=\($0)" } ?? "")
        guard let answer = client.request("POST", target) else {
            throw refused("the gateway does not answer", ExitStatus.unavailable)
        }
        if answer.status == 202, let told = LoginDocument(parsing: answer.body) { return told }
        throw refused(
            refusal(in: answer.body) ?? "the gateway refused: \(answer.status)",
            answer.status == 404 || answer.status == 409 ? 64 : ExitStatus.internalFault)
    }

    func look(_ flow: String) -> LoginDocument? {
        client.request("GET", "/login?flow=\(flow)").flatMap { LoginDocument(parsing: $0.body) }
    }

    func redirected(_ flow: String, query: String) -> RedirectDocument? {
        client.request("POST", "/login/redirect?flow=\(flow)&answer=\(PercentEncoding.encode(query))").flatMap {
            RedirectDocument(parsing: $0.body)
        }
    }

    func cancel(_ flow: String) { _ = client.request("POST", "/login/cancel?flow=\(flow)") }
    func close() {}
}

private struct OwnDesk: LoginDesk {
    let keeper: OfflineLogin

    init(_ keeper: OfflineLogin) { self.keeper = keeper }

    func begin(_ command: LoginVerb, identity: String, port: UInt16?) throws -> LoginDocument {
        let start =
            command == .login ? keeper.login(identity: identity, redirectPort: port) : keeper.logout(identity: identity)
        switch start {
        case .started(let report): return LoginDocument(report)
        case .unknown: throw refused("there is no identity '\(identity)'", 64)
        case .refused(let reason): throw refused(reason, 64)
        }
    }

    func look(_ flow: String) -> LoginDocument? { keeper.loginReport(flow).map { LoginDocument($0) } }

    func redirected(_ flow: String, query: String) -> RedirectDocument? {
        keeper.loginRedirected(flow, query: query).map { RedirectDocument($0) }
    }

    func cancel(_ flow: String) { _ = keeper.cancelLogin(flow) }
    func close() { keeper.close() }
}
