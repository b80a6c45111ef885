internal import Handshakes
internal import Synchronization
internal import Telemetry

/// Which server a grant has asked last: a step's name alone does not say which of several servers is meant when it fails.
package final class IssuerTrail: Sendable {
    private let last = Mutex<String?>(nil)
    private let made = Mutex<[TracedCall]>([])

    /// Calls that are remembered; a handshake makes fewer.
    static let mostCalls = 32

    /// The calls that are over, in their order.
    var calls: [TracedCall] { made.withLock { $0 } }

    func note(_ call: TracedCall) {
        made.withLock { if $0.count < Self.mostCalls { $0.append(call) } }
    }

    /// `host:port`; nil until something was asked.
    package var server: String? { last.withLock { $0 } }

    func asks(_ url: IssuerURL) {
        let host = url.host.contains(":") ? "[\(url.host)]" : url.host
        last.withLock { $0 = "\(host):\(url.port)" }
    }

    package static func words(_ reason: String, asking server: String?) -> String {
        server.map { "\(reason) (at \($0))" } ?? reason
    }
}

/// One call to an issuer as its span tells it: no address, no path, no step's name, which a recipe chooses.
struct TracedCall: Sendable {
    /// Nanoseconds since the machine's start.
    let start: UInt64
    let end: UInt64
    let method: SpanMethod
    /// 0 where there was no answer.
    let status: UInt16

    var isFailed: Bool { status == 0 || status >= 400 }
}
