import Synchronization

/// Numbers for names, for the life of the process: an access record holds two bytes instead of a string.
///
/// Append-only, so that a record of the old configuration still finds its name after a reload.
public final class NameTable: Sendable {
    private struct State: Sendable {
        var names: [String]
        var index: [String: UInt16]
    }

    // A lock, off the data path: loops hold numbers; only the log thread and whoever reads a configuration come here.
    private let state: Mutex<State>

    /// - Parameter none: the name of number 0, which also stands for names past the 65,535th.
    public init(none: String = "-") {
        state = Mutex(State(names: [none], index: [none: 0]))
    }

    /// The number of a name, the same for every call. 0 when the table is full.
    public func intern(_ name: String) -> UInt16 {
        state.withLock { state in
            if let known = state.index[name] { return known }
            guard let next = UInt16(exactly: state.names.count) else { return 0 }
            state.names.append(name)
            state.index[name] = next
            return next
        }
    }

    /// The name of a number; that of 0 for a number never given out.
    public func name(of index: UInt16) -> String {
        state.withLock { Int(index) < $0.names.count ? $0.names[Int(index)] : $0.names[0] }
    }
}
