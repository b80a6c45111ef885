internal import Glibc

/// A page of its own for the bytes of keys: kept out of core dumps, out of swap where `mlock` is allowed, wiped at the end.
final class KeyPage {
    static let size = 4096

    let start: UnsafeMutableRawPointer

    /// - Returns: nil without memory; `errno` says why.
    init?() {
        let map = mmap(nil, Self.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let map, map != MAP_FAILED else { return nil }
        start = map
        // Both may be refused by limits; the keys are then as safe as the rest of the process.
        mlock(map, Self.size)
        madvise(map, Self.size, MADV_DONTDUMP)
    }

    deinit {
        explicit_bzero(start, Self.size)
        munmap(start, Self.size)
    }
}
