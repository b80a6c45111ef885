import Configuration
import Glibc
import Reactor

/// The places that a confined program does not see: secrets, store, audit log and configuration. It runs as our user, whose files they are.
struct CoveredPlaces {
    private(set) var changes: [Confinement.Change] = []
    /// Links on the way to what commands the gateway, which the program could lead elsewhere.
    private(set) var links: [ChangeableLink] = []
    /// Files that are not there and would be seen when they come.
    private(set) var awaited: [String] = []
    private let wholeFolders: Set<String>
    private let loneFiles: Set<String>
    /// The things at the covered places that command the gateway, and all covered folders, as they were.
    private var things: [String: Thing] = [:]

    /// A file or folder, whatever its path is.
    private struct Thing: Equatable {
        let device: UInt64
        let inode: UInt64

        init?(_ path: String) {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            device = UInt64(status.st_dev)
            inode = UInt64(status.st_ino)
        }
    }

    /// Files that are covered alone in folders in which our user makes files: where such a file is replaced by another, the program sees the
    /// new one.
    private(set) var replaceable: [String] = []
    /// Folders of included files in which the program could make one.
    private(set) var openFolders: [String] = []

    /// - Parameters:
    ///   - files: not to be seen, as they are named.
    ///   - folders: not to be seen with all below them.
    ///   - alone: not to be seen, whatever else is in their folders.
    ///   - commanding: those of them by which somebody becomes the gateway.
    ///   - kept: absolute paths that the program needs.
    init(
        files: [String], folders: [String] = [], alone: [String] = [], commanding: [String] = [], keeping kept: [String]
    ) {
        var wholeFolders: Set<String> = []
        var loneFiles: Set<String> = []
        for folder in folders {
            let place = FilePlace(folder)
            wholeFolders.formUnion([place.standing, place.real])
        }
        for file in files {
            let place = FilePlace(file)
            // A link and its target: either may be swapped.
            for path in Set([place.standing, place.real]) {
                guard !Self.isFolder(path) else {
                    wholeFolders.insert(path)
                    continue
                }
                let folder = Self.folder(of: path)
                if FileNeeds.isEverybodys(folder) || kept.contains(where: { Self.isInside($0, folder) }) {
                    loneFiles.insert(path)
                } else {
                    wholeFolders.insert(folder)
                }
            }
        }
        // A folder with the parts of a program or its settings, as an argument names it.
        for path in alone.map({ FilePlace($0).real }) where Self.isFolder(path) && !FileNeeds.isEverybodys(path) {
            wholeFolders.insert(path)
        }
        // A folder that the program needs stays visible.
        wholeFolders = wholeFolders.filter { folder in !kept.contains { Self.isInside($0, folder) } }
        // A mount in a folder that is covered could not be made any more.
        wholeFolders = wholeFolders.filter { folder in
            !wholeFolders.contains { $0 != folder && Self.isInside(folder, $0) }
        }
        loneFiles = loneFiles.filter { file in !wholeFolders.contains { Self.isInside(file, $0) } }
        replaceable = loneFiles.filter { file in
            let folder = Self.folder(of: file)
            return !FileNeeds.isEverybodys(folder) || ChangeableLink.isChangeable(folder)
        }.sorted()
        openFolders = Set(commanding).subtracting(alone).map { FilePlace($0).real }.sorted().filter { path in
            Self.isFolder(path) && ChangeableLink.isChangeable(path)
                && !wholeFolders.contains { Self.isInside(path, $0) }
        }
        for path in alone {
            let place = FilePlace(path)
            for path in [place.standing, place.real] where !Self.isFolder(path) {
                if !wholeFolders.contains(where: { Self.isInside(path, $0) }) { loneFiles.insert(path) }
            }
        }
        changes += Self.pins(above: wholeFolders.union(loneFiles)).map { .pin($0) }
        changes += wholeFolders.sorted().map { .coverFolder($0) } + loneFiles.sorted().map { .coverFile($0) }
        self.wholeFolders = wholeFolders
        self.loneFiles = loneFiles
        // The store's folder may be made at the start.
        for folder in wholeFolders { if let thing = Thing(folder) { things[folder] = thing } }
        for path in commanding {
            let place = FilePlace(path)
            for path in [place.standing, place.real] where loneFiles.contains(path) { things[path] = Thing(path) }
            if let link = ChangeableLink(on: path, except: wholeFolders) { links.append(link) }
        }
    }

    /// The places of `others` that are not covered by these.
    func uncovered(of others: CoveredPlaces) -> [String] {
        let folders = others.wholeFolders.filter { !isInFolders($0) }
        let files = others.loneFiles.filter { !loneFiles.contains($0) && !isInFolders($0) }
        return folders.union(files).sorted()
    }

    private func isInFolders(_ path: String) -> Bool { wholeFolders.contains { Self.isInside(path, $0) } }

    /// The covered places that are others than they were: the program sees what is there now.
    var replaced: [String] { things.filter { Thing($0.key) != $0.value }.keys.sorted() }

    /// The folders above that our user could rename, from the top down: a name that is free could get other contents, and a changed
    /// configuration is read again.
    private static func pins(above paths: Set<String>) -> [String] {
        var pins: Set<String> = []
        for path in paths {
            var folder = folder(of: path)
            while folder != "/" {
                let above = self.folder(of: folder)
                if ChangeableLink.isChangeable(above) { pins.insert(folder) }
                folder = above
            }
        }
        // A folder that is in another comes behind it.
        return pins.sorted()
    }

    private static func folder(of path: String) -> String {
        guard let end = path.lastIndex(of: "/"), end != path.startIndex else { return "/" }
        return String(path[..<end])
    }

    static func isInside(_ path: String, _ folder: String) -> Bool {
        path == folder || folder == "/" || path.hasPrefix(folder + "/")
    }

    private static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    private static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }
}

extension CoveredPlaces {
    /// - Parameters:
    ///   - command: the program and its arguments: what they name by a path stays.
    ///   - trust: the folder of the program's authorities; nil before there is one.
    init(_ loaded: LoadedConfiguration, command: [String], trust: TrustFolder?, environment: (String) -> String?) {
        let configuration = loaded.configuration
        let hidden = configuration.hiddenFiles(environment: environment)
        var kept = [".", trust?.path].compactMap { $0.map { FilePlace($0).real } }
        for word in command where word.contains("/") {
            let place = FilePlace(word)
            kept += [place.standing, place.real]
        }
        if let program = command.first, !program.contains("/") {
            for folder in environment("PATH")?.split(separator: ":") ?? [] where folder.hasPrefix("/") {
                guard access("\(folder)/\(program)", X_OK) == 0 else { continue }
                let place = FilePlace("\(folder)/\(program)")
                kept += [place.standing, place.real]
                break
            }
        }
        self.init(
            files: hidden.files + loaded.files.paths, folders: hidden.folders, alone: hidden.alone,
            commanding: loaded.files.paths + hidden.alone, keeping: kept)
        awaited =
            hidden.secrets.filter { isAwaited($0) }
            // A program is awaited where the confined one could bring it.
            + hidden.programs.filter { isAwaited($0) && ChangeableLink.isChangeable(Self.nearestFolder(above: $0)) }
    }

    /// The reason for which the program could become the gateway, or see a secret; nil where it could not.
    var refusal: String? {
        if let path = awaited.first {
            return
                "'\(path)' is not there, and the program would see it come; make it, or a folder of its own for it, which is hidden"
        }
        if let folder = openFolders.first {
            return
                "'\(folder)' is included, and the program could make a file in it; put what is included into a folder that the program does not need"
        }
        return links.first.map {
            "the way to '\($0.path)' goes by the link '\($0.link)', which the program could lead elsewhere; write '\(FilePlace($0.path).real)'"
        }
    }

    private func isAwaited(_ path: String) -> Bool {
        let place = FilePlace(path).real
        return !Self.exists(place) && !wholeFolders.contains { Self.isInside(place, $0) && Self.isFolder($0) }
    }

    private static func nearestFolder(above path: String) -> String {
        var folder = folder(of: FilePlace(path).real)
        while folder != "/", !exists(folder) { folder = Self.folder(of: folder) }
        return folder
    }
}
