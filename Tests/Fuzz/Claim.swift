import Glibc

/// States a claim of a target. It is compiled into each of them.
func expect(_ holds: Bool, _ words: @autoclosure () -> String) {
    if !holds { refute(words()) }
}

/// An optimised build would end without saying why.
func refute(_ words: String) -> Never {
    let line = Array("claim: \(words)\n".utf8)
    _ = write(2, line, line.count)
    preconditionFailure("a claim does not hold")
}
