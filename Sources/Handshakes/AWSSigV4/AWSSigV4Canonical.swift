internal import Octets

/// The rule by which a service reads paths.
enum AWSSigV4Path: Sendable, Equatable {
    /// Dot segments and empty ones are resolved, and what is written is encoded once more.
    case normalised
    /// S3: a path is a key, encoded once, and nothing in it is resolved.
    case asItStands

    /// - Parameter service: as it is signed.
    init(_ service: String) {
        self = ["s3", "s3-outposts", "s3-object-lambda"].contains(service) ? .asItStands : .normalised
    }
}

// Parts of the canonical request, as the server computes them from what it receives.

extension AWSSigV4Path {
    /// - Parameter path: the octets of the target before its query.
    /// - Returns: nil where an escape is broken, so that the server would read another path than is signed.
    func canonical(_ path: ArraySlice<UInt8>) -> [UInt8]? {
        var result: [UInt8] = []
        guard let key = PercentEncoding.decode(path) else { return nil }
        switch self {
        case .asItStands:
            // Servers decode the path before they encode it, so a key whose caller leaves `(` as it is, or escapes what needs no escape,
            // has the same form.
            result.reserveCapacity(path.count)
            for byte in key { result.appendPathOctet(byte) }
        case .normalised:
            var segments: [ArraySlice<UInt8>] = []
            for segment in path.split(separator: UInt8(ascii: "/")) {
                if segment.elementsEqual("..".utf8) {
                    _ = segments.popLast()
                } else if !segment.elementsEqual(".".utf8) {
                    segments.append(segment)
                }
            }
            for segment in segments {
                result.append(UInt8(ascii: "/"))
                for byte in segment { result.appendPathOctet(byte) }
            }
            if path.last == UInt8(ascii: "/"), !segments.isEmpty { result.append(UInt8(ascii: "/")) }
        }
        return result.isEmpty ? [UInt8(ascii: "/")] : result
    }
}

/// The parameters of a query, decoded.
struct AWSSigV4Query: Sendable, Equatable {
    private var parameters: [Parameter] = []

    private struct Parameter: Equatable {
        var name: [UInt8]
        var value: [UInt8]
    }

    /// - Returns: nil where an escape is broken.
    init?(_ query: ArraySlice<UInt8>) {
        for text in query.split(separator: UInt8(ascii: "&")) {
            let cut = text.firstIndex(of: UInt8(ascii: "=")) ?? text.endIndex
            // In a query `+` is a blank to the server, and is signed as one.
            guard let name = PercentEncoding.decode(text[..<cut], plusIsBlank: true),
                let value = PercentEncoding.decode(text[cut...].dropFirst(), plusIsBlank: true)
            else { return nil }
            parameters.append(Parameter(name: name, value: value))
        }
    }

    /// Whether somebody has signed the URL itself, for whoever has it.
    var isPresigned: Bool {
        parameters.contains { parameter in
            ["X-Amz-Signature", "X-Amz-Algorithm", "X-Amz-Credential", "AWSAccessKeyId"].contains {
                parameter.name.matches($0)
            }
        }
    }

    /// Names and values encoded in one way, with `=` between, sorted by name and then by value.
    var canonical: [UInt8] {
        let encoded = parameters.map { Parameter(name: $0.name.percentEncoded, value: $0.value.percentEncoded) }
        let sorted = encoded.sorted { one, other in
            one.name == other.name
                ? one.value.lexicographicallyPrecedes(other.value) : one.name.lexicographicallyPrecedes(other.name)
        }
        return Array(sorted.map { $0.name + [UInt8(ascii: "=")] + $0.value }.joined(separator: [UInt8(ascii: "&")]))
    }
}

/// The fields of a request that are signed.
struct AWSSigV4Fields: Sendable {
    /// Values in the order of their lines, by names in small letters.
    private var values: [String: [String]] = [:]

    mutating func add(_ name: String, _ value: String) { values[name.lowercased(), default: []].append(value) }

    /// Whether a field of the caller's is signed beside ours: those that the service reads. A proxy on the way may change any other.
    static func signs(_ name: String) -> Bool {
        let name = name.lowercased()
        return ["host", "content-type", "content-md5"].contains(name) || name.hasPrefix("x-amz-")
    }

    private var names: [String] { values.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) } }
    var signedNames: String { names.joined(separator: ";") }

    /// Lines, one for a name. Blanks around a value go, and runs of them become one.
    var canonical: [UInt8] {
        var lines: [UInt8] = []
        for name in names {
            lines += name.utf8
            lines.append(UInt8(ascii: ":"))
            let trimmed = (values[name] ?? []).map { value in
                value.utf8.split(whereSeparator: \.isBlank).joined(separator: [0x20])
            }
            lines += trimmed.joined(separator: [UInt8(ascii: ",")])
            lines.append(0x0A)
        }
        return lines
    }
}

extension Array<UInt8> {
    fileprivate mutating func appendPathOctet(_ byte: UInt8) {
        if byte == UInt8(ascii: "/") { append(byte) } else { appendPercentEncoded(byte) }
    }

    fileprivate var percentEncoded: [UInt8] {
        var result: [UInt8] = []
        for byte in self { result.appendPercentEncoded(byte) }
        return result
    }
}
