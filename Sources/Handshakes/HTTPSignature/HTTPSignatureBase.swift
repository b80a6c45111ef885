internal import Octets

/// The parameters of a signature (RFC 9421 §2.3). Their texts are printable ASCII.
struct HTTPSignatureParameters: Sendable, Equatable {
    /// Seconds since 1970.
    var created: Int64
    /// Seconds since 1970.
    var expires: Int64?
    var keyID: String?
    var algorithm: String?
    var nonce: String?
    /// The application that the signature is for.
    var tag: String?

    fileprivate var written: [UInt8] {
        var octets = Array(";created=\(created)".utf8)
        if let expires { octets += ";expires=\(expires)".utf8 }
        for (name, text) in [("keyid", keyID), ("alg", algorithm), ("nonce", nonce), ("tag", tag)] {
            guard let value = text?.structuredString else { continue }
            octets += ";\(name)=".utf8
            octets += value
        }
        return octets
    }
}

/// The octets that a signature is made over (RFC 9421 §2.5).
struct HTTPSignatureBase: Sendable {
    /// A covered component: its identifier as the signature spells it, and its value.
    struct Line: Sendable {
        var identifier: [UInt8]
        var value: [UInt8]
    }

    var lines: [Line]
    var parameters: HTTPSignatureParameters

    /// The value of the member in `Signature-Input`.
    var input: [UInt8] {
        [UInt8(ascii: "(")] + lines.map(\.identifier).joined(separator: [0x20]) + [UInt8(ascii: ")")]
            + parameters.written
    }

    var octets: [UInt8] {
        var octets: [UInt8] = []
        for line in lines {
            octets += line.identifier
            octets += ": ".utf8
            octets += line.value
            octets.append(0x0A)
        }
        octets += "\"@signature-params\": ".utf8
        return octets + input
    }
}

extension HTTPSignatureBase {
    /// - Parameter components: of which those that the request lacks are left out.
    init(
        _ components: [HTTPSignatureComponent], of message: HTTPSignatureMessage, _ parameters: HTTPSignatureParameters
    ) throws(SigningFault) {
        var lines: [Line] = []
        for component in components {
            guard let value = try message.value(of: component) else { continue }
            lines.append(Line(identifier: Array("\"\(component.name)\"".utf8), value: value))
        }
        self.init(lines: lines, parameters: parameters)
    }
}
