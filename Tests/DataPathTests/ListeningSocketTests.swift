import Glibc
import Reactor
import TemporaryFolder
import Testing

@testable import DataPath

/// Sockets of listeners as a start, an upgrade and a service manager open and leave them.
@Suite struct ListeningSocketTests {
    private let folder = TemporaryFolder("listening")

    private func plan(
        _ address: SocketAddress, file: SocketRights? = nil, forward: ForwardPlan = ForwardPlan()
    ) -> ListenerPlan {
        ListenerPlan(
            index: 0, address: address, text: address.unixPath.map { "unix:\($0)" } ?? "here",
            isUnix: address.family == .unix, isLoopback: true, routes: [], file: file, forward: forward)
    }

    private func unix(_ name: String, file: SocketRights? = nil) throws -> ListenerPlan {
        plan(try #require(SocketAddress(unixPath: "\(folder.path)/\(name)")), file: file)
    }

    /// What a listener of this plan has open, and the fault where it has none.
    private func open(_ plan: ListenerPlan, loops: Int, inherited: [Int32] = []) throws -> ListeningSocket {
        try ListeningSocket.open(plan, loops: loops, inherited: inherited)
    }

    private func fault(of plan: ListenerPlan) -> ListenFault? {
        do throws(ListenFault) {
            close(try ListeningSocket.open(plan, loops: 1))
            return nil
        } catch { return error }
    }

    private func close(_ socket: ListeningSocket) {
        for descriptor in socket.descriptors.joined() { Glibc.close(descriptor) }
    }

    /// A socket as somebody else binds it.
    private func bound(
        _ address: SocketAddress, options: [(level: Int32, name: Int32)] = [], listens: Bool = true
    ) throws -> Int32 {
        let family = address.family == .unix ? AF_UNIX : address.family == .ipv6 ? AF_INET6 : AF_INET
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue), 0)
        for option in options {
            var on: Int32 = 1
            #expect(setsockopt(descriptor, option.level, option.name, &on, 4) == 0)
        }
        #expect(Self.with(address) { bind(descriptor, $0, $1) } == 0)
        if listens { #expect(listen(descriptor, 8) == 0) }
        return descriptor
    }

    private static let shares = [(SOL_SOCKET, SO_REUSEADDR), (SOL_SOCKET, SO_REUSEPORT)]

    private static func with(_ address: SocketAddress, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        address.withStorage { storage, length in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0, length) }
        }
    }

    private static func isOn(_ descriptor: Int32, _ level: Int32, _ name: Int32) -> Bool {
        var value: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, level, name, &value, &size) == 0 && value == 1
    }

    /// Whether somebody takes a connection to this address.
    private static func answers(_ address: SocketAddress) -> Bool {
        let family = address.family == .unix ? AF_UNIX : address.family == .ipv6 ? AF_INET6 : AF_INET
        let caller = socket(family, Int32(SOCK_STREAM.rawValue), 0)
        defer { Glibc.close(caller) }
        return with(address) { connect(caller, $0, $1) } == 0
    }

    /// The number of the file behind a descriptor: copies of one socket have the same.
    private static func number(_ descriptor: Int32) -> ino_t {
        var status = stat()
        #expect(fstat(descriptor, &status) == 0)
        return status.st_ino
    }

    // MARK: - TCP

    /// Every loop has a socket of its own at the same port, so that the kernel spreads the callers.
    @Test(arguments: ["127.0.0.1", "::1"]) func everyLoopListensAtTheSamePort(host: String) throws {
        let opened = try open(plan(#require(SocketAddress(host: host, port: 0))), loops: 3)
        defer { close(opened) }
        let sockets = opened.descriptors.map(\.first).compactMap { $0 }
        let addresses = Set(sockets.compactMap { ListeningSocket.boundAddress($0) })
        #expect(sockets.count == 3 && Set(sockets.map(Self.number)).count == 3 && !opened.isShared)
        #expect(addresses.count == 1 && addresses.first?.host == host && addresses.first?.port != 0)
        #expect(sockets.allSatisfy(ListeningSocket.isListening))
        // An IPv6 socket takes no IPv4 callers, whose addresses would be written in two ways.
        #expect(sockets.allSatisfy { Self.isOn($0, Int32(IPPROTO_IPV6), IPV6_V6ONLY) == (host == "::1") })
    }

    @Test(arguments: ["127.0.0.1", "::1"]) func aSecondGatewayAtThePortIsRefused(host: String) throws {
        let first = try open(plan(#require(SocketAddress(host: host, port: 0))), loops: 2)
        let taken = try #require(first.descriptors.first?.first.flatMap { ListeningSocket.boundAddress($0) })
        let refusal = try #require(fault(of: plan(taken)))
        #expect(refusal.errno == EADDRINUSE && "\(refusal)".contains("another process listens there"))
        // The first one may be about to end.
        #expect(GatewayFault(refusal).isPassing)
        close(first)
    }

    /// A port that is bound and not listened on is nobody's yet: this one keeps the kernel from giving it to others
    /// meanwhile.
    @Test(arguments: ["127.0.0.1", "::1"]) func aPortThatNobodyListensOnIsTaken(host: String) throws {
        let address = try #require(SocketAddress(host: host, port: 0))
        let holder = try bound(address, options: Self.shares, listens: false)
        defer { Glibc.close(holder) }
        let wanted = try #require(ListeningSocket.boundAddress(holder))
        let opened = try open(plan(wanted), loops: 2)
        defer { close(opened) }
        #expect(opened.descriptors.joined().allSatisfy { ListeningSocket.boundAddress($0) == wanted })
        #expect(opened.descriptors.map(\.count) == [1, 1] && Self.answers(wanted))
    }

    /// An address that a network gives may come late at boot.
    @Test func anAddressOfAnotherMachineIsRefused() throws {
        let foreign = try #require(SocketAddress(host: "192.0.2.1", port: 0))
        let refusal = try #require(fault(of: plan(foreign)))
        #expect(refusal.call == "bind" && refusal.errno == EADDRNOTAVAIL)
        #expect("\(refusal)".contains("this machine has no such address") && GatewayFault(refusal).isPassing)
    }

    /// A rule of the firewall may lead here with TPROXY where the process has the right to it, and the listener starts
    /// without the right.
    @Test func aTransparentListenerIsOpenToForeignAddresses() throws {
        let address = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        let probe = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { Glibc.close(probe) }
        var on: Int32 = 1
        let mayBe = setsockopt(probe, Int32(IPPROTO_IP), IP_TRANSPARENT, &on, 4) == 0
        var forward = ForwardPlan()
        for mode in [ForwardPlan.Mode.transparent, .gateway] {
            forward.mode = mode
            let opened = try open(plan(address, forward: forward), loops: 1)
            let listening = try #require(opened.descriptors.first?.first)
            #expect(Self.isOn(listening, Int32(IPPROTO_IP), IP_TRANSPARENT) == (mayBe && mode == .transparent))
            close(opened)
        }
    }

    // MARK: - Inherited

    /// The process before had fewer loops: its sockets stay, for callers wait in their queues, and each other loop gets
    /// one beside them.
    @Test func loopsWithoutAnInheritedSocketGetOne() throws {
        let address = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        let inherited = try bound(address, options: Self.shares)
        let place = ListeningSocket.boundAddress(inherited)
        let opened = try open(plan(address), loops: 3, inherited: [inherited])
        defer { close(opened) }
        #expect(opened.descriptors.map(\.count) == [1, 1, 1] && opened.descriptors[0] == [inherited])
        #expect(opened.descriptors.joined().allSatisfy { ListeningSocket.boundAddress($0) == place })
        #expect(Set(opened.descriptors.joined().map(Self.number)).count == 3 && !opened.isShared)
    }

    @Test func moreInheritedSocketsThanLoopsAreAllKept() throws {
        let address = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        let first = try bound(address, options: Self.shares)
        let place = try #require(ListeningSocket.boundAddress(first))
        let others = try [bound(place, options: Self.shares), bound(place, options: Self.shares)]
        let opened = try open(plan(address), loops: 2, inherited: [first] + others)
        defer { close(opened) }
        #expect(opened.descriptors == [[first, others[1]], [others[0]]] && !opened.isShared)
    }

    /// A service manager's one socket is watched by all loops. Where it is bound to an address that is not there yet,
    /// no other can be.
    @Test(arguments: [false, true]) func anInheritedSocketThatStandsAloneIsShared(isFreelyBound: Bool) throws {
        let address = try #require(SocketAddress(host: isFreelyBound ? "192.0.2.1" : "127.0.0.1", port: 0))
        let inherited = try bound(
            address, options: isFreelyBound ? Self.shares + [(Int32(IPPROTO_IP), IP_FREEBIND)] : [])
        let opened = try open(plan(address), loops: 3, inherited: [inherited])
        defer { close(opened) }
        let sockets = Array(opened.descriptors.joined())
        #expect(opened.isShared && opened.descriptors.map(\.count) == [1, 1, 1] && Set(sockets).count == 3)
        #expect(sockets.contains(inherited) && Set(sockets.map(Self.number)).count == 1)
        // A program that is started later must not hold the port.
        #expect(sockets.allSatisfy { $0 == inherited || fcntl($0, F_GETFD) & FD_CLOEXEC != 0 })
    }

    /// What a service manager hands over may be anything.
    @Test func onlyAStreamSocketThatListensCounts() throws {
        let address = try #require(SocketAddress(unixPath: "\(folder.path)/a.sock"))
        let listening = try bound(address)
        let silent = try bound(#require(SocketAddress(host: "127.0.0.1", port: 0)), listens: false)
        let messages = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0)
        let other = try #require(SocketAddress(unixPath: "\(folder.path)/b.sock"))
        #expect(Self.with(other) { bind(messages, $0, $1) } == 0 && listen(messages, 1) == 0)
        let directory = Glibc.open(folder.path, O_RDONLY)
        defer { for descriptor in [listening, silent, messages, directory] { Glibc.close(descriptor) } }
        let descriptors = [listening, silent, messages, directory]
        #expect(descriptors.map(ListeningSocket.isListening) == [true, false, false, false])
        #expect(ListeningSocket.boundAddress(listening) == address && ListeningSocket.boundAddress(directory) == nil)
    }

    // MARK: - Unix sockets

    @Test func aUnixSocketIsOneForAllLoops() throws {
        let opened = try open(unix("a.sock", file: SocketRights(mode: 0o620, group: getegid())), loops: 2)
        defer { close(opened) }
        let sockets = Array(opened.descriptors.joined())
        #expect(opened.isShared && opened.descriptors.map(\.count) == [1, 1])
        #expect(Set(sockets).count == 2 && Set(sockets.map(Self.number)).count == 1)
        var status = stat()
        #expect(lstat("\(folder.path)/a.sock", &status) == 0 && status.st_mode == S_IFSOCK | 0o620)
        #expect(status.st_gid == getegid() && Self.answers(opened.plan.address))
    }

    /// The umask's rights are for files; without a group the process's own stays.
    @Test func rightsWithoutAGroupAreGiven() throws {
        let opened = try open(unix("a.sock", file: SocketRights(mode: 0o606, group: nil)), loops: 1)
        defer { close(opened) }
        var status = stat()
        #expect(lstat("\(folder.path)/a.sock", &status) == 0 && status.st_mode == S_IFSOCK | 0o606)
    }

    /// A killed process leaves its socket's file, which would be in the way for ever.
    @Test func aLeftoverIsReplacedAndALivingSocketIsNot() throws {
        let plan = try unix("a.sock")
        Glibc.close(try bound(plan.address))
        #expect(folder.names == ["a.sock"] && !Self.answers(plan.address))
        let first = try open(plan, loops: 1)
        defer { close(first) }
        #expect(Self.answers(plan.address))
        let refusal = try #require(fault(of: plan))
        #expect(refusal.errno == EADDRINUSE && !refusal.meetsFile && GatewayFault(refusal).isPassing)
        #expect("\(refusal)".contains("or left its socket where this user may not remove it"))
        #expect(Self.answers(plan.address))
    }

    /// A mistyped path may name somebody's file, which waiting does not turn into a socket.
    @Test func aFileThatIsNoSocketStays() throws {
        let plan = try unix("notes.txt")
        let file = creat("\(folder.path)/notes.txt", 0o600)
        #expect(write(file, "mine", 4) == 4)
        Glibc.close(file)
        let refusal = try #require(fault(of: plan))
        #expect(refusal.meetsFile && "\(refusal)".contains("a file that is no socket stands there"))
        #expect(!GatewayFault(refusal).isPassing && GatewayFault(refusal).description == "\(refusal)")
        var status = stat()
        #expect(lstat("\(folder.path)/notes.txt", &status) == 0 && status.st_size == 4)
    }

    @Test func aFolderThatIsMissingIsTold() throws {
        let refusal = try #require(fault(of: unix("none/a.sock")))
        #expect(refusal.errno == ENOENT && "\(refusal)".contains("create the folder"))
        #expect(!GatewayFault(refusal).isPassing)
    }

    /// Nothing of an IP address lies on the disk.
    @Test func onlyUnixSocketsLeaveFiles() throws {
        let stale = try #require(SocketAddress(unixPath: "\(folder.path)/a.sock"))
        Glibc.close(try bound(stale))
        ListeningSocket.removeStaleSocket(try #require(SocketAddress(host: "127.0.0.1", port: 80)))
        #expect(folder.names == ["a.sock"])
        ListeningSocket.removeStaleSocket(stale)
        #expect(folder.names == [])
    }
}
