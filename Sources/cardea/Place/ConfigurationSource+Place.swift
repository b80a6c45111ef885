import Configuration

extension ConfigurationSource {
    /// The same source whatever a later search would find first, and whatever the working directory is called then. Links are left in it: who
    /// swaps one means another file.
    var absolute: ConfigurationSource {
        guard case .file(let path) = self, !path.hasPrefix("/") else { return self }
        let folder = FilePlace(".").real
        let name = path.hasPrefix("./") ? path.dropFirst(2) : path[...]
        return .file((folder == "/" ? "" : folder) + "/" + name)
    }

    /// The same file by a path in which no folder is a link.
    var standing: ConfigurationSource {
        guard case .file(let path) = self else { return self }
        return .file(FilePlace(path).standing)
    }
}
