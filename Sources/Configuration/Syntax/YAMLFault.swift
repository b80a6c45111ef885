/// A fault of the syntax as libyaml tells it, in words for who wrote the file.
///
/// libyaml says what it met and where (the problem), and in the middle of what (the context). Where something was left open, the
/// problem is met long after the mistake, at times at the end of the file: then the place to look at is where the context began.
struct YAMLFault {
    let problem: String
    let context: String
    let problemAt: Mark
    /// The place of the context; of a fault without one the same as `problemAt`.
    let contextAt: Mark
    /// Lines of the last value between quotes that goes over several.
    let longQuote: (begin: Int, end: Int)?

    private var isLeftOpen: Bool {
        context == "while scanning a quoted scalar" || context == "while scanning a simple key"
    }
    private var isInFlow: Bool { context.contains("flow") }

    /// Where the mistake most likely is.
    var mark: Mark { (isLeftOpen || isInFlow) && contextAt.line < problemAt.line ? contextAt : problemAt }

    var message: String {
        "not valid YAML: " + words + (advice.map { "; \($0)" } ?? "")
    }

    private var words: String {
        guard mark != problemAt else {
            let begun =
                isInBlock && contextAt.line != problemAt.line
                ? " in the block that begins in line \(contextAt.line)" : ""
            return problem + begun
        }
        let met = "line \(problemAt.line): \(problem)"
        switch context {
        case "while scanning a quoted scalar": return "the quote that begins here is not closed (\(met))"
        case "while scanning a simple key": return "neither a key with ':' behind it nor a value (\(met))"
        case "while parsing a flow sequence": return "the '[' here is not closed (\(met))"
        case "while parsing a flow mapping": return "the '{' here is not closed (\(met))"
        default: return "\(problem) (\(context), until line \(problemAt.line))"
        }
    }

    private var isInBlock: Bool { context.hasPrefix("while parsing a block") }

    private var advice: String? {
        if problem.contains("cannot start any token") { return "indent with spaces, not tabs, and quote such a value" }
        if problem.contains("tab character") { return "indent with spaces" }
        if problem.contains("mapping values are not allowed") { return "a value with ': ' in it needs quotes" }
        // A forgotten quote ends at the next one, and what stood between the two is told of as if it were out of place.
        if let longQuote, isInBlock || isInFlow, longQuote.end >= problemAt.line - 1 {
            return "a quote is opened in line \(longQuote.begin) and closed only in line \(longQuote.end)"
        }
        if isInBlock { return "keys that belong together are indented alike" }
        return nil
    }
}
