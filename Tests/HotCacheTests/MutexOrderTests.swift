import Synchronization
import Testing

/// That `Tests/ThreadSanitizer` does its work: without it the sanitizer calls this a race nearly every time.
@Suite struct MutexOrderTests {
    private final class Book: Sendable {
        let pages = Mutex<[[Int]]>([])
    }

    @Test func `what a contended mutex guards is no race`() async {
        let book = Book()
        await withTaskGroup(of: Void.self) { group in
            for writer in 0..<4 {
                group.addTask {
                    for page in 0..<5_000 { book.pages.withLock { $0 = $0.suffix(7) + [[writer, page]] } }
                }
            }
        }
        #expect(book.pages.withLock { $0.count } == 8)
    }
}
