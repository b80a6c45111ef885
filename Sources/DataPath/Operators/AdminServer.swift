internal import CLinux
internal import Glibc
internal import HTTP1
package import Reactor
internal import Telemetry

/// A request to the admin address, the probes or metrics address, or the admin socket.
public struct AdminRequest: Sendable {
    /// The request method (RFC 9110 §9).
    public var method: String
    /// Without the query.
    public var path: String
    /// The text behind `?`, not decoded; empty where there is none.
    public var query: String
    /// Which address or socket the request came by.
    public var entrance: Entrance
    /// `Authorization` as received; for the comparison with the admin token only.
    public var authorization: String?
    /// A browser says that a page of this very address made the request.
    public var isOwnPage = false

    /// The ways to the admin server, which may ask for different things.
    public enum Entrance: Sendable {
        case listen
        /// For kubelets: health only, from anywhere.
        case probes
        /// For Prometheus: metrics only, from anywhere.
        case metrics
        /// The command line's way in. Its peer is our user or root.
        case socket
    }
}

/// An answer of the admin server, sent whole.
public struct AdminAnswer: Sendable {
    /// The status code (RFC 9110 §15).
    public var status: Int
    /// The value of `Content-Type`.
    public var contentType: String
    /// The content, whose size becomes `Content-Length`.
    public var body: [UInt8]
    /// Further fields.
    public var fields: [(name: String, value: String)]
    /// Set: what was changed is to outlast the process, so the answer leaves when the store has everything; if the store cannot, what this
    /// makes of its reason leaves instead.
    public var unlessStored: (@Sendable (_ reason: String) -> AdminAnswer)?

    /// Memberwise; `body` is sent as UTF-8.
    public init(_ status: Int, _ contentType: String, _ body: String, fields: [(name: String, value: String)] = []) {
        self.status = status
        self.contentType = contentType
        self.body = Array(body.utf8)
        self.fields = fields
    }
}

/// Says what an admin request is answered with. Called on the keeper's loop, so it must not block.
public protocol AdminResponder: Sendable {
    func answer(_ request: AdminRequest) -> AdminAnswer
}

/// Serves the admin addresses on the keeper's loop, with the parser and limits of the data path.
package final class AdminServer: @unchecked Sendable {
    let loop: Loop
    let responder: any AdminResponder
    let buffers = LoopBuffers(blocks: 128, largeLimit: 4 << 20, scratchSize: 1024)
    /// Bytes of large answers that their readers have not taken yet.
    fileprivate var unread = 0
    /// Metrics of ten thousand routes to as many upstreams are half of it.
    fileprivate static let mostUnread = 128 << 20
    let hosts: [[UInt8]]
    private var connections: [AdminConnection] = []
    private var doors: [AdminDoor] = []
    private var held: [(door: AdminDoor, descriptor: Int32)] = []
    fileprivate var isLeaving = false

    /// Calls back on the loop when the store has everything that it was given before, or with the reason why not.
    package typealias Barrier = @Sendable (@escaping @Sendable (_ reason: String?) -> Void) -> Void
    private let whenStored: Barrier
    /// Connections whose answers wait for the store, by the number of the wait: a connection that is closed meanwhile leaves, and another
    /// one may take its place in memory.
    private var waiting: [UInt64: AdminConnection] = [:]
    private var waits: UInt64 = 0

    static let connectionLimit = 64
    /// The most connections of one address at one entrance.
    static let addressLimit = 16

    package init(loop: Loop, responder: any AdminResponder, hosts: [String], whenStored: @escaping Barrier) {
        self.loop = loop
        self.responder = responder
        self.whenStored = whenStored
        self.hosts = (["localhost"] + hosts).map { Array($0.lowercased().utf8) }
    }

    /// Before `open`: whoever connects waits.
    package func hold(_ descriptor: Int32, of address: SocketAddress, entrance: AdminRequest.Entrance) {
        held.append((AdminDoor(server: self, address: address, entrance: entrance), descriptor))
    }

    /// From now on operators and monitors are answered.
    /// - Returns: false when the kernel refuses to watch one of the sockets.
    package func open() -> Bool {
        defer { held = [] }
        return held.reduce(true) { all, next in
            doors.append(next.door)
            return loop.watch(next.door, descriptor: next.descriptor) && all
        }
    }

    package var addresses: [SocketAddress] { doors.map(\.address) + held.map(\.door.address) }

    package var sockets: [(address: SocketAddress, descriptor: Int32)] { doors.map { ($0.address, $0.descriptor) } }

    /// Another process has these sockets and answers from now on; who is connected is sent there with the next answer.
    package func leave(_ addresses: Set<SocketAddress>) {
        isLeaving = true
        for door in doors where addresses.contains(door.address) {
            loop.pause(door)
            loop.close(door)
        }
        doors.removeAll { addresses.contains($0.address) }
    }

    /// - Parameter address: the other end's; empty for a unix socket.
    fileprivate func admit(_ descriptor: Int32, from address: [UInt8], entrance: AdminRequest.Entrance) {
        // Each entrance has its own: whoever can reach the open probes port must not lock the operator out.
        guard entrance != .socket || isOwner(descriptor),
            makeRoom(at: entrance, limit: Self.addressLimit, { !address.isEmpty && $0.address == address }),
            makeRoom(at: entrance, limit: Self.connectionLimit, { _ in true })
        else { return loop.kernel.close(descriptor) }
        let connection = AdminConnection(server: self, entrance: entrance, address: address)
        guard loop.watch(connection, descriptor: descriptor) else { return loop.kernel.close(descriptor) }
        connections.append(connection)
        connection.begin()
    }

    /// At the limit, the one gives way on which nothing has moved the longest: it asks for nothing, or does not read what it asked for.
    /// - Returns: false when all are being answered and read.
    private func makeRoom(
        at entrance: AdminRequest.Entrance, limit: Int, _ counts: (AdminConnection) -> Bool
    ) -> Bool {
        let present = connections.filter { $0.entrance == entrance && counts($0) }
        guard present.count >= limit else { return true }
        for connection in present { connection.look() }
        guard let oldest = present.filter(\.mayGiveWay).min(by: { $0.progress.at < $1.progress.at }) else {
            return false
        }
        oldest.close()
        return true
    }

    /// Our user and root, by the kernel's word.
    private func isOwner(_ descriptor: Int32) -> Bool {
        guard let user = loop.kernel.peerUser(descriptor) else { return false }
        return user == 0 || user == geteuid()
    }

    fileprivate func wait(_ connection: AdminConnection) {
        waits += 1
        let number = waits
        waiting[number] = connection
        whenStored { [weak self] reason in
            self?.waiting.removeValue(forKey: number)?.stored(reason)
        }
    }

    fileprivate func closed(_ connection: AdminConnection) {
        forget(connection)
        connections.removeAll { $0 === connection }
    }

    fileprivate func forget(_ connection: AdminConnection) {
        if !waiting.isEmpty { waiting = waiting.filter { $0.value !== connection } }
    }
}

private final class AdminDoor: Watched {
    private unowned let server: AdminServer
    let address: SocketAddress
    private let entrance: AdminRequest.Entrance

    init(server: AdminServer, address: SocketAddress, entrance: AdminRequest.Entrance) {
        self.server = server
        self.address = address
        self.entrance = entrance
        super.init(loop: server.loop)
    }

    override func timerFired(_ kind: UInt8) { ready(.readable) }

    override func ready(_ readiness: Readiness) {
        var address = sockaddr_storage()
        var length: socklen_t = 0
        while true {
            let accepted = loop.kernel.accept(descriptor, from: &address, length: &length)
            if accepted >= 0 {
                let peer = SocketAddress(storage: address, length: length)
                server.admit(accepted, from: peer?.ipBytes ?? [], entrance: entrance)
            } else if -accepted == EAGAIN {
                return
            } else if -accepted != EINTR, -accepted != ECONNABORTED {
                // Out of descriptors: what waits in the backlog has had its edge, so we look again ourselves.
                _ = loop.arm(self, at: loop.now + 200_000_000, kind: 0)
                return
            }
        }
    }
}

/// A connection of an operator or a monitor. No body of a request matters: a request with one is answered, and the connection closed.
private final class AdminConnection: Channel {
    private unowned let server: AdminServer
    let entrance: AdminRequest.Entrance
    /// The other end's IP address; empty for a unix socket.
    let address: [UInt8]
    private(set) var progress: ReadingProgress
    /// When nothing was due any more; in between there are looks at an answer's reader.
    private var due: UInt64 = 0
    /// Some of a request's head is there, and the rest is due.
    private var hasBegun = true
    private var head = RequestHead(maxFields: 64)
    private var isClosing = false
    /// The answer, as far as it is larger than what is written at a time: metrics of thousands of routes are larger than the blocks of all
    /// connections together.
    private var answer: [UInt8] = []
    private var written = 0
    private static let piece = 64 * 1024
    /// `serve` is running, and goes on by itself with the next request.
    private var isServing = false
    /// The answer to a change, which waits for the store.
    private var held: (answer: AdminAnswer, isLast: Bool)?
    /// A disk that hangs is told of after five seconds.
    private static let patience: UInt64 = 5_000_000_000
    /// Nanoseconds for a request's head, and for the first from the connection's beginning.
    private static let headTime: UInt64 = 2_000_000_000
    /// Nanoseconds for the next request, and for whoever reads an answer.
    private static let idleTime: UInt64 = 30_000_000_000
    /// Nanoseconds between two looks at whether an answer is read.
    private static let lookTime: UInt64 = 1_000_000_000

    private static let limits = HeadLimits(headSize: 16 * 1024, fields: 64, target: 2048)
    /// The command line hands on what a browser came back with.
    private static let socketLimits = HeadLimits(headSize: 32 * 1024, fields: 64, target: 28 * 1024)

    init(server: AdminServer, entrance: AdminRequest.Entrance, address: [UInt8]) {
        self.server = server
        self.entrance = entrance
        self.address = address
        progress = ReadingProgress(at: server.loop.now)
        super.init(loop: server.loop, buffers: server.buffers)
    }

    func begin() {
        canWrite = true
        allow(Self.headTime)
    }

    /// Who waits for the store is kept from reading by us.
    var mayGiveWay: Bool { held == nil && (!isAnswering || progress.isStalled(at: loop.now)) }

    /// Notes whether the answer's reader has taken some of it. The socket alone would not show that: it asks for more only when a large
    /// part of its buffer is free, which a slow reader needs half a minute for.
    func look() {
        guard isAnswering else { return }
        progress.note(left: pendingCount + answer.count - written + loop.kernel.unsentCount(descriptor), at: loop.now)
    }

    private func allow(_ time: UInt64) {
        due = loop.now + time
        expect(by: due, kind: 0)
    }

    override func deadlinePassed(_ kind: UInt8) {
        if loop.now < due {
            look()
            return expect(by: isAnswering ? min(due, loop.now + Self.lookTime) : due, kind: 0)
        }
        guard held != nil else { return close() }
        server.forget(self)
        stored("it does not answer")
    }

    override func ready(_ readiness: Readiness) {
        note(readiness)
        guard readiness.isDisjoint(with: [.failed, .hungUp]), flush(), write() else { return close() }
        if isClosing {
            if !isAnswering { close() }
            return
        }
        serve()
    }

    private var isAnswering: Bool { hasPending || !answer.isEmpty || held != nil }

    /// Writes as much of the answer as its reader takes.
    /// - Returns: false when the connection is lost.
    private func write() -> Bool {
        while !answer.isEmpty, !hasPending {
            let end = min(written + Self.piece, answer.count)
            let isTaken = answer.withUnsafeBytes { send(UnsafeRawBufferPointer(rebasing: $0[written..<end])) }
            guard isTaken else { return false }
            written = end
            if written == answer.count { dropAnswer() }
        }
        return true
    }

    private func dropAnswer() {
        if answer.count > Self.piece { server.unread -= answer.count }
        answer = []
        written = 0
    }

    private func serve() {
        // An answer that did not have to wait comes here out of the loop below, which goes on by itself.
        guard !isServing else { return }
        isServing = true
        defer { isServing = false }
        while !isClosing, !isAnswering {
            if end > start {
                do throws(HeadFault) {
                    head.reset()
                    if let length = try head.parse(
                        input.octets, limits: entrance == .socket ? Self.socketLimits : Self.limits)
                    {
                        respond(length)
                        continue
                    }
                } catch { return send(AdminAnswer(error.status, "text/plain", "\(error.reason)\n"), closing: true) }
            }
            switch fill() {
            case .bytes: break
            case .notNow:
                if end > start, !hasBegun {
                    hasBegun = true
                    allow(Self.headTime)
                }
                return
            case .blockFull: return send(AdminAnswer(431, "text/plain", "request too large\n"), closing: true)
            default: return close()
            }
        }
    }

    private func respond(_ length: Int) {
        let closing = head.framing != .none || !head.keepAlive || server.isLeaving
        let answer = checked() ?? server.responder.answer(request())
        let isHead = head.knownMethod == .head
        start += length
        compact()
        guard answer.unlessStored != nil else { return send(answer, closing: closing, headOnly: isHead) }
        held = (answer, closing)
        allow(Self.patience)
        server.wait(self)
    }

    fileprivate func stored(_ reason: String?) {
        guard let (answer, isLast) = held else { return }
        held = nil
        send(reason.flatMap { answer.unlessStored?($0) } ?? answer, closing: isLast || server.isLeaving)
        // Requests that were received behind this one have had their edge.
        if !isClosing { serve() }
    }

    /// Page and metrics must not be readable by a web page: no foreign names, no requests that a browser marks as another site's.
    private func checked() -> AdminAnswer? {
        guard entrance == .listen || entrance == .metrics else { return nil }
        if let host = head.host ?? head.authority {
            var name = input[host]
            if let colon = name.lastIndex(of: UInt8(ascii: ":")), name.last != UInt8(ascii: "]") {
                name = UnsafeRawBufferPointer(rebasing: name[..<colon])
            }
            let text = String(decoding: name, as: UTF8.self)
            let literal = text.hasPrefix("[") ? String(text.dropFirst().dropLast()) : text
            if SocketAddress(host: literal, port: 1) == nil,
                !server.hosts.contains(where: { equalsIgnoringCase(name, $0) })
            {
                return AdminAnswer(421, "text/plain", "this host is not served here; name it in admin.hosts\n")
            }
        }
        if head.contains(.origin), !isOwnOrigin {
            return AdminAnswer(403, "text/plain", "requests of web pages are not admitted\n")
        }
        for index in 0..<head.fieldCount where head[index].known == .secFetchSite {
            let value = input[head[index].value]
            if !value.elementsEqual("same-origin".utf8), !value.elementsEqual("none".utf8) {
                return AdminAnswer(403, "text/plain", "requests of other sites are not admitted\n")
            }
        }
        return nil
    }

    /// The page's own buttons. The name behind `Host` has been found to be ours, so no other site can have this origin.
    private var isOwnOrigin: Bool {
        guard head.contains(.origin), let host = head.host ?? head.authority, !host.isEmpty else { return false }
        let name = String(decoding: input[host], as: UTF8.self).lowercased()
        for index in 0..<head.fieldCount where head[index].known == .origin {
            let text = String(decoding: input[head[index].value], as: UTF8.self).lowercased()
            guard text == "http://" + name || text == "https://" + name else { return false }
        }
        return true
    }

    private func request() -> AdminRequest {
        let target = String(decoding: input[head.path], as: UTF8.self)
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        return AdminRequest(
            method: String(decoding: input[head.method], as: UTF8.self), path: String(parts.first ?? "/"),
            query: parts.count > 1 ? String(parts[1]) : "", entrance: entrance,
            authorization: head.first(.authorization).map { String(decoding: input[$0], as: UTF8.self) },
            isOwnPage: isOwnOrigin
                || head.first(.secFetchSite).map { input[$0].elementsEqual("same-origin".utf8) } ?? false)
    }

    private func send(_ answer: AdminAnswer, closing: Bool, headOnly: Bool = false) {
        var text = "HTTP/1.1 \(answer.status) \(reasonPhrase(answer.status))\r\nContent-Type: \(answer.contentType)\r\n"
        text += "Content-Length: \(answer.body.count)\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        for field in answer.fields { text += "\(field.name): \(field.value)\r\n" }
        if closing { text += "Connection: close\r\n" }
        text += "\r\n"
        let message = Array(text.utf8) + (headOnly ? [] : answer.body)
        if message.count > Self.piece {
            guard server.unread + message.count <= AdminServer.mostUnread else {
                return send(AdminAnswer(503, "text/plain", "too many answers wait to be read\n"), closing: true)
            }
            server.unread += message.count
        }
        self.answer = message
        hasBegun = false
        progress = ReadingProgress(at: loop.now)
        allow(Self.idleTime)
        guard write() else { return close() }
        if isAnswering {
            look()
            expect(by: loop.now + Self.lookTime, kind: 0)
        }
        if closing {
            isClosing = true
            if !isAnswering { close() }
        }
    }

    fileprivate func close() {
        // Whoever goes on in this turn must not read, and take a block for it that nobody would give back.
        isClosing = true
        held = nil
        dropAnswer()
        tearDown()
        server.closed(self)
    }
}
