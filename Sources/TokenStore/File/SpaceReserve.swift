internal import Glibc

/// Space on the disk that is held back for deletions, and another for rows that cannot be had anew. SQLite writes a deletion to its log
/// before it makes it, so on a full disk nothing could be purged or logged out: the row would be found again. And a refresh token that has
/// taken the place of another is good for a login.
///
/// Blocks of a file without a name: nothing is left of them when the process ends. Lives on the store's thread.
struct SpaceReserve: ~Copyable {
    private let file: any NamelessFile
    /// The space to hold, in bytes.
    let whole: Int
    /// Less than `whole` on a disk that had no more.
    private(set) var held = 0

    /// The space that the log holds at most, and a few deletions: the log has to be moved to the database before it can be written from its beginning
    /// again. Of a small disk an eighth.
    static let forDeletions = (most: 2 << 20, share: 8)
    /// The same, for some rows. Of a small disk a sixteenth.
    static let forLastingRows = (most: 1 << 20, share: 16)
    /// Too little to be of use below it.
    private static let least = 32 << 10

    private init(_ file: any NamelessFile, whole: Int) {
        self.file = file
        self.whole = whole
    }
}

extension SpaceReserve {
    /// Nil where the file system cannot hold space back.
    /// - Parameters:
    ///   - folder: the database's.
    ///   - most: in bytes; of a small disk one part of `share`.
    static func made(
        on disk: any StoreDisk, in folder: String, _ bound: (most: Int, share: Int)
    ) -> SpaceReserve? {
        guard let file = disk.nameless(in: folder) else { return nil }
        let size = file.disk
        let blocks = size?.blocks ?? 0
        // A disk in memory may have no bound of its own.
        let part = min(blocks / bound.share, bound.most) * (size?.octets ?? 0)
        let whole = blocks == 0 ? bound.most : min(part, bound.most)
        let fault = size != nil && whole >= least ? file.take(whole) : EINVAL
        guard fault == 0 || fault == ENOSPC || fault == EDQUOT else { return nil }
        var reserve = SpaceReserve(file, whole: whole)
        reserve.hold()
        return reserve
    }

    /// Takes what is missing, all of it or nothing.
    /// - Returns: false where the disk has not as much.
    mutating func refill() -> Bool { held == whole || ![ENOSPC, EDQUOT].contains(take(whole)) }

    /// Takes as much as there is.
    mutating func hold() {
        var wanted = whole
        while wanted > held, wanted >= Self.least, take(wanted) != 0 { wanted /= 2 }
    }

    /// Gives it to whoever writes next: it is ours no more, and another program may be quicker.
    mutating func release() {
        file.cut(to: 0)
        held = 0
    }

    /// - Returns: 0, or an errno.
    private mutating func take(_ bytes: Int) -> Int32 {
        let fault = file.take(bytes)
        if fault == 0 {
            held = bytes
        } else {
            // A part of it may have been taken before the disk was full.
            file.cut(to: held)
        }
        return fault
    }
}
