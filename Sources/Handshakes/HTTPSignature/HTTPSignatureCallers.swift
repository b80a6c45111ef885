internal import Octets

/// The signatures that a request brings, which go on beside ours as they are. Nothing of them is verified.
struct HTTPSignatureCallers {
    private let inputs: [StructuredDictionary.Member]
    private let signatures: [StructuredDictionary.Member]

    static let fieldNames = ["Signature-Input", "Signature"]

    /// - Throws: where one of the two fields cannot be read, or does not fit the other (RFC 9421 §4): ours would stand in it, and a verifier
    ///   could refuse it with the rest.
    init(of request: RequestToSign) throws(SigningFault) {
        inputs = try Self.members(Self.fieldNames[0], of: request)
        signatures = try Self.members(Self.fieldNames[1], of: request)
        guard inputs.allSatisfy({ $0.value.isInput }), signatures.allSatisfy({ $0.value.isSignature }),
            Set(inputs.map(\.key)) == Set(signatures.map(\.key))
        else { throw SigningFault("its own signatures are none of RFC 9421", isCallers: true) }
    }

    /// Whether the request came with a signature under this label, other than in our place.
    func have(_ label: String) -> Bool { inputs.contains { $0.key == label } }

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

extension StructuredDictionary.Value {
    /// The components of a signature: strings, without what only later readers know (RFC 9651).
    fileprivate var isInput: Bool {
        guard case .list(let items, let parameters) = self else { return false }
        return items.allSatisfy { item in
            if case .string = item.value { item.parameters.allSatisfy(\.isOfFirstEdition) } else { false }
        } && parameters.allSatisfy(\.isOfFirstEdition)
    }

    fileprivate var isSignature: Bool {
        guard case .item(let item) = self, case .bytes = item.value else { return false }
        return item.parameters.allSatisfy(\.isOfFirstEdition)
    }
}

extension StructuredParameter {
    /// RFC 8941, by which RFC 9421 has its fields, knew neither dates nor display strings.
    fileprivate var isOfFirstEdition: Bool {
        switch value {
        case .date, .displayString: false
        default: true
        }
    }
}
