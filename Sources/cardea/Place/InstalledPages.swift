import Configuration

/// Where this program's documentation stands on this machine. It was installed below the same folder as the program; a program that was
/// only built has none.
enum InstalledPages {
    /// A page and its section, as a shell of this machine finds the page; the path in the repository where it is not installed.
    /// - Parameter reference: `docs/how-to/incident.md#issuer-down`.
    static func place(of reference: String) -> String {
        let folders = FilePlace("/proc/self/exe").real.split(separator: "/").dropLast(2)
        let place = "/" + (folders + ["share", "doc", "cardea", reference[...]]).joined(separator: "/")
        return FileReader.exists(String(place.prefix { $0 != "#" })) ? place : reference
    }
}
