internal import DataPath

/// A lookup under way, and what goes on after it.
struct KeptRecall {
    let number: UInt64
    var alarm: Alarm?
    var waiting: [(Fault?) -> Void]
    /// The row was deleted meanwhile: nobody gets it any more.
    var isVoid = false
}
