internal import CLinux
internal import Glibc
package import Reactor

/// Watches the folders of secret files, not the files: Kubernetes swaps a link beside them, and editors replace files by renaming.
package final class FolderWatch: Watched {
    package var changed: () -> Void = {}
    private var isArmed = false

    /// Nanoseconds that changes may gather: a swap is several events.
    private static let gathering: UInt64 = 100_000_000
    private static let limit = 64

    /// Nil when there is nothing to watch or no inotify to be had.
    package init?(loop: Loop, folders: [String]) {
        super.init(loop: loop)
        guard !folders.isEmpty else { return nil }
        let descriptor = cardea_inotify()
        guard descriptor >= 0 else { return nil }
        var watched = 0
        for folder in folders.prefix(Self.limit) where cardea_inotify_folder(descriptor, folder) >= 0 { watched += 1 }
        guard watched > 0, loop.watch(self, descriptor: descriptor) else {
            Glibc.close(descriptor)
            return nil
        }
    }

    package override func ready(_ readiness: Readiness) {
        var drain = [UInt8](repeating: 0, count: 4096)
        while Glibc.read(descriptor, &drain, drain.count) > 0 {}
        guard !isArmed else { return }
        isArmed = loop.arm(self, at: loop.now + Self.gathering, kind: 0) != nil
    }

    package override func timerFired(_ kind: UInt8) {
        isArmed = false
        changed()
    }
}
