// Built by script together with the sources of Configuration: SwiftPM cannot link a fuzzer's main on Linux.
#if canImport(Configuration)
    @testable import Configuration
#endif

/// The first byte says how much of the rest is the pattern, or the template; what follows is searched.
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
    let scope = RecipeScope(names: ["secret.p": .secret("p"), "now": .now, "a.b": .step("a", take: "b")])
    let (template, faults) = RecipeTemplateParser.parse(text, in: scope)
    for fault in faults { precondition(fault.offset >= 0 && fault.offset <= text.utf8.count) }
    if faults.isEmpty {
        // What is shown of a template is a template, and the same one.
        let (again, others) = RecipeTemplateParser.parse(template.description, in: scope)
        precondition(others.isEmpty && again.description == template.description)
    }
    if let pointer = try? RecipePointer(text: text) { precondition(pointer.tokens.count <= 16) }
    return 0
}
