import Admin
import Configuration

/// The configuration file that a command took because it lies in the working directory, where a copy may have been left over. What the
/// command says of a gateway then has to name that file, for its user may have meant the one of the machine.
struct FoundFile {
    private let place: FilePlace
    /// The file that would have been taken without it; nil where there is none.
    private let next: String?

    /// - Parameter argument: `--config`.
    /// - Returns: nil where the file was named, or is another one than that of the working directory.
    init?(_ argument: String?) {
        let environment = ConfigurationAccess.environment
        let places = ConfigurationSource.places
        guard argument == nil, let first = places.first,
            case .file(first)? = try? ConfigurationSource.find(argument: nil, environment: environment),
            environment("CARDEA_CONFIG")?.isEmpty != false
        else { return nil }
        place = FilePlace(first)
        let others = Array(places.dropFirst())
        let after = try? ConfigurationSource.find(argument: nil, environment: { _ in nil }, places: others)
        if case .file(let path)? = after { next = path } else { next = nil }
    }

    /// The words that follow the name of a socket at which nobody answers.
    var whose: String {
        "the socket of \(place.standing), which was taken because it lies in this folder"
            + (next.map { "; --config \($0) asks the gateway of that file" } ?? "")
    }

    /// The words that follow the file's name: how the gateway that answers is asked. Nil where its configuration is no file.
    func advice(_ theirs: PlaceDocument) -> String? {
        guard theirs.kind == .file else { return nil }
        let path = theirs.configuration.standing
        return ", which was taken because it lies in this folder; say --config \(path), or remove "
            + "\(place.standing) if it was left over"
    }
}
