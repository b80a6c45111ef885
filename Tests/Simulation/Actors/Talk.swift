/// A connection of a caller, in whatever protocol, as the caller sees it. It tells the caller of each question once: of its answer, or that
/// it was cut.
protocol Talk: Conversation {
    /// Set once, before anything is asked.
    var wire: Wire? { get set }
    /// Those without an answer, oldest first.
    var questions: [Caller.Question] { get }
    /// How many a caller may ask at once.
    var mostAtOnce: Int { get }
    /// Called when the last question of several has its answer or is cut.
    var whenIdle: () -> Void { get set }
    /// Nothing more can be asked.
    var isOver: Bool { get }
    func ask(_ requests: [Caller.Request])
    /// Orderly, behind what has come; questions without an answer are cut.
    func hangUp()
    /// Breaks the connection; nobody is told.
    func breaks()
}
