@testable import Configuration

/// The first byte says how much of the rest is the pattern; what follows is searched.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzPattern(_ start: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
    guard count >= 1 else { return 0 }
    let input = Array(UnsafeBufferPointer(start: start, count: count))
    let cut = min(1 + Int(input[0]), count)
    let text = String(decoding: input[1..<cut], as: UTF8.self)
    let rest = Array(input[cut...])
    do throws(Pattern.Fault) {
        let pattern = try Pattern(text)
        precondition(pattern.program.count <= Pattern.mostStates)
        if let found = pattern.firstGroup(in: rest) {
            precondition(found.lowerBound >= 0 && found.upperBound <= rest.count)
        }
    } catch {
        precondition(error.offset >= 0 && error.offset <= text.utf8.count)
    }
    if let pointer = try? JSONPointer(text: text) { precondition(pointer.tokens.count <= 16) }
    return 0
}
