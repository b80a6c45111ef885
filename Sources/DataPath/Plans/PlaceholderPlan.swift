internal import HTTP1

/// The texts that a confined program has in place of secrets, as one route sees them. Nil on every route where nobody is confined.
package final class PlaceholderPlan: Sendable {
    /// A text and the variable of the program's environment that holds it.
    package struct Text: Sendable {
        let variable: String
        let octets: [UInt8]
        /// Routes whose identities name the variable; in words.
        let takers: String
        /// The identity of the route that the plan is for is among them.
        let isTaken: Bool

        package init(variable: String, text: String, takers: String, isTaken: Bool) {
            self.init(variable: variable, octets: Array(text.utf8), takers: takers, isTaken: isTaken)
        }

        init(variable: String, octets: [UInt8], takers: String, isTaken: Bool) {
            self.variable = variable
            self.octets = octets
            self.takers = takers
            self.isTaken = isTaken
        }
    }

    private let texts: [Text]
    /// Fields that this route's credential takes, in lower case.
    let fields: [[UInt8]]

    package init(_ texts: [Text], fields: [[UInt8]]) {
        self.texts = texts
        self.fields = fields
    }

    /// The same for a destination that no route names, which takes none.
    var elsewhere: PlaceholderPlan {
        PlaceholderPlan(
            texts.map { Text(variable: $0.variable, octets: $0.octets, takers: $0.takers, isTaken: false) }, fields: [])
    }

    /// The fault of a part that holds a placeholder; nil where the credential is about to replace it.
    func objection(to part: PlaceholderPart, in bytes: Span<UInt8>) -> String? {
        let octets = bytes.decoded(part)
        let found = texts.filter { octets.hold($0.octets) }
        let place =
            switch part.place {
            case .method: "the request's method"
            case .target: "the request's target"
            case .name: "a field's name"
            case .field: String(bytes, part.field)
            }
        guard let first = found.first else {
            return "\(place) holds a placeholder that this run of the program was not given"
        }
        if let foreign = found.first(where: { !$0.isTaken }) {
            return "\(place) holds the placeholder of \(foreign.variable), which \(foreign.takers)"
        }
        guard !part.isReplaced else { return nil }
        return "\(place) holds the placeholder of \(first.variable), and the route puts its credential elsewhere"
    }
}

extension [UInt8] {
    fileprivate func hold(_ other: [UInt8]) -> Bool {
        guard count >= other.count else { return false }
        return (0...(count - other.count)).contains { start in self[start..<start + other.count].elementsEqual(other) }
    }
}

extension String {
    fileprivate init(_ bytes: Span<UInt8>, _ range: ByteRange) {
        var octets: [UInt8] = []
        for index in range.indices { octets.append(bytes[index]) }
        self = String(decoding: octets, as: UTF8.self)
    }
}
