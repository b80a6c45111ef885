import CYAML

/// Reads one YAML file into nodes, from libyaml's events. A duplicate key is reported and dropped; a fault of the
/// syntax, an alias or a bound ends the reading of that file with one error.
package struct YAMLReader {
    enum Bound {
        static let bytes = 1 << 20
        static let depth = 32
        static let nodes = 1 << 16
    }

    /// Bytes of UTF-8's byte order mark, which editors write unasked.
    static func sizeOfMark(_ bytes: [UInt8]) -> Int { bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0 }

    private struct Stop: Error {
        var message: String
        var mark: Mark
    }

    private let file: String
    private var parser = yaml_parser_t()
    private var nodes = 0
    private var diagnostics: [Diagnostic] = []
    /// Lines of the last quoted value that goes over several: a quote that was forgotten there is found wrong much later.
    private var longQuote: (begin: Int, end: Int)?
    /// The entries of the root that are whole.
    private var entriesOfRoot: [Node.Entry] = []

    /// The file's root, nil where it is empty or cannot be read; and what was wrong with it.
    package static func read(_ bytes: [UInt8], file: String) -> (root: Node?, diagnostics: [Diagnostic]) {
        let (root, _, diagnostics) = readWhole(bytes, file: file)
        return (root, diagnostics)
    }

    /// - Returns: beside the root its entries, also those before a fault that left no root.
    static func readWhole(
        _ bytes: [UInt8], file: String
    ) -> (root: Node?, entries: [Node.Entry], diagnostics: [Diagnostic]) {
        guard bytes.count <= Bound.bytes else {
            return (nil, [], [Diagnostic(.error, "the file is larger than 1 MiB", at: Mark(file: file))])
        }
        var reader = YAMLReader(file: file)
        guard yaml_parser_initialize(&reader.parser) == 1 else {
            return (nil, [], [Diagnostic(.error, "no memory to read the file", at: Mark(file: file))])
        }
        defer { yaml_parser_delete(&reader.parser) }
        let root = bytes.withUnsafeBufferPointer { buffer -> Node? in
            // libyaml would count the mark as a column, and find the second key less indented than the first.
            let skipped = sizeOfMark(bytes)
            yaml_parser_set_input_string(
                &reader.parser, buffer.baseAddress.map { $0 + skipped }, buffer.count - skipped)
            // Without this libyaml would take a byte order mark for UTF-16.
            yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING)
            do throws(Stop) {
                return try reader.stream()
            } catch {
                reader.diagnostics.append(Diagnostic(.error, error.message, at: error.mark))
                return nil
            }
        }
        return (root, reader.entriesOfRoot, reader.diagnostics)
    }

    private init(file: String) { self.file = file }

    // MARK: - Events

    private enum Event {
        case scalar(String, plain: Bool, column: Int?)
        case listStart, listEnd, mapStart, mapEnd
        case documentStart, documentEnd, streamStart, streamEnd
    }

    private mutating func next() throws(Stop) -> (Event, Mark) {
        var event = yaml_event_t()
        guard yaml_parser_parse(&parser, &event) == 1 else { throw syntaxFault() }
        defer { yaml_event_delete(&event) }
        let mark = place(event.start_mark)
        if cyaml_has_anchor(&event) != 0 {
            throw Stop(message: "anchors are not supported; shared settings go under 'defaults'", mark: mark)
        }
        if cyaml_has_tag(&event) != 0 {
            throw Stop(message: "tags are not supported; the key decides what a value is", mark: mark)
        }
        switch event.type {
        case YAML_SCALAR_EVENT:
            var length = 0
            var plain: Int32 = 0
            let start = cyaml_scalar_bytes(&event, &length, &plain)
            let text = String(decoding: UnsafeBufferPointer(start: start, count: length), as: UTF8.self)
            if text.utf8.contains(0) {
                throw Stop(message: "a value contains a NUL character", mark: mark)
            }
            if cyaml_is_quoted(&event) != 0, event.start_mark.line != event.end_mark.line {
                longQuote = (mark.line, place(event.end_mark).line)
            }
            return (.scalar(text, plain: plain != 0, column: column(of: text, event)), mark)
        case YAML_SEQUENCE_START_EVENT: return (.listStart, mark)
        case YAML_SEQUENCE_END_EVENT: return (.listEnd, mark)
        case YAML_MAPPING_START_EVENT: return (.mapStart, mark)
        case YAML_MAPPING_END_EVENT: return (.mapEnd, mark)
        case YAML_DOCUMENT_START_EVENT: return (.documentStart, mark)
        case YAML_DOCUMENT_END_EVENT: return (.documentEnd, mark)
        case YAML_STREAM_START_EVENT: return (.streamStart, mark)
        case YAML_ALIAS_EVENT:
            throw Stop(message: "aliases are not supported; shared settings go under 'defaults'", mark: mark)
        default: return (.streamEnd, mark)
        }
    }

    /// Where the text begins, if its place in the file has just its length, but for quotes: then no escape shifts what follows.
    private func column(of text: String, _ event: yaml_event_t) -> Int? {
        guard event.start_mark.line == event.end_mark.line else { return nil }
        let begin = Int(clamping: event.start_mark.column) + 1
        let width = Int(clamping: event.end_mark.column) + 1 - begin - text.unicodeScalars.count
        return width == 0 ? begin : width == 2 ? begin + 1 : nil
    }

    private func place(_ mark: yaml_mark_t) -> Mark {
        Mark(file: file, line: Int(clamping: mark.line) + 1, column: Int(clamping: mark.column) + 1)
    }

    private func syntaxFault() -> Stop {
        let problem = parser.problem.map { String(cString: $0) } ?? "not valid YAML"
        if parser.error == YAML_READER_ERROR {
            // The reader counts bytes ahead of the scanner, so the line is where the scanner stood.
            return Stop(message: "not valid UTF-8 text: \(problem)", mark: place(parser.mark))
        }
        let context = parser.context.map { String(cString: $0) } ?? ""
        let problemAt = place(parser.problem_mark)
        let fault = YAMLFault(
            problem: problem, context: context, problemAt: problemAt,
            contextAt: context.isEmpty ? problemAt : place(parser.context_mark), longQuote: longQuote)
        return Stop(message: fault.message, mark: fault.mark)
    }

    // MARK: - Tree

    private mutating func stream() throws(Stop) -> Node? {
        _ = try next()
        let (event, _) = try next()
        guard case .documentStart = event else { return nil }
        let (first, mark) = try next()
        let root = try node(first, mark, depth: 1)
        _ = try next()
        let (end, place) = try next()
        guard case .streamEnd = end else {
            throw Stop(message: "a second YAML document; one file holds one", mark: place)
        }
        return root
    }

    private mutating func node(_ event: Event, _ mark: Mark, depth: Int) throws(Stop) -> Node {
        nodes += 1
        guard nodes <= Bound.nodes else { throw Stop(message: "more than 65536 values in one file", mark: mark) }
        guard depth <= Bound.depth else { throw Stop(message: "nested deeper than 32 levels", mark: mark) }
        switch event {
        case .scalar(let text, let plain, let column):
            return Node(
                content: .scalar(
                    .init(
                        text: text, written: text, isAbsent: plain && text.isEmpty, isPlain: plain, column: column)),
                mark: mark)
        case .listStart:
            var items: [Node] = []
            while true {
                let (event, place) = try next()
                if case .listEnd = event { return Node(content: .list(items), mark: mark) }
                items.append(try node(event, place, depth: depth + 1))
            }
        case .mapStart:
            return Node(content: .map(try entries(depth: depth)), mark: mark)
        default:
            throw Stop(message: "not valid YAML", mark: mark)
        }
    }

    private mutating func entries(depth: Int) throws(Stop) -> [Node.Entry] {
        var entries: [Node.Entry] = []
        var lines: [String: Int] = [:]
        while true {
            let (event, mark) = try next()
            if case .mapEnd = event { return entries }
            guard case .scalar(let key, _, _) = event else {
                throw Stop(message: "a key must be a single word", mark: mark)
            }
            let (inner, place) = try next()
            let value = try node(inner, place, depth: depth + 1)
            if let line = lines[key] {
                diagnostics.append(
                    Diagnostic(.error, "'\(Quoted.short(key))' is given twice; first in line \(line)", at: mark))
                continue
            }
            lines[key] = mark.line
            entries.append(Node.Entry(key: key, mark: mark, value: value))
            if depth == 1 { entriesOfRoot.append(Node.Entry(key: key, mark: mark, value: value)) }
        }
    }
}

/// Text from a file inside a message: bounded and without control characters.
package enum Quoted {
    package static func short(_ text: String) -> String {
        var shown = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            guard shown.count < 64 else { return String(shown) + "…" }
            shown.append(scalar.properties.generalCategory == .control ? "\u{fffd}" : scalar)
        }
        return String(shown)
    }
}
