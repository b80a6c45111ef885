internal import Numbers
internal import Octets

/// A body in `aws-chunked`, as its head announces it.
struct AWSSigV4Streaming: Sendable, Equatable {
    enum Form: Sendable, CaseIterable {
        case signed, signedWithTrailer, unsignedWithTrailer

        /// The value of `X-Amz-Content-Sha256`.
        var word: String {
            switch self {
            case .signed: "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
            case .signedWithTrailer: "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
            case .unsignedWithTrailer: "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
            }
        }
    }

    let form: Form
    /// Octets of the data in the chunks.
    let length: Int64
    /// Names of the fields behind the chunks, in small letters.
    let trailers: Set<String>

    /// The caller's fields that announce such a body.
    static let fieldNames = [
        "X-Amz-Content-Sha256", "X-Amz-Decoded-Content-Length", "X-Amz-Trailer", "Content-Encoding",
    ]

    /// Whether any of a caller's fields announces such a body, rightly or wrongly.
    static func isAnnounced(in received: [(name: String, value: String)]) -> Bool {
        received.contains { name, value in
            name.utf8.matches("X-Amz-Content-Sha256") && value.uppercased().hasPrefix("STREAMING-")
                || name.utf8.matches("X-Amz-Decoded-Content-Length") || name.utf8.matches("X-Amz-Trailer")
                || name.utf8.matches("Content-Encoding") && value.lowercased().contains("aws-chunked")
        }
    }

    /// - Parameter received: the caller's fields as they came.
    /// - Returns: nil where none of them announces such a body.
    /// - Throws: where they do not agree: the service would store another body than was meant.
    init?(_ received: [(name: String, value: String)]) throws(SigningFault) {
        guard Self.isAnnounced(in: received) else { return nil }
        func values(_ name: String) -> [String] { received.filter { $0.name.utf8.matches(name) }.map(\.value) }
        var hashes = values("X-Amz-Content-Sha256")
        // The field belongs to signatures: an SDK that signs nothing leaves it out, and signs no chunk.
        if hashes.isEmpty, values("Content-Encoding").contains(where: { $0.lowercased().contains("aws-chunked") }) {
            hashes = [Form.unsignedWithTrailer.word]
        }
        guard hashes.count == 1, let form = Form.allCases.first(where: { $0.word == hashes[0] }) else {
            throw Self.fault("X-Amz-Content-Sha256 names none of the forms that can be signed anew")
        }
        let lengths = values("X-Amz-Decoded-Content-Length")
        guard lengths.count == 1, lengths[0].utf8.count <= 19, lengths[0].utf8.first != UInt8(ascii: "-"),
            let length: Int64 = ReceivedNumber(lengths[0])?.within(0...Int64.max)
        else { throw Self.fault("X-Amz-Decoded-Content-Length is not one number of octets") }
        let names = values("X-Amz-Trailer").flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }.map {
            String($0.trimmingBlanks()).lowercased()
        }
        let trailers = Set(names)
        guard trailers.count == names.count, names.count <= Self.mostTrailers,
            names.allSatisfy({ $0.isTrailerName && $0 != AWSSigV4ChunkSigner.trailerSignature })
        else { throw Self.fault("X-Amz-Trailer is not a list of different names") }
        guard names.isEmpty == (form == .signed) else {
            throw Self.fault("X-Amz-Content-Sha256 and X-Amz-Trailer do not agree on trailers")
        }
        self.form = form
        self.length = length
        self.trailers = trailers
    }

    private static let mostTrailers = 16

    private static func fault(_ reason: String) -> SigningFault {
        SigningFault("its body is announced in aws-chunked, but \(reason)", isCallers: true)
    }
}

extension Substring {
    fileprivate func trimmingBlanks() -> Substring {
        var rest = drop { $0 == " " || $0 == "\t" }
        while let last = rest.last, last == " " || last == "\t" { rest.removeLast() }
        return rest
    }
}

extension String {
    fileprivate var isTrailerName: Bool {
        (1...128).contains(utf8.count) && utf8.allSatisfy { $0.isLetterOrDigit || $0 == UInt8(ascii: "-") }
    }
}
