@testable import TLS

/// Any bytes as a caller's first TLS message: more bytes never change what fewer have said, and a name that is believed is one.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHello(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    let whole = ClientHello.read(bytes.span)
    let cut = bytes.isEmpty ? 0 : bytes.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xffff } % bytes.count
    let part = ClientHello.read(bytes[..<cut].span)
    precondition(part == .incomplete || part == whole)
    precondition(whole != .incomplete || count < ClientHello.longest)
    guard case .complete(let hello) = whole else { return 0 }
    if let name = hello.serverName {
        precondition(!name.isEmpty && name == name.lowercased() && !name.hasSuffix("."))
        precondition(name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f })
    }
    precondition(hello.protocols.allSatisfy { !$0.isEmpty && $0.utf8.count <= 3 * 255 })
    return 0
}
