import TLS

/// The challenges and answers of HTTP Digest (RFC 7616, SHA-256) before an API, as strict as the strictest: nonces belong to a connection and
/// end after a while, each number is taken once. It is a reading of the RFC of its own.
final class DigestGate {
    private let world: World
    private let name: String
    private var nonces: [String: Nonce] = [:]
    private var made = 0

    private struct Nonce {
        let wire: UInt64
        /// Nanoseconds.
        let end: UInt64
        var used: Set<String> = []
    }

    enum Outcome {
        /// The password that the answer was made with.
        case password(String)
        /// Nothing was answered, or a nonce that is not good here and now.
        case missing(isStale: Bool)
    }

    /// Nanoseconds that a nonce is good. A handful of requests on a connection meet its end.
    private static let life: UInt64 = .seconds(4)
    private static let realm = "api"

    init(_ world: World, name: String) {
        self.world = world
        self.name = name
    }

    /// Half of the time it does not say that a nonce was too old.
    func challenge(isStale: Bool, _ wire: Wire) -> [UInt8] {
        made += 1
        let nonce = "\(name)-\(made)"
        nonces[nonce] = Nonce(wire: wire.number, end: world.timeline.now + Self.life)
        let stale = isStale && made % 2 == 0 ? ", stale=true" : ""
        let value = #"Digest realm="\#(Self.realm)", nonce="\#(nonce)", qop="auth", algorithm=SHA-256\#(stale)"#
        return Answer.text(401, ["WWW-Authenticate: \(value)"], Array("no!\n".utf8))
    }

    func read(_ request: Message, _ values: [String], _ wire: Wire) -> Outcome {
        guard let value = values.first, value.hasPrefix("Digest ") else { return .missing(isStale: false) }
        var told: [String: String] = [:]
        for part in value.dropFirst(7).split(separator: ",") {
            let pair = part.split(separator: "=", maxSplits: 1).map(String.init)
            guard pair.count == 2 else { continue }
            let name = String(pair[0].drop { $0 == " " })
            let isNew = told.updateValue(pair[1].filter { $0 != "\"" }, forKey: name) == nil
            expect(isNew, "has \(name) twice")
        }
        expect(told["username"] == BasicGate.user, "is somebody else's")
        expect(told["realm"] == Self.realm && told["uri"] == String(request.target), "is for something else")
        guard let nonce = told["nonce"], let count = told["nc"], let cnonce = told["cnonce"], let known = nonces[nonce]
        else {
            expect(false, "has no nonce that was given")
            return .missing(isStale: true)
        }
        let key = [nonce, count, cnonce, "auth"].joined(separator: ":")
        let asked = Self.hash("\(request.method):\(request.target)")
        let password = world.issuer.everyPassword.first {
            Self.hash("\(Self.hash("\(BasicGate.user):\(Self.realm):\($0)")):\(key):\(asked)") == told["response"]
        }
        guard let password else {
            expect(false, "was made with no password that there ever was")
            return .missing(isStale: false)
        }
        guard known.wire == wire.number, world.timeline.now < known.end, !known.used.contains(count) else {
            return .missing(isStale: true)
        }
        nonces[nonce]?.used.insert(count)
        return .password(password)
    }

    private func expect(_ holds: Bool, _ fault: String) {
        world.verdicts.expect(holds, .credentialPlace, "\(name) got an answer that \(fault)")
    }

    private static func hash(_ text: String) -> String {
        let digits = Array("0123456789abcdef".utf8)
        let octets = sha256(Array(text.utf8)).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return String(decoding: octets, as: UTF8.self)
    }
}
