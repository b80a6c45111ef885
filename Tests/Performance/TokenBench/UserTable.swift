import Glibc
import Octets
import TLS
import TokenStore
import Tokens

/// A million end users with a token each, through the gateway: its store is filled with copies of the one row that it wrote itself, and
/// a caller asks for users by Zipf's law, one after the other. The API answers with the name that it reads in the token.
enum UserTable {
    struct Result: Sendable {
        var requests = 0
        /// Served from the hot cache: no wait for the token at all.
        var hits = 0
        /// Answers for somebody else, or other than 200.
        var wrong = 0
        var seconds = 0.0
        /// Microseconds that the gateway waited for a spilled token, and that whole requests took.
        var lookups: [UInt32] = []
        var all: [UInt32] = []
    }

    static let nameLength = 12

    static func name(_ number: Int) -> [UInt8] {
        let digits = Array("\(number)".utf8)
        return Array("user-".utf8) + [UInt8](repeating: UInt8(ascii: "0"), count: 7 - digits.count) + digits
    }

    // MARK: - Filling

    /// Copies the row of user 0 for the others. All names have one length, so they are put into token and key in its place.
    static func fill(_ path: String, key: String, tokens: Int) throws {
        guard let seal = Base64.decode(Array(key.utf8)) else { giveUp("not base 64") }
        let ring = try SealingKeyRing([try SealingKey(bytes: seal)])
        // Every kind is read at opening here, so that the row can be found.
        let store = TokenStore(path: path, keys: ring)
        guard case .owner = store.open(now: 0) else { giveUp("the store cannot be opened") }
        let rows = store.restore()
        let first = name(0)
        guard let template = rows.first(where: { (try? KeyCodec.accessKey($0.key))?.subject?.bytes == first }),
            var accessKey = try? KeyCodec.accessKey(template.key)
        else { giveUp("the gateway has left no row of user 0") }
        let places = template.value.indices.dropLast(nameLength).filter {
            template.value[$0..<$0 + nameLength].elementsEqual(first)
        }
        // A token without the name could not be checked.
        guard !places.isEmpty else { giveUp("the token does not name its user") }
        let pending = Pending()
        for start in stride(from: 1, to: tokens, by: 2_000) {
            var changes: [StoreChange] = []
            for number in start..<min(start + 2_000, tokens) {
                let name = name(number)
                accessKey.subject = ByteString(name)
                var row = template
                row.key = KeyCodec.encode(accessKey)
                for place in places { row.value.replaceSubrange(place..<place + nameLength, with: name) }
                changes.append(.put(row))
            }
            pending.begin()
            store.commit(changes) { outcome in
                // Rows that are missing would be counted as new users by the table.
                if case .failure = outcome { giveUp("the store did not take every row") }
                pending.end()
            }
        }
        while !store.close() {}
    }

    private final class Pending: @unchecked Sendable {
        private let room = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
        init() { sem_init(room, 0, 4) }
        func begin() { while sem_wait(room) != 0 {} }
        func end() { sem_post(room) }
    }

    // MARK: - Asking

    static func load(gateway: UInt16, api: UInt16, tokens: Int, requests: Int) -> Result {
        startAPI(port: api)
        let connection = dial(gateway)
        let popular = Zipf(keys: tokens, exponent: 0.9)
        var random = SplitMix(state: 11)
        var result = Result()
        var buffer = [UInt8](repeating: 0, count: 16 * 1024)
        let began = nanoseconds()
        for _ in 0..<requests {
            // The most popular users lie all over the file.
            let name = name((popular.next(&random) &* 611_953 &+ 17) % tokens)
            let before = nanoseconds()
            send(
                connection,
                Array("GET / HTTP/1.1\r\nHost: 127.0.0.1:\(gateway)\r\nX-User: ".utf8) + name + [13, 10, 13, 10])
            let answer = receive(connection, &buffer)
            result.all.append(UInt32(clamping: (nanoseconds() - before) / 1000))
            result.requests += 1
            if !answer.starts(with: "HTTP/1.1 200".utf8) || !answer.suffix(nameLength).elementsEqual(name) {
                result.wrong += 1
            }
            let waited = tokenWait(in: answer)
            if waited == 0 { result.hits += 1 } else { result.lookups.append(waited) }
        }
        result.seconds = Double(nanoseconds() - began) / 1e9
        close(connection)
        result.lookups.sort()
        result.all.sort()
        return result
    }

    static func quantile(_ times: [UInt32], _ share: Double) -> Double {
        times.isEmpty ? 0 : Double(times[min(times.count - 1, Int(Double(times.count) * share))])
    }

    /// Microseconds, of `Server-Timing: cardea-token;dur=MS.MMM`.
    private static func tokenWait(in answer: ArraySlice<UInt8>) -> UInt32 {
        let mark = Array("cardea-token;dur=".utf8)
        var index = answer.startIndex
        while index + mark.count < answer.endIndex {
            if answer[index] == mark[0], answer[index..<index + mark.count].elementsEqual(mark) {
                let digits = answer[(index + mark.count)...].prefix { $0 != UInt8(ascii: ",") }
                return digits.filter { $0 != UInt8(ascii: ".") }.reduce(0) { $0 * 10 + UInt32($1 - UInt8(ascii: "0")) }
            }
            index += 1
        }
        return 0
    }

    // MARK: - Sockets

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return address
    }

    private static func dial(_ port: UInt16) -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = loopback(port)
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { giveUp("nobody listens on \(port)") }
        return descriptor
    }

    private static func send(_ descriptor: Int32, _ bytes: [UInt8]) {
        guard write(descriptor, bytes, bytes.count) == bytes.count else { giveUp("a short write") }
    }

    /// One answer, whose body is a name or a problem's text.
    private static func receive(_ descriptor: Int32, _ buffer: inout [UInt8]) -> ArraySlice<UInt8> {
        var count = 0
        let length = Array("\r\nContent-Length: ".utf8)
        let end: [UInt8] = [13, 10, 13, 10]
        while true {
            let got = buffer.withUnsafeMutableBytes {
                read(descriptor, $0.baseAddress.map { $0 + count }, $0.count - count)
            }
            guard got > 0 else { giveUp("the gateway hung up") }
            count += got
            guard let head = find(end, in: buffer[..<count]) else { continue }
            let body = find(length, in: buffer[..<head]).map { place in
                buffer[(place + length.count)..<head].prefix { $0 >= 0x30 && $0 <= 0x39 }.reduce(0) {
                    $0 * 10 + Int($1 - 0x30)
                }
            }
            if count >= head + end.count + (body ?? 0) { return buffer[..<(head + end.count + (body ?? 0))] }
        }
    }

    private static func find(_ mark: [UInt8], in bytes: ArraySlice<UInt8>) -> Int? {
        guard bytes.count >= mark.count else { return nil }
        return (bytes.startIndex...(bytes.endIndex - mark.count)).first {
            bytes[$0] == mark[0] && bytes[$0..<$0 + mark.count].elementsEqual(mark)
        }
    }

    /// Answers each request with the name in its token.
    private static func startAPI(port: UInt16) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var one: Int32 = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        var address = loopback(port)
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0, listen(listener, 16) == 0 else { giveUp("cannot listen on \(port)") }
        thread {
            while true {
                let accepted = accept(listener, nil, nil)
                guard accepted >= 0 else { return }
                thread { serve(accepted) }
            }
        }
    }

    private static func serve(_ descriptor: Int32) {
        var buffer = [UInt8](repeating: 0, count: 16 * 1024)
        let mark = Array("Authorization: Bearer ".utf8)
        var count = 0
        while true {
            let got = buffer.withUnsafeMutableBytes {
                read(descriptor, $0.baseAddress.map { $0 + count }, $0.count - count)
            }
            guard got > 0 else { break }
            count += got
            guard buffer[..<count].suffix(4).elementsEqual([13, 10, 13, 10]) else { continue }
            let place = find(mark, in: buffer[..<count])
            let name = place.map { Array(buffer[($0 + mark.count)..<($0 + mark.count + nameLength)]) } ?? []
            send(descriptor, Array("HTTP/1.1 200 OK\r\nContent-Length: \(name.count)\r\n\r\n".utf8) + name)
            count = 0
        }
        close(descriptor)
    }

    private final class Work {
        let run: () -> Void
        init(_ run: @escaping () -> Void) { self.run = run }
    }

    private static func thread(_ run: @escaping () -> Void) {
        var handle = pthread_t()
        let work = Unmanaged.passRetained(Work(run)).toOpaque()
        let status = pthread_create(
            &handle, nil,
            { argument in
                if let argument { Unmanaged<Work>.fromOpaque(argument).takeRetainedValue().run() }
                return nil
            }, work)
        guard status == 0 else { giveUp("no thread") }
    }
}
