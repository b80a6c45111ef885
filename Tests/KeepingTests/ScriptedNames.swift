import Reactor

/// Names that a test knows.
struct ScriptedNames: NameResolver {
    let known: [String: [SocketAddress]]

    init(_ known: [String: [SocketAddress]]) { self.known = known }

    func resolve(host: String, port: UInt16, deliver: @escaping Delivery) {
        deliver(known[host].map { .success($0) } ?? .failure(.notFound))
    }
}
