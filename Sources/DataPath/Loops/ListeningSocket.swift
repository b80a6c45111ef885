internal import CLinux
internal import Glibc
package import Reactor

/// Opens the sockets of a listener, once in the process, before any loop runs.
package struct ListeningSocket {
    package let plan: ListenerPlan
    /// By loop. An earlier process with more loops may have left more than one; one with fewer, and a port that we may not bind, leave
    /// loops without.
    package let descriptors: [[Int32]]
    /// They are copies of one, so that every loop watches the same queue.
    package let isShared: Bool

    /// - Parameter inherited: sockets that somebody bound to this address for us. All of them are kept: connections wait in their
    ///   queues, and would be reset with them.
    package static func open(
        _ plan: ListenerPlan, loops: Int, inherited: [Int32] = []
    ) throws(ListenFault) -> ListeningSocket {
        if let first = inherited.first {
            if !plan.isUnix { for descriptor in inherited { sendWithoutDelay(descriptor) } }
            if inherited.count < loops, let socket = fill(inherited, plan, loops: loops) { return socket }
            if inherited.count == 1 { return try share(first, plan, loops: loops) }
            return ListeningSocket(plan: plan, descriptors: dealt(inherited, loops), isShared: false)
        }
        if plan.isUnix { return try share(try bind(plan, to: plan.address), plan, loops: loops) }
        try refuseSecondInstance(plan)
        let descriptors = try bindAll(plan, to: plan.address, count: loops)
        return ListeningSocket(plan: plan, descriptors: dealt(descriptors, loops), isShared: false)
    }

    /// Whether the descriptor is a stream socket that takes connections.
    package static func isListening(_ descriptor: Int32) -> Bool {
        cardea_get_option(descriptor, SOL_SOCKET, SO_ACCEPTCONN) == 1
            && cardea_get_option(descriptor, SOL_SOCKET, SO_TYPE) == Int32(SOCK_STREAM.rawValue)
    }

    private static func dealt(_ descriptors: [Int32], _ loops: Int) -> [[Int32]] {
        (0..<loops).map { loop in stride(from: loop, to: descriptors.count, by: loops).map { descriptors[$0] } }
    }

    /// Inherited sockets of a process with fewer loops, and one more for each loop that would have none.
    /// - Returns: nil where the address takes no more sockets, as where a service manager bound the one.
    private static func fill(_ inherited: [Int32], _ plan: ListenerPlan, loops: Int) -> ListeningSocket? {
        guard !plan.isUnix, inherited.allSatisfy({ cardea_get_option($0, SOL_SOCKET, SO_REUSEPORT) == 1 }),
            let bound = boundAddress(inherited[0])
        else { return nil }
        guard let more = try? bindAll(plan, to: bound, count: loops - inherited.count) else { return nil }
        return ListeningSocket(plan: plan, descriptors: dealt(inherited + more, loops), isShared: false)
    }

    private static func bindAll(
        _ plan: ListenerPlan, to address: SocketAddress, count: Int
    ) throws(ListenFault) -> [Int32] {
        var descriptors: [Int32] = []
        var address = address
        for _ in 0..<count {
            do throws(ListenFault) {
                let descriptor = try bind(plan, to: address)
                descriptors.append(descriptor)
                // The port that the kernel chose when the configuration said 0.
                if let bound = boundAddress(descriptor) { address = bound }
            } catch {
                for descriptor in descriptors { close(descriptor) }
                throw error
            }
        }
        return descriptors
    }

    /// Makes a descriptor for each loop even where the socket is one: each loop closes its own.
    private static func share(
        _ descriptor: Int32, _ plan: ListenerPlan, loops: Int
    ) throws(ListenFault) -> ListeningSocket {
        var descriptors = [descriptor]
        while descriptors.count < loops {
            let copy = fcntl(descriptors[0], F_DUPFD_CLOEXEC, 0)
            guard copy >= 0 else {
                let failure = ListenFault(address: plan.text, call: "fcntl", errno: errno)
                for descriptor in descriptors { close(descriptor) }
                throw failure
            }
            descriptors.append(copy)
        }
        return ListeningSocket(plan: plan, descriptors: descriptors.map { [$0] }, isShared: true)
    }

    /// `SO_REUSEPORT` would let a second process of ours share the port and its callers unseen; a bind without it finds the first one.
    private static func refuseSecondInstance(_ plan: ListenerPlan) throws(ListenFault) {
        guard !plan.isUnix, plan.address.port != 0 else { return }
        let trial = cardea_stream_socket(plan.address.socketFamily)
        guard trial >= 0 else { throw ListenFault(address: plan.text, call: "socket", errno: errno) }
        defer { close(trial) }
        _ = cardea_set_option(trial, SOL_SOCKET, SO_REUSEADDR, 1)
        if plan.address.socketFamily == AF_INET6 { _ = cardea_set_option(trial, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1) }
        guard plan.address.withStorage({ cardea_bind(trial, $0, $1) }) == 0, listen(trial, 1) == 0 else {
            throw ListenFault(address: plan.text, call: "bind", errno: errno)
        }
    }

    private static func bind(_ plan: ListenerPlan, to address: SocketAddress) throws(ListenFault) -> Int32 {
        let descriptor = cardea_stream_socket(address.socketFamily)
        guard descriptor >= 0 else { throw ListenFault(address: plan.text, call: "socket", errno: errno) }
        if plan.isUnix {
            removeStaleSocket(address)
        } else {
            _ = cardea_set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
            _ = cardea_set_option(descriptor, SOL_SOCKET, SO_REUSEPORT, 1)
            sendWithoutDelay(descriptor)
            if address.socketFamily == AF_INET6 {
                _ = cardea_set_option(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1)
            }
        }
        // Without the right to it there can be no TPROXY rule that leads here either; REDIRECT needs none.
        if plan.forward.mode == .transparent { _ = cardea_set_transparent(descriptor, address.socketFamily) }
        let bound = address.withStorage { cardea_bind(descriptor, $0, $1) }
        guard bound == 0 else {
            let failure = ListenFault(
                address: plan.text, call: "bind", errno: errno, meetsFile: errno == EADDRINUSE && isNoSocket(address))
            close(descriptor)
            throw failure
        }
        // The file gets its rights before `listen`: until then nobody can connect.
        if let rights = plan.file, let path = address.unixPath, let failure = rights.give(path, of: plan) {
            close(descriptor)
            unlink(path)
            throw failure
        }
        guard listen(descriptor, Int32(Acceptor.backlog)) == 0 else {
            let failure = ListenFault(address: plan.text, call: "listen", errno: errno)
            close(descriptor)
            throw failure
        }
        return descriptor
    }

    /// Connections have this from their listening socket (Linux), which spares a call for each.
    private static func sendWithoutDelay(_ listening: Int32) {
        _ = cardea_set_option(listening, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
    }

    private static func isNoSocket(_ address: SocketAddress) -> Bool {
        guard let path = address.unixPath else { return false }
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFSOCK
    }

    /// A socket file that nobody listens on is what a killed process leaves behind; one that answers belongs to somebody.
    package static func removeStaleSocket(_ address: SocketAddress) {
        guard let path = address.unixPath, !path.isEmpty else { return }
        // A mistyped path may name a file of somebody's; only a socket can be a leftover of ours.
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return }
        let probe = cardea_stream_socket(AF_UNIX)
        guard probe >= 0 else { return }
        defer { close(probe) }
        let connected = address.withStorage { cardea_connect(probe, $0, $1) }
        if connected != 0, errno == ECONNREFUSED { unlink(path) }
    }

    package static func boundAddress(_ descriptor: Int32) -> SocketAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        return result == 0 ? SocketAddress(storage: storage, length: length) : nil
    }
}

extension SocketRights {
    /// - Returns: why the file at `path` could not be given them.
    fileprivate func give(_ path: String, of plan: ListenerPlan) -> ListenFault? {
        guard chmod(path, mode) == 0 else { return ListenFault(address: plan.text, call: "chmod", errno: errno) }
        guard let group, lchown(path, uid_t.max, group) != 0 else { return nil }
        return ListenFault(address: plan.text, call: "chown", errno: errno)
    }
}
