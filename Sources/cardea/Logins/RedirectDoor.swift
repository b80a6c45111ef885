import DataPath
import Glibc
import HTTP1
import Keeping
import Reactor
import World

/// Where the browser comes back to: one address of this machine's loopback, for the length of one login (RFC 8252 §7.3).
///
/// Any page and any program of this machine can reach it. What it gets is bounded, read by the gateway's own parser, and judged by the
/// keeper; what is not the answer is told so and changes nothing.
final class RedirectDoor {
    let port: UInt16
    private let path: String
    private let descriptor: Int32
    private var visitors: [Visitor] = []

    private static let mostVisitors = 16
    private static let patience: Int = 10
    private static let limits = HeadLimits(headSize: 32 * 1024, fields: 64, target: 9 * 1024)

    struct Fault: Error { let text: String }

    private struct Visitor {
        let descriptor: Int32
        let deadline: Int
        var received: [UInt8] = []
    }

    /// - Parameter port: 0: one that the system gives.
    init(port: UInt16, path: String) throws(Fault) {
        self.path = path
        let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        let descriptor = socket(AF_INET, Int32(kind), 0)
        guard descriptor >= 0 else { throw Fault(text: "no socket for the browser") }
        var yes: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, 4)
        // By number, so that no name decides who can reach it.
        let isBound = SocketAddress(host: "127.0.0.1", port: port)?.withStorage { storage, length in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) } == 0
        }
        guard isBound == true, listen(descriptor, 16) == 0,
            let bound = ListeningSocket.boundAddress(descriptor)?.port
        else {
            close(descriptor)
            throw Fault(text: "cannot listen on 127.0.0.1:\(port) for the browser")
        }
        self.descriptor = descriptor
        self.port = bound
    }

    deinit {
        for visitor in visitors { close(visitor.descriptor) }
        close(descriptor)
    }

    /// Waits so long for somebody to come or to say more, and answers who has said enough.
    func serve(milliseconds: Int32, judge: (_ query: String) -> RedirectReply) {
        var watched = [pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)]
        watched += visitors.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
        guard poll(&watched, nfds_t(watched.count), milliseconds) >= 0 else { return }
        for index in visitors.indices.reversed() {
            let isOver =
                watched[index + 1].revents != 0 ? read(index, judge) : visitors[index].deadline < Self.seconds()
            if isOver {
                close(visitors[index].descriptor)
                visitors.remove(at: index)
            }
        }
        guard watched[0].revents != 0 else { return }
        let visitor = accept(descriptor, nil, nil)
        guard visitor >= 0 else { return }
        _ = fcntl(visitor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(visitor, F_SETFL, O_NONBLOCK)
        // Browsers open connections ahead and leave them idle: the oldest gives way.
        if visitors.count >= Self.mostVisitors { close(visitors.removeFirst().descriptor) }
        visitors.append(Visitor(descriptor: visitor, deadline: Self.seconds() + Self.patience))
    }

    private static func seconds() -> Int { Int(SystemTime().awake() / 1_000_000_000) }

    // MARK: - One visitor

    /// - Returns: whether it has been answered or has left.
    private func read(_ index: Int, _ judge: (String) -> RedirectReply) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 8192)
        let count = recv(visitors[index].descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return count == 0 || errno != EAGAIN && errno != EINTR }
        visitors[index].received += buffer[..<count]
        var head = RequestHead(maxFields: 64)
        do throws(HeadFault) {
            let received = visitors[index].received
            guard try head.parse(received.span, limits: Self.limits) != nil else { return false }
            let (status, text) = answer(head, received, judge)
            reply(status, text, to: visitors[index].descriptor)
        } catch {
            reply(error.status, "this is no request that could be an answer", to: visitors[index].descriptor)
        }
        return true
    }

    private func answer(
        _ head: borrowing RequestHead, _ received: [UInt8], _ judge: (String) -> RedirectReply
    ) -> (Int, String) {
        func text(_ range: ByteRange) -> String {
            String(decoding: received[Int(range.start)..<Int(range.end)], as: UTF8.self)
        }
        // A name of an attacker that leads to this machine is told from the browser's way back by what it asks for.
        let hosts = ["127.0.0.1:\(port)", "localhost:\(port)", "[::1]:\(port)"]
        guard let host = head.host, hosts.contains(text(host)) else { return (421, "this host is not served here") }
        guard head.knownMethod == .get, head.framing == .none else { return (405, "only GET here") }
        let target = text(head.path)
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.first.map(String.init) == path else { return (404, "nothing is here") }
        let reply = judge(parts.count > 1 ? String(parts[1]) : "")
        return (reply.isAnswer ? 200 : 400, reply.text)
    }

    private func reply(_ status: Int, _ text: String, to descriptor: Int32) {
        let body = "Cardea: \(text).\n"
        let page =
            "HTTP/1.1 \(status) \(status == 200 ? "OK" : "Refused")\r\nContent-Type: text/plain; charset=utf-8\r\n"
            + "Content-Length: \(body.utf8.count)\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
            + "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n\(body)"
        let bytes = Array(page.utf8)
        // Small enough for any socket buffer: what does not fit is for somebody who does not read.
        _ = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        shutdown(descriptor, Int32(SHUT_WR))
    }
}
