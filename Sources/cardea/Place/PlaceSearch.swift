import Admin
import Configuration
import Handshakes

/// Which gateway a command means, to be compared with what the one at a socket says that it serves.
struct PlaceSearch {
    enum Verdict {
        case ours
        /// The gateway serves another place.
        case other(PlaceDocument)
        /// The gateway answers, but does not know the question.
        case silent
        case nobody

        var isOurs: Bool { if case .ours = self { true } else { false } }
    }

    /// Any of them will do: without a file it may be the one of each usual place that was deleted.
    private let places: [PlaceDocument]
    /// The files of a good configuration, which another place may have as well. Empty: not known.
    private let files: [String]

    init(_ loaded: LoadedConfiguration, socket: String) {
        if case .file = loaded.source { files = loaded.files.paths } else { files = [] }
        places = [PlaceDocument(source: loaded.source, socket: socket, stores: [loaded.configuration.store.path])]
    }

    /// The places of a configuration that is not good.
    /// - Parameters:
    ///   - path: `--config`.
    ///   - store: as far as the file still says it; where it does not, any store will do.
    init(_ path: String?, store: String?, socket: String) {
        files = []
        let environment = ConfigurationAccess.environment
        let source = try? ConfigurationSource.find(argument: path, environment: environment)
        places = (source.map { [$0] } ?? ConfigurationSource.places.map { .file($0) }).map {
            PlaceDocument(source: $0, socket: socket, stores: store.map { [$0] } ?? [])
        }
    }

    func verdict(on client: AdminClient) -> Verdict {
        guard let answer = client.request("GET", "/place") else { return .nobody }
        guard answer.status == 200, let theirs = PlaceDocument(parsing: answer.body) else { return .silent }
        return places.contains { theirs.isSame(as: $0) } || isCopy(of: theirs) ? .ours : .other(theirs)
    }

    /// A copy that was left in a folder means the gateway that serves the original: with the same words in every file and the same store,
    /// both would be the same gateway. A file of the original that this user may not read makes it another one.
    private func isCopy(of theirs: PlaceDocument) -> Bool {
        guard theirs.kind == .file, !files.isEmpty,
            places.contains(where: { place in
                var there = place
                there.configuration = theirs.configuration
                return place.kind == .file && theirs.isSame(as: there)
            })
        else { return false }
        let originals = Configuration.load(
            .file(theirs.configuration.real), environment: ConfigurationAccess.environment
        ).files
        return files.count == originals.count
            && zip(files, originals).allSatisfy { FileReader.areCopies($0, $1) }
    }

    /// The place that was meant.
    var words: String { places.first?.words ?? "" }
}
