import Glibc
import TemporaryFolder
import Testing

@testable import DataPath
@testable import Reactor

/// No change is lost between reading files and watching their folder, nor between one watch and the next. Real files: the events are the
/// kernel's.
@Suite struct FolderWatchTests {
    private let loop: Loop
    private let folder = TemporaryFolder("watch")

    init() throws {
        loop = try Loop(name: "watch")
    }

    private func watch(haveBeenRead: Bool, _ told: @escaping () -> Void) throws -> FolderWatch {
        let watch = try #require(FolderWatch(loop: loop, folders: [folder.path], haveBeenRead: haveBeenRead))
        watch.changed = told
        return watch
    }

    private func change() throws {
        let descriptor = open(folder.path + "/file", O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0)
        close(descriptor)
    }

    /// Turns until `isOver`, or until everything that gathers must have been told.
    private func turn(until isOver: () -> Bool) {
        let end = loop.kernel.now() + 60_000_000_000
        while !isOver(), loop.kernel.now() < end {
            usleep(1000)
            loop.turnOnce()
        }
    }

    @Test func filesThatWereReadAreLookedAtWithoutAnEvent() throws {
        var told = 0
        let watch = try watch(haveBeenRead: true) { told += 1 }
        turn { told == 1 }
        #expect(told == 1)
        loop.close(watch)
    }

    @Test(arguments: [false, true]) func whatTheLastWatchHasNotToldTheNextOneTells(isNoticed: Bool) throws {
        var toldByLast = 0
        var told = 0
        let last = try watch(haveBeenRead: false) { toldByLast += 1 }
        try change()
        // Read from the kernel, and gathering; or not even read.
        if isNoticed { loop.turnOnce() }
        let next = try watch(haveBeenRead: false) { told += 1 }
        next.replace(last)
        turn { told == 1 }
        #expect(told == 1 && toldByLast == 0)
        loop.close(next)
    }
}
