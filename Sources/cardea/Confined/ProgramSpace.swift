import Configuration
import DataPath
import Gateway
import Glibc
import Reactor

/// The place in which the program runs.
enum ProgramSpace {
    /// In namespaces of its own, where it waits.
    case own(Confinement)
    /// The place of everybody, for the reason.
    case everybodys(String)

    /// Before any thread, sandbox or secret.
    init(_ command: [String]) {
        do throws(Confinement.Fault) { self = .own(try Confinement(command)) } catch { self = .everybodys("\(error)") }
    }

    /// Opens every TCP listener inside; none where there is no inside.
    func open(_ listeners: [Listener]) throws(GatewayFault) -> [HandedSocket] {
        guard case .own(let confinement) = self else { return [] }
        var sockets: [HandedSocket] = []
        for listener in listeners {
            guard case .tcp = listener.address, let address = SocketAddress(parsing: "\(listener.address)") else {
                continue
            }
            do throws(Confinement.Fault) {
                sockets.append(
                    HandedSocket(address: "\(listener.address)", descriptor: try confinement.listen(on: address)))
            } catch {
                throw GatewayFault(
                    "--confine: listener '\(listener.name)': \(listener.address): \(error); the program's network has loopback alone"
                )
            }
        }
        return sockets
    }
}
