import Admin
import ArgumentParser
import Glibc
internal import Numbers
internal import Octets
import Reactor

struct Health: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Exits with 0 when the gateway lives, 1 when not; for exec probes.",
        discussion:
            "A configuration that is not good any more is told on standard error; the gateway that serves on is asked.")

    @OptionGroup var common: GatewayOptions

    @Flag(name: .long, help: "Ask whether traffic should come, not only whether it lives.")
    var ready = false

    func run() throws {
        let gateway: RunningGateway
        do throws(RunningGateway.Other) { gateway = try RunningGateway(common) } catch {
            // Whatever answers there, it is not what was asked about.
            print(common.json ? "{\"good\":false,\"status\":0}" : "\(error)")
            throw ExitCode(1)
        }
        let answer = gateway.client.request("GET", ready ? "/readyz" : "/livez")
        let good = answer?.status == 200
        if common.json {
            print("{\"good\":\(good),\"status\":\(answer?.status ?? 0)}")
        } else if !good {
            print(
                answer.map { "not \(ready ? "ready" : "alive"): \(reasons(in: $0.body) ?? $0.body)" }
                    ?? "no gateway answers at \(gateway.socket)")
        }
        if answer == nil { throw gateway.statusWithoutAnswer(1) }
        if !good { throw ExitCode(1) }
    }
}

struct Reset: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lifts the quarantine of an identity, in the running gateway.",
        discussion: "Its password or client secret will be tried again by the next request that needs it.")

    @OptionGroup var common: GatewayOptions

    @Argument(help: "The identity's name.")
    var identity: String

    func run() throws {
        let gateway = try RunningGateway.found(common)
        try gateway.requireIdentity(identity)
        guard let answer = gateway.client.request("POST", "/reset?identity=\(PercentEncoding.encode(identity))") else {
            throw gateway.absent("; is it running, with the same configuration and user?")
        }
        guard answer.status == 200 || answer.status == 204 else { throw gateway.refused(answer) }
        print(
            common.json ? "{\"reset\":\(identity.jsonQuoted)}" : "\(identity): reset; what was refused is tried again")
    }
}

/// Speaks to the admin socket of the running gateway.
struct AdminClient {
    private let path: String

    init(_ path: String) { self.path = path }

    struct Answer {
        let status: Int
        let body: String
    }

    /// Nil when nobody answers within two seconds.
    func request(_ method: String, _ target: String) -> Answer? {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var time = timeval(tv_sec: 2, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        guard connect(descriptor) else { return nil }
        let message = Array("\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8)
        guard send(descriptor, message, message.count, Int32(MSG_NOSIGNAL)) == message.count else { return nil }
        var received: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 * 1024)
        while received.count < 4 << 20 {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            received += buffer[..<count]
        }
        return parse(String(decoding: received, as: UTF8.self))
    }

    private func connect(_ descriptor: Int32) -> Bool {
        guard let address = SocketAddress(unixPath: path) else { return false }
        return address.withStorage { storage, length in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(descriptor, $0, length) } == 0
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
