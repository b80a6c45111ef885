import Configuration

@testable import Handshakes

/// Any bytes as a file: no trap, no endless run, and either a configuration or an error with a place.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzConfiguration(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let text = String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    // Reading other files by name would make the run depend on the machine.
    guard !text.contains("include") else { return 0 }
    let result = Configuration.load(.text(text)) { name in name.count < 3 ? "${\(name)}" : nil }
    precondition((result.configuration == nil) == !result.errors.isEmpty)
    for diagnostic in result.diagnostics { precondition(!diagnostic.message.contains("\n")) }
    return 0
}
