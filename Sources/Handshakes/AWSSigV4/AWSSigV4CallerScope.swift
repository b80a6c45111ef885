internal import Octets

/// The region and the service that a caller has signed its own request for, with whatever key. Nothing of it is verified: it is a wish, which
/// the settings grant or refuse.
struct AWSSigV4CallerScope: Sendable, Equatable {
    let region: String
    let service: String

    /// - Parameter received: the caller's fields as they came.
    /// - Returns: nil where the request has no signature of AWS.
    /// - Throws: where it has one whose scope cannot be told for certain.
    static func find(in received: [(name: String, value: String)]) throws(SigningFault) -> AWSSigV4CallerScope? {
        let values = received.filter { $0.name.utf8.matches("authorization") }.map(\.value)
        guard values.contains(where: { $0.lowercased().hasPrefix("aws4-") }) else { return nil }
        guard values.count == 1, let scope = AWSSigV4CallerScope(authorization: values[0]) else {
            throw SigningFault("its own signature does not name one day, region and service", isCallers: true)
        }
        return scope
    }

    /// - Parameter value: of an `Authorization` field.
    /// - Returns: nil for anything but one credential of the one algorithm.
    private init?(authorization value: String) {
        let words = value.split(separator: " ", maxSplits: 1)
        guard words.count == 2, words[0] == AWSSigV4Signature.algorithm else { return nil }
        let credentials = words[1].split(separator: ",").map { $0.drop { $0 == " " } }.filter {
            $0.hasPrefix(Self.credential)
        }
        guard credentials.count == 1 else { return nil }
        // From the end, since the id of a key that means nothing may have any form.
        let parts = credentials[0].dropFirst(Self.credential.utf8.count).split(
            separator: "/", omittingEmptySubsequences: false)
        guard parts.count >= 5, parts[parts.count - 1] == AWSSigV4CredentialScope.end, !parts[0].isEmpty,
            parts[parts.count - 4].utf8.count == 8, parts[parts.count - 4].utf8.allSatisfy(\.isDigit),
            parts[parts.count - 3].isScopeWord, parts[parts.count - 2].isScopeWord
        else { return nil }
        region = String(parts[parts.count - 3])
        service = String(parts[parts.count - 2])
    }

    private static let credential = "Credential="
}

extension Substring {
    /// Whether it is written as regions and services are.
    fileprivate var isScopeWord: Bool {
        (1...64).contains(utf8.count) && utf8.allSatisfy { $0.isLetterOrDigit || $0 == UInt8(ascii: "-") }
    }
}
