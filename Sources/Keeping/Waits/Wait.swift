/// A task's wait for a word of the keeper, which may come before the task asks for it.
/// Touched on the keeper's loop only.
final class Wait<Word: Sendable>: @unchecked Sendable {
    private var word: Word?
    private var continuation: CheckedContinuation<Word, Never>?
    /// Set where the wait has a deadline.
    var alarm: Alarm?

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

    func next(isolation: isolated (any Actor)? = #isolation) async -> Word {
        if let word = word.take() { return word }
        return await withCheckedContinuation { continuation = $0 }
    }
}
