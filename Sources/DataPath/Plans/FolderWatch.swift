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
    /// - Parameter haveBeenRead: the files in them, before this. What changed in between is nobody's event, so that they are looked at anyway.
    package init?(loop: Loop, folders: [String], haveBeenRead: Bool) {
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
        if haveBeenRead { gather() }
    }

    /// On the loop: changes that `last` has seen and not told are told by this one. It watches already, so that none is lost between the two.
    package func replace(_ last: FolderWatch) {
        if last.isArmed || last.drain() { gather() }
        loop.close(last)
    }

    package override func ready(_ readiness: Readiness) {
        drain()
        gather()
    }

    /// - Returns: whether there was an event.
    @discardableResult
    private func drain() -> Bool {
        var events = [UInt8](repeating: 0, count: 4096)
        var isAny = false
        while Glibc.read(descriptor, &events, events.count) > 0 { isAny = true }
        return isAny
    }

    private func gather() {
        guard !isArmed else { return }
        isArmed = loop.arm(self, at: loop.now + Self.gathering, kind: 0) != nil
    }

    package override func timerFired(_ kind: UInt8) {
        isArmed = false
        changed()
    }
}
