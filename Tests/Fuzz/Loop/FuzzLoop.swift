/// Any bytes as a play around a whole data loop (`Script`): what leaves is well-formed and is what was sent, what comes back is what was
/// answered, and nothing is left when everybody has gone.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLoop(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard let script = Script(UnsafeBufferPointer(start: start, count: count)) else { return -1 }
    guard let play = Play(script) else { preconditionFailure("no loop could be made") }
    play.run()
    play.end()
    Claims(play).check()
    return 0
}
