import Glibc
internal import Numbers
internal import Octets
import Reactor

/// Speaks to the admin socket of the running gateway.
///
/// A signal that comes meanwhile does not end the wait: whoever catches it looks at it afterwards, and has the answer by then.
struct AdminClient {
    /// Seconds. The gateway itself holds an answer back for up to five, until what it says is on the disk; a busy machine takes its part.
    private static let patience = 10

    private let path: String

    init(_ path: String) { self.path = path }

    struct Answer {
        let status: Int
        let body: String
    }

    /// Nil when nobody answers within ten seconds.
    func request(_ method: String, _ target: String) -> Answer? {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var time = timeval(tv_sec: Self.patience, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        guard connect(descriptor) else { return nil }
        let message = Array("\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8)
        let sent = uninterrupted { send(descriptor, message, message.count, Int32(MSG_NOSIGNAL)) }
        guard sent == message.count else { return nil }
        var received: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 * 1024)
        while received.count < 4 << 20 {
            let count = uninterrupted { recv(descriptor, &buffer, buffer.count, 0) }
            guard count > 0 else { break }
            received += buffer[..<count]
        }
        return parse(String(decoding: received, as: UTF8.self))
    }

    private func connect(_ descriptor: Int32) -> Bool {
        guard let address = SocketAddress(unixPath: path) else { return false }
        return address.withStorage { storage, length in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                uninterrupted { Int(Glibc.connect(descriptor, address, length)) } == 0
            }
        }
    }

    /// A call on a socket with a time limit is not taken up again by the kernel after a handled signal (signal(7)).
    private func uninterrupted(_ call: () -> Int) -> Int {
        while true {
            let result = call()
            if result >= 0 || errno != EINTR { return result }
        }
    }

    private func parse(_ text: String) -> Answer? {
        let words = text.split(separator: " ", maxSplits: 2)
        guard words.count >= 2, let status = ReceivedNumber(words[1])?.within(100...999) else { return nil }
        var body = ""
        if let end = text.utf8.firstRange(of: "\r\n\r\n".utf8) { body = String(text[end.upperBound...]) }
        while body.last?.isNewline == true { body.removeLast() }
        return Answer(status: status, body: body)
    }
}
