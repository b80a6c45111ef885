@testable import Configuration

/// Any bytes as YAML.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzYAML(_ start: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
    _ = YAMLReader.read(Array(UnsafeBufferPointer(start: start, count: count)), file: "f")
    return 0
}
