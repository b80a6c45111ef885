import Admin
import Configuration

/// Which gateway a command means, to be compared with what the one at a socket says that it serves.
struct PlaceSearch {
    enum Verdict {
        case ours
        /// The gateway serves another place, in words.
        case other(String)
        /// The gateway answers, but does not know the question.
        case silent
        case nobody

        var isOurs: Bool { if case .ours = self { true } else { false } }
    }

    /// Any of them will do: without a file it may be the one of each usual place that was deleted.
    private let places: [PlaceDocument]

    init(_ loaded: LoadedConfiguration, socket: String) {
        places = [PlaceDocument(source: loaded.source, socket: socket, stores: [loaded.configuration.store.path])]
    }

    /// The places of a configuration that is not good.
    /// - Parameters:
    ///   - path: `--config`.
    ///   - store: as far as the file still says it; where it does not, any store will do.
    init(_ path: String?, store: String?, socket: String) {
        let environment = ConfigurationAccess.environment
        let source = try? ConfigurationSource.find(argument: path, environment: environment)
        places = (source.map { [$0] } ?? ConfigurationSource.places.map { .file($0) }).map {
            PlaceDocument(source: $0, socket: socket, stores: store.map { [$0] } ?? [])
        }
    }

    func verdict(on client: AdminClient) -> Verdict {
        guard let answer = client.request("GET", "/place") else { return .nobody }
        guard answer.status == 200, let theirs = PlaceDocument(parsing: answer.body) else { return .silent }
        return places.contains { theirs.isSame(as: $0) } ? .ours : .other(theirs.words)
    }

    /// The place that was meant.
    var words: String { places.first?.words ?? "" }
}
