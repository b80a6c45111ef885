internal import CLinux
internal import Glibc
internal import Octets

/// Turns names into addresses. `Resolver` is the real form; tests have a scripted one.
public protocol NameResolver: Sendable {
    /// - Parameter outcome: at least one address, in the order in which to try them.
    typealias Delivery = @Sendable (_ outcome: Result<[SocketAddress], ResolveFault>) -> Void

    /// Asks for the addresses of a host.
    /// - Parameters:
    ///   - host: a name of at most 253 bytes, or a literal (with or without brackets).
    ///   - deliver: called exactly once, before this returns or on another thread, where it must only pass the answer on.
    func resolve(host: String, port: UInt16, deliver: @escaping Delivery)
}

/// Turns names into addresses on a thread of its own, because `getaddrinfo` blocks for as long as the network likes.
///
/// The system's resolver is used and not one of ours: `/etc/hosts`, `nsswitch.conf` and `resolv.conf` mean what operators
/// expect. Nothing is cached here; who asks knows how long an answer may serve.
public final class Resolver: NameResolver {
    /// The lookup itself, a parameter for tests. Runs on the resolver's thread.
    public typealias Lookup = @Sendable (_ host: String, _ port: UInt16) -> Result<[SocketAddress], ResolveFault>

    /// Addresses of one answer that are used; more are cut off.
    public static let mostAddresses = 64

    private let thread: BlockingThread
    private let lookup: Lookup

    /// Starts the thread.
    /// - Parameter capacity: questions that may wait.
    public init(capacity: Int = 256, lookup: @escaping Lookup = Resolver.system) throws(LoopFault) {
        thread = try BlockingThread(name: "resolver", capacity: capacity)
        self.lookup = lookup
    }

    // MARK: - Any thread

    /// - Parameter deliver: for literals, unusable names and a full queue called before this returns, on the caller's thread; otherwise on
    ///   the resolver's thread.
    public func resolve(host: String, port: UInt16, deliver: @escaping Delivery) {
        if let literal = SocketAddress(host: host, port: port) { return deliver(.success([literal])) }
        guard Self.isName(host) else { return deliver(.failure(.invalidName)) }
        guard thread.run({ [lookup] in deliver(lookup(host, port)) }) else { return deliver(.failure(.overloaded)) }
    }

    // MARK: - Names

    /// Letters, digits, `-`, `_` and `.`: what a host name of ours may be made of. Anything else would reach name services whose
    /// rules we do not know.
    static func isName(_ host: String) -> Bool {
        guard !host.isEmpty, host.utf8.count <= 253, host.utf8.first != 0x2e, host.utf8.first != 0x2d else {
            return false
        }
        return host.utf8.allSatisfy(\.isHostNameCharacter)
    }

    /// `getaddrinfo`, with duplicates removed.
    public static let system: Lookup = { host, port in
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, nil, &hints, &list)
        guard status == 0 else { return .failure(ResolveFault(status: status)) }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = list
        while let entry = next, addresses.count < mostAddresses {
            next = entry.pointee.ai_next
            guard var address = SocketAddress(copying: entry.pointee.ai_addr, length: entry.pointee.ai_addrlen) else {
                continue
            }
            address.port = port
            if !addresses.contains(address) { addresses.append(address) }
        }
        return addresses.isEmpty ? .failure(.notFound) : .success(addresses)
    }
}

/// Why there is no address.
public enum ResolveFault: Error, Sendable, Equatable {
    /// The text cannot be a host name.
    case invalidName
    /// The name service says that there is no such name, or that it has no address.
    case notFound
    /// The name service did not answer; later it may.
    case unavailable
    /// Too many questions wait.
    case overloaded
    /// Another code of `getaddrinfo`.
    case failed(Int32)

    init(status: Int32) {
        switch status {
        case EAI_NONAME, cardea_eai_nodata(): self = .notFound
        case EAI_AGAIN: self = .unavailable
        default: self = .failed(status)
        }
    }
}
