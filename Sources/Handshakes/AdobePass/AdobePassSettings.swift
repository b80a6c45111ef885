internal import Configuration
internal import Octets

/// Settings of an `adobe_pass` identity. The wire: docs/design/wire/adobe-pass.md.
struct AdobePassSettings: Sendable {
    /// Without a path.
    var base: IssuerURL
    var serviceProvider: String
    var mvpd: String
    var domainName: String?
    var redirectURL: String?
    var device = Device()
    /// For routes without one.
    let resource: ResourceTemplate?
    var quota: CallQuota
    var generation = Generation.v2
    /// Statuses by which the media service refuses a token.
    var refusals: [Int] = []
    /// Resources of which operators are told whether they would be authorized; at most 5
    /// (docs/design/wire/adobe-pass.md#preauthorize).
    var preauthorized: [String] = []

    /// The generation of Adobe's REST API. A login made with one is none for the other (docs/design/wire/adobe-pass.md#generations).
    enum Generation: String, Sendable, CaseIterable {
        case v2 = "v2"
        case v1 = "v1"
    }

    /// The device that `X-Device-Info` tells of (docs/design/wire/adobe-pass.md#headers).
    struct Device: Sendable {
        /// nil: made once and kept.
        var id: String?
        var model = "cardea"
        var version = "1.0"
        var hardware = "Unknown"
        var system = "Linux"
        var systemVersion = "6.1"
        var connection = "Ethernet"

        var header: String {
            var info = JSONBody(capacity: 512)
            info.member("primaryHardwareType", hardware)
            info.member("model", model)
            info.member("version", version)
            info.member("osName", system)
            info.member("osVersion", systemVersion)
            info.member("connectionType", connection)
            return Base64.encode(info.finish())
        }
    }

    /// Nanoseconds between two looks at whether the person is through; Adobe asks for 3 to 5 s (docs/design/wire/adobe-pass.md#wait).
    static let pollInterval: UInt64 = 3_000_000_000
    /// The longest that a code is waited for, whatever the server says: an hour.
    static let longestLogin: UInt64 = 3_600_000_000_000
    /// Attempts at a call that the server itself asks to try again.
    static let mostTries = 3
}

// MARK: - Endpoints

extension AdobePassSettings {
    var register: String { "/o/client/register" }
    var token: String { "/o/client/token" }
    var sessions: String { "\(api)/sessions" }
    var profile: String { "\(api)/profiles/\(mvpd)" }
    var authorize: String { "\(api)/decisions/authorize/\(mvpd)" }
    var preauthorize: String { "\(api)/decisions/preauthorize/\(mvpd)" }
    var logout: String { "\(api)/logout/\(mvpd)" }

    func session(_ code: String) -> String { "\(sessions)/\(code)" }
    func profile(code: String) -> String { "\(api)/profiles/code/\(code)" }

    private var api: String { "/api/v2/\(serviceProvider)" }

    func url(_ path: String) throws(GrantFailure) -> IssuerURL {
        guard let url = base.appending(path: path) else {
            throw .configuration(reason: "base_url, service_provider, mvpd: not a URL")
        }
        return url
    }
}
