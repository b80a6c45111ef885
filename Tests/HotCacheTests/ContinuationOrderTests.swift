import Glibc
import Testing

/// That `Tests/ThreadSanitizer` does its work: without it the sanitizer calls this a race every time. The continuation is an unchecked one,
/// since the checked one is a part of the library in a build that is not optimised, where it waits without being called by name.
@Suite struct ContinuationOrderTests {
    private final class Box: Sendable {
        nonisolated(unsafe) let number: UnsafeMutablePointer<Int>

        init(_ number: Int) {
            self.number = .allocate(capacity: 1)
            self.number.initialize(to: number)
        }

        deinit { number.deallocate() }
    }

    private final class Errand: Sendable {
        let continuation: UnsafeContinuation<Box, Never>
        let number: Int

        init(_ continuation: UnsafeContinuation<Box, Never>, _ number: Int) {
            self.continuation = continuation
            self.number = number
        }
    }

    /// Made by a thread that has ended, as a rule, before the task waits for it.
    private func box(_ number: Int) async -> Box {
        await withUnsafeContinuation { continuation in
            var thread = pthread_t()
            let code = pthread_create(
                &thread, nil,
                { place in
                    guard let place else { return nil }
                    let errand = Unmanaged<Errand>.fromOpaque(place).takeRetainedValue()
                    errand.continuation.resume(returning: Box(errand.number))
                    return nil
                }, Unmanaged.passRetained(Errand(continuation, number)).toOpaque())
            #expect(code == 0)
            pthread_detach(thread)
            // Long enough for the thread. Where it is not, the job that goes on with the task brings the order.
            usleep(2000)
        }
    }

    @Test func `what a continuation brings is no race when it is resumed before its task waits`() async {
        for number in 0..<20 {
            let box = await box(number)
            // The number lives as long as the box that points to it.
            withExtendedLifetime(box) { #expect(box.number.pointee == number) }
        }
    }
}
