internal import Octets

/// The signatures that a request brings, which go on beside ours as they are. Nothing of them is verified.
struct HTTPSignatureCallers {
    private let inputs: [StructuredDictionary.Member]
    private let signatures: [StructuredDictionary.Member]

    static let fieldNames = ["Signature-Input", "Signature"]

    /// - Throws: where one of the two fields cannot be read: ours would stand in it and could not be read, either.
    init(of request: RequestToSign) throws(SigningFault) {
        inputs = try Self.members(Self.fieldNames[0], of: request)
        signatures = try Self.members(Self.fieldNames[1], of: request)
    }

    private static func members(
        _ name: String, of request: RequestToSign
    ) throws(SigningFault) -> [StructuredDictionary.Member] {
        do throws(StructuredDictionary.Fault) {
            return try StructuredDictionary(request.receivedLines(of: name)).members
        } catch { throw SigningFault("its own \(name) cannot be read: \(error.rawValue)", isCallers: true) }
    }

    /// Both fields, with a signature under this label behind those that came under others.
    func fields(with label: String, _ input: [UInt8], _ signature: [UInt8]) -> [InjectedField] {
        func value(_ members: [StructuredDictionary.Member], _ own: [UInt8]) -> [UInt8] {
            let others = members.filter { $0.key != label }.map(\.written)
            return Array((others + [Array("\(label)=".utf8) + own]).joined(separator: Array(", ".utf8)))
        }
        return [
            InjectedField(name: Self.fieldNames[0], value: value(inputs, input)),
            InjectedField(
                name: Self.fieldNames[1],
                value: value(signatures, Array(":\(Base64.encode(signature)):".utf8))),
        ]
    }
}

extension RequestToSign {
    /// The values of the caller's own fields of this name, in any case of letters.
    func receivedLines(of name: String) -> [[UInt8]] {
        received.filter { $0.name.utf8.matches(name) }.map { Array($0.value.utf8) }
    }
}
