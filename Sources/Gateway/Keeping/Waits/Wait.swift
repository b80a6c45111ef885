/// A task's wait for a word of the keeper, which may come before the task asks for it.
/// Touched on the keeper's loop only.
final class Wait<Word: Sendable>: @unchecked Sendable {
    private var word: Word?
    private var continuation: CheckedContinuation<Word, Never>?
    private var alarm: Alarm?

    /// The word has come, and the task has not asked for it yet.
    var hasWord: Bool { word != nil }

    func give(_ word: Word) {
        alarm.take()?.close()
        if let continuation = continuation.take() {
            continuation.resume(returning: word)
        } else {
            self.word = word
        }
    }

    func next(isolation: isolated Keeper) async -> Word {
        if let word = word.take() { return word }
        return await withCheckedContinuation { continuation = $0 }
    }

    /// - Parameters:
    ///   - span: nanoseconds.
    ///   - late: the word where none comes in that time.
    ///   - leave: called on the keeper's loop when the time is over, so that nobody gives a word to who waits no more.
    func next(
        within span: UInt64, late: Word, isolation keeper: isolated Keeper,
        leave: @escaping @Sendable (isolated Keeper) -> Void
    ) async -> Word {
        guard word == nil else { return await next(isolation: keeper) }
        // The alarm belongs to the wait, and must not hold it.
        keeper.set(&alarm, at: keeper.now + span) { [weak self] keeper in
            leave(keeper)
            self?.give(late)
        }
        return await next(isolation: keeper)
    }
}
