import Glibc

/// Standard input, output and error: what a program behind `--` gets of ours.
enum StandardDescriptors {
    private static let names = ["standard input", "standard output", "standard error"]

    /// Opens /dev/null in the place of those that are closed, before anything else is opened: a file of ours would come to stand there, and be
    /// written what is meant for the standard descriptor.
    static func fill() {
        while true {
            let descriptor = open("/dev/null", O_RDWR)
            guard descriptor >= 0 else { return }
            guard descriptor < names.count else {
                close(descriptor)
                return
            }
        }
    }

    /// The names of those that are folders, by which everything below them is reached.
    static var folders: [String] { names(of: { $0.st_mode & S_IFMT == S_IFDIR }) }

    /// The names of those that are the file.
    static func names(of path: String) -> [String] {
        var file = stat()
        guard stat(path, &file) == 0 else { return [] }
        return names(of: { $0.st_dev == file.st_dev && $0.st_ino == file.st_ino })
    }

    private static func names(of isMeant: (stat) -> Bool) -> [String] {
        names.indices.filter { index in
            var status = stat()
            return fstat(Int32(index), &status) == 0 && isMeant(status)
        }.map { names[$0] }
    }
}
