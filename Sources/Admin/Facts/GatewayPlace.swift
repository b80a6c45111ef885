public import Configuration
internal import Synchronization

/// The marks that tell one gateway from another on the same machine: the configuration that it serves and its store. The body of `GET /place`,
/// which is answered on the admin socket alone.
public struct PlaceDocument: AdminDocument, Sendable, Equatable {
    /// Where the configuration was found.
    public enum Kind: String, Codable, Sendable { case file, text, environment }

    /// Decides how `configuration` is to be read.
    public var kind: Kind
    /// The file of the configuration; for text and environment the admin socket.
    public var configuration: FilePlace
    /// The store of this process, and the one that its configuration of now names, which a restart would open. Empty: not known.
    public var stores: [Store]

    /// A store by its place.
    public struct Store: Codable, Sendable, Equatable {
        /// nil: tokens live in memory.
        public var path: FilePlace?

        /// - Parameter path: nil for a store in memory.
        public init(path: FilePlace?) { self.path = path }
    }

    /// - Parameters:
    ///   - socket: the path of the admin socket.
    ///   - stores: paths of stores; nil for one in memory.
    public init(source: ConfigurationSource, socket: String, stores: [String?]) {
        switch source {
        case .file(let path): (kind, configuration) = (.file, FilePlace(path))
        case .text: (kind, configuration) = (.text, FilePlace(socket))
        case .environment: (kind, configuration) = (.environment, FilePlace(socket))
        }
        self.stores = stores.map { Store(path: $0.map(FilePlace.init)) }
    }

    /// Whether a process that looks at `other` means this gateway.
    public func isSame(as other: PlaceDocument) -> Bool {
        kind == other.kind && configuration.isSame(as: other.configuration)
            && (stores.isEmpty || other.stores.isEmpty
                || stores.contains { mine in other.stores.contains { Self.isSame(mine.path, $0.path) } })
    }

    private static func isSame(_ one: FilePlace?, _ other: FilePlace?) -> Bool {
        guard let one, let other else { return one == nil && other == nil }
        return one.isSame(as: other)
    }

    /// The configuration's place as the page names it.
    var shown: String {
        switch kind {
        case .file: configuration.real
        case .text: "CARDEA_CONFIG_YAML"
        case .environment: "CARDEA_LISTEN and its companions"
        }
    }

    /// For people: `/etc/cardea/cardea.yaml with the store /var/lib/cardea/tokens.db`.
    public var words: String {
        shown + (stores.first.map { $0.path.map { " with the store \($0.real)" } ?? " without a store" } ?? "")
    }
}

/// The place of the running gateway: its main thread changes it with a reload, its keeper tells it.
public final class ServedPlace: Sendable {
    private let socket: String
    private let startedWith: String?
    private let place: Mutex<PlaceDocument>

    /// - Parameters:
    ///   - socket: of the command line.
    ///   - store: `store.path` of the start; it counts until the process ends.
    public init(source: ConfigurationSource, socket: String, store: String?) {
        self.socket = socket
        startedWith = store
        place = Mutex(PlaceDocument(source: source, socket: socket, stores: [store]))
    }

    /// Another configuration is served, or the same one from another place.
    public func serves(_ source: ConfigurationSource, store: String?) {
        let stores = store == startedWith ? [store] : [startedWith, store]
        let next = PlaceDocument(source: source, socket: socket, stores: stores)
        place.withLock { $0 = next }
    }

    /// The place as it is now.
    public var document: PlaceDocument { place.withLock { $0 } }
}
