/// The files that an argument of an `exec:` program may name.
struct NamedPaths {
    /// The argument where it is absolute; else it and what stands in it behind a sign, as in `--file=seed`, `-vX=seed` and `@seed`, or from the
    /// first `/` on, as in `-K/etc/seed`, where that is there.
    let paths: [String]

    init(_ word: String) {
        guard !word.hasPrefix("/") else {
            paths = [word]
            return
        }
        var names = [word[...]]
        for index in word.indices where "=@:,".contains(word[index]) { names.append(word[word.index(after: index)...]) }
        if let slash = word.firstIndex(of: "/") { names.append(word[slash...]) }
        paths = names.map(String.init).filter { !$0.isEmpty && FileReader.exists($0) }
    }
}
