internal import CGSSAPI

/// The pair of statuses that a call of GSSAPI returns (RFC 2744 section 3.9).
///
/// A status is turned into a fault on the thread of the failing call and before any other call: MIT keeps the detailed text, such as
/// the name of the unknown server, for the last failure of each thread.
struct GSSStatus {
    let major: UInt32
    let minor: UInt32

    /// The errors of the major status: bits 16 to 31. The lower half is supplementary information (RFC 2744 section 3.9.1).
    var isError: Bool { major & 0xFFFF_0000 != 0 }
    /// GSS_S_CONTINUE_NEEDED.
    var continues: Bool { major & 1 != 0 }
    /// The routine error, bits 16 to 23.
    var routineError: UInt32 { (major >> 16) & 0xFF }

    /// GSS_S_CREDENTIALS_EXPIRED (RFC 2744 section 3.9.1).
    static let credentialsExpired: UInt32 = 11
    /// GSS_S_FAILURE.
    static let failure: UInt32 = 13

    /// The fault of this status; `doing` begins its message.
    func fault(_ library: GSSLibrary, _ mechanism: GSSMechanism, doing: String) -> GSSFault {
        let told = minor == 0 ? "" : Self.text(library, minor, Int32(CGSS_CODE_MINOR), mechanism)
        let detail = told == "Success" ? "" : told
        let kind = GSSClassification.kind(routineError: routineError, minor: minor, detail: detail)
        // GSS_S_FAILURE's own text only says that the minor status may tell more. The detail comes first, lest a cut lose it.
        let isPlain = routineError == Self.failure && !detail.isEmpty
        let general = isPlain ? "" : Self.text(library, major, Int32(CGSS_CODE_MAJOR), mechanism)
        let words = [detail, general].filter { !$0.isEmpty }.joined(separator: "; ")
        return GSSFault(kind, "\(doing): \(words)")
    }

    /// A status has several texts when several bits are set. Eight are read at most, each to 512 bytes.
    private static func text(
        _ library: GSSLibrary, _ status: UInt32, _ kind: Int32, _ mechanism: GSSMechanism
    ) -> String {
        var texts: [String] = []
        var more: UInt32 = 0
        for _ in 0..<8 {
            var buffer = cgss_buffer()
            let answer = cgss_display(library.calls, status, kind, mechanism.code, &more, &buffer)
            defer { cgss_release_buffer(library.calls, &buffer) }
            guard answer >> 16 == 0 else { break }
            texts.append(String(decoding: bytes(of: buffer, limit: GSSFault.maximumMessage), as: UTF8.self))
            if more == 0 { break }
        }
        return texts.joined(separator: ", ")
    }

    /// The first `limit` bytes of a buffer of the library's.
    static func bytes(of buffer: cgss_buffer, limit: Int) -> [UInt8] {
        guard let start = buffer.value else { return [] }
        return Array(UnsafeRawBufferPointer(start: start, count: Int(clamping: min(buffer.length, limit))))
    }
}
