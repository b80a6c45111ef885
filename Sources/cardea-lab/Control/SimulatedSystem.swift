/// A simulated system: what it answers at the issuer's address, what it guards, and what a test may do to it.
protocol SimulatedSystem: Sendable {
    var ledger: Ledger { get }

    /// The name by which requests of this path are counted; nil where the system has no such endpoint.
    func operation(_ path: String) -> String?

    /// The name by which faults are limited to it.
    func step(_ operation: String, _ request: Request) -> String

    func serve(_ operation: String, _ request: Request) throws(Refusal) -> Response

    /// A refusal in the system's own words.
    func answer(to refusal: Refusal, _ operation: String) -> Response

    /// Parts of the protected site that open for the system's credentials.
    var areas: [Area] { get }

    /// Does what a test asks for; nil where that is not this system's.
    func control(_ path: String, _ body: JSON) throws(Refusal) -> JSON?

    /// Forgets its access tokens.
    func revoke()

    func reset(tokens: Bool)
}

extension SimulatedSystem {
    var faults: Faults { ledger.faults }

    func step(_ operation: String, _ request: Request) -> String { operation }
    var areas: [Area] { [] }
    func control(_ path: String, _ body: JSON) throws(Refusal) -> JSON? { nil }
    func revoke() {}
    func reset(tokens: Bool) {}

    /// Serves and counts.
    func answer(_ operation: String, _ request: Request) -> Response {
        ledger.count(operation)
        do {
            let response = try serve(operation, request)
            ledger.count("\(operation)_ok")
            return response
        } catch {
            ledger.refuse("\(operation): \(error.status) \(error.code): \(error.why)")
            return error.answer ?? answer(to: error, operation)
        }
    }
}

/// A part of the protected site with credentials of its own.
struct Area: Sendable {
    enum Verdict: Sendable {
        /// With the fields that the gate adds to the answer.
        case admitted([Field])
        case refused(Response)
    }

    /// With a slash at its end.
    let prefix: String
    /// The segment behind the prefix is the area's, too.
    var hasName = false
    let judge: @Sendable (Request) -> Verdict

    /// The resource's path within the area.
    func rest(of path: String) -> String {
        let rest = path.dropFirst(prefix.count)
        return hasName ? String(rest.drop { $0 != "/" }) : "/" + rest
    }
}
