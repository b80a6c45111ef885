/// `adobe_pass`: Adobe Pass Authentication (docs/design/wire/adobe-pass.md).
public struct AdobePassHandshake: Sendable, Equatable {
    public enum API: String, Sendable, CaseIterable {
        case v2 = "v2"
        case v1 = "v1"
    }

    /// Words of `X-Device-Info`: closed lists.
    public enum Hardware: String, Sendable, CaseIterable {
        case unknown = "Unknown"
        case desktop = "Desktop"
        case setTopBox = "SetTopBox"
        case mediaPlayer = "MediaPlayer"
        case tv = "TV"
    }

    public enum System: String, Sendable, CaseIterable {
        case linux = "Linux"
        case android = "Android"
        case chromeOS = "Chrome OS"
        case macOS = "Mac OS"
        case osX = "OS X"
        case openBSD = "OpenBSD"
        case rokuOS = "Roku OS"
        case windows = "Windows"
        case iOS = "iOS"
        case tvOS = "tvOS"
        case webOS = "webOS"
    }

    public var api: API
    public var base: ServiceURL
    public var serviceProvider: String
    public var mvpd: String
    public var softwareStatement: SecretReference
    public var domainName: String?
    /// As it is written; nil: the domain itself.
    public var redirectURL: String?
    /// For routes without one.
    public var resource: ResourceTemplate?
    /// For the admin page; at most 5.
    public var preauthorize: [String]
    public var device: Device
    public var callsPerSecond: Int
    public var burst: Int

    public struct Device: Sendable, Equatable {
        /// nil: made once and kept.
        public var id: String?
        public var model: String
        public var version: String
        public var hardware: Hardware
        public var system: System
        public var systemVersion: String
        public var connection: String
    }
}
