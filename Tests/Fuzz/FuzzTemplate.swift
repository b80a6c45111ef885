import Configuration

@testable import Handshakes

/// A template of a recipe.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzTemplate(_ start: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
    let text = String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    let scope = RecipeScope(names: ["secret.p": .secret("p"), "now": .own(.now), "a.b": .step("a", take: "b")])
    let (template, faults) = RecipeTemplateParser.parse(text, in: scope)
    for fault in faults { precondition(fault.offset >= 0 && fault.offset <= text.utf8.count) }
    if faults.isEmpty {
        // What is shown of a template is a template, and the same one.
        let (again, others) = RecipeTemplateParser.parse(template.description, in: scope)
        precondition(others.isEmpty && again.description == template.description)
    }
    return 0
}
