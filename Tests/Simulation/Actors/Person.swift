import DataPath
import Handshakes

@testable import Gateway
@testable import Keeping
@testable import Reactor

/// The person whom the identity `human` needs: logs in at the beginning, when somebody says that it is time, and a while after a gateway has
/// said that a login is needed. Alone gateways have a login each; those of a fleet share one.
final class Person {
    static let client = "human"
    private let world: World
    /// The gateway that the login is for; nil: the fleet.
    private let place: Int?
    private var draw: Draw
    /// The login or logout under way, where it was begun.
    private var errand: Errand?
    /// The moment since which a login stands that was reported as done and kept, in nanoseconds; nil while there is none.
    private var standsSince: UInt64?
    /// The family of the login's refresh tokens, as the issuer knows it.
    private var family: String?
    /// The family of a login that is not done yet.
    private var nextFamily: String?
    private var isOver = false
    private var lastLoginAt: UInt64 = 0
    /// The moment, in nanoseconds, since which a process tells operators that no login is needed, where a caller has heard otherwise.
    private var contradictedAt: [ProcessName: UInt64] = [:]

    private struct Errand {
        let flow: String
        let process: ProcessName
        let gateway: Int
        let isLogout: Bool
        /// A login follows.
        var thenLogsIn = false
    }

    init(_ world: World, place: Int?) {
        self.world = world
        self.place = place
        draw = Draw(world.seed, Purpose.load + 5000 + UInt64(place ?? 99))
    }

    func begin() {
        world.timeline.after(.milliseconds(100)) { [self] in logIn(at: place ?? 0) }
        look()
    }

    /// Whether a login at this gateway is this person's.
    func cares(for gateway: Int) -> Bool { place.map { $0 == gateway } ?? true }

    /// The login under way has brought the first of another family of refresh tokens.
    func isGiven(_ family: String) { nextFamily = family }

    // MARK: - Errands

    func logIn(at gateway: Int) {
        start(at: gateway, isLogout: false) { $0.login(identity: Person.client, redirectPort: nil) }
    }

    /// Logs out, and in again behind that.
    func logInAnew(at gateway: Int) {
        start(at: gateway, isLogout: true) { $0.logout(identity: Person.client) }
    }

    private func start(at number: Int, isLogout: Bool, _ order: @escaping (Gateway) -> LoginStart) {
        let process = world.gateways[number]
        guard errand == nil, process.isServing, let gateway = process.gateway else { return }
        let name = process.name
        if isLogout { standsSince = nil }
        let begun = UncheckedAction { [self] in
            guard case .started(let report) = order(gateway) else { return }
            errand = Errand(
                flow: report.flow, process: name, gateway: number, isLogout: isLogout, thenLogsIn: isLogout)
            world.journal.note(
                .process, UInt64(number), [], "\(Self.client) begins to log \(isLogout ? "out" : "in") at \(name)")
        }
        _ = gateway.keeperLoop.post { begun.run() }
    }

    /// Asks twice a second how the errand is, as a terminal does.
    private func look() {
        guard !isOver else { return }
        world.timeline.after(.milliseconds(500)) { [self] in look() }
        guard let errand else { return lookForNeed() }
        let holder = world.gateways[errand.gateway]
        guard holder.name == errand.process, let gateway = holder.gateway else {
            self.errand = nil
            return
        }
        let asked = UncheckedAction { [self] in
            guard let report = gateway.loginReport(errand.flow), report.state != .running else { return }
            ended(errand, report)
        }
        _ = gateway.keeperLoop.post { asked.run() }
    }

    private func ended(_ errand: Errand, _ report: LoginReport) {
        guard self.errand?.flow == errand.flow else { return }
        self.errand = nil
        world.journal.note(
            .process, UInt64(errand.gateway), [],
            "\(Self.client)'s \(errand.isLogout ? "logout" : "login") at \(errand.process) is \(report.state): \(report.detail ?? "")"
        )
        if errand.isLogout {
            if errand.thenLogsIn { logIn(at: errand.gateway) }
        } else if report.state == .done {
            // With a reservation, such as that a restart may lose it, nothing is promised.
            family = nextFamily
            lastLoginAt = world.timeline.now
            standsSince = report.detail == nil ? world.timeline.now : nil
        }
    }

    /// A need is met some seconds later, so that it is seen that there is one where none should be.
    private func lookForNeed() {
        let numbers = place.map { [$0] } ?? Array(world.gateways.indices)
        for number in numbers where needsLogin(number) {
            let process = world.gateways[number].name
            world.timeline.after(.seconds(8)) { [self] in
                guard world.gateways[number].name == process, needsLogin(number) else { return }
                logIn(at: number)
            }
            return
        }
    }

    private func needsLogin(_ number: Int) -> Bool {
        let gateway = world.gateways[number]
        guard gateway.isServing, gateway.hasTurned, let keeper = gateway.gateway?.keeper else { return false }
        return keeper.assumeIsolated { keeper in
            keeper.identities.first { $0.plan.name == Self.client }.flatMap { keeper.loginNeed(of: $0) }?.word
                == .needed
        }
    }

    // MARK: - Verdict

    /// A gateway has told its operators that a login is needed.
    func isWanted(by process: ProcessName) {
        let told = world.timeline.now
        guard isPromised(at: process.gateway) else { return }
        // In a fleet a process that has just begun has to ask the others first.
        world.timeline.after(place == nil ? .seconds(5) : .milliseconds(50)) { [self] in
            let gateway = world.gateways[process.gateway]
            guard gateway.name == process, let since = standsSince, since < told,
                isPromised(at: process.gateway),
                needsLogin(process.gateway)
            else { return }
            world.verdicts.expect(
                false, .durable, "\(process) wants \(Self.client) to log in, whose login stands")
        }
    }

    /// A caller was told that somebody has to log in: operators have to be told so as well.
    func isSaidToBeMissing(by process: ProcessName?, askedAt: UInt64) {
        // An answer of a moment ago may be about the time before a login.
        guard let process, cares(for: process.gateway), world.gateways[process.gateway].name == process,
            errand == nil, world.timeline.now > lastLoginAt + .seconds(3)
        else { return }
        guard !needsLogin(process.gateway), world.gateways[process.gateway].isServing else {
            contradictedAt[process] = nil
            return
        }
        // The login may have been found while the answer was on its way: whoever asks afterwards has to be told the same as operators.
        let since = contradictedAt[process] ?? world.timeline.now
        contradictedAt[process] = since
        world.verdicts.expect(
            askedAt <= since, .truth,
            "\(process) tells callers that \(Self.client) has to log in, and operators that no login is needed")
    }

    /// The login stands, and nothing has happened that may lose it.
    private func isPromised(at number: Int) -> Bool {
        let disk = world.gateways[number].disk
        guard let since = standsSince, let family, World.hasStore(world.seed), disk.hasKeptItsWord,
            disk.mood == .well, world.redis?.showsLogins ?? true,
            world.timeline.now > since + .seconds(place == nil ? 1 : 0)
        else { return false }
        return world.issuer.isRenewable(family)
    }
}
