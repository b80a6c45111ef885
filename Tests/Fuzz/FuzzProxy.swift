import Reactor

@testable import DataPath

/// Any bytes as a PROXY header: more bytes never change what fewer have said, and what is complete lies inside of what was given.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzProxy(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    for versions in [[1], [2], [1, 2]] as [Set<Int>] {
        let whole = ProxyHeader.read(bytes.span, versions: versions)
        let cut = bytes.isEmpty ? 0 : bytes.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xffff } % bytes.count
        let part = ProxyHeader.read(bytes[..<cut].span, versions: versions)
        precondition(part == .incomplete || part == whole)
        precondition(whole != .incomplete || count < ProxyHeader.longestBinary + 16)
        guard case .complete(let header) = whole else { continue }
        precondition(header.length > 0 && header.length <= count)
        let exact = ProxyHeader.read(bytes[..<header.length].span, versions: versions)
        precondition(exact == whole)
        if case .caller(let address) = header.origin {
            precondition(address.family != .unix && [4, 16].contains(address.ipBytes.count))
        }
    }
    return 0
}
