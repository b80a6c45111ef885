internal import Handshakes
internal import Synchronization

/// Which server a grant has asked last: a step's name alone does not say which of several servers is meant when it fails.
package final class IssuerTrail: Sendable {
    private let last = Mutex<String?>(nil)

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
