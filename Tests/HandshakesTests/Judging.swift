@testable import Handshakes

extension Handshake {
    /// As `judge` would say it of an answer with these two fields alone.
    func judge(
        status: Int, wwwAuthenticate: [[UInt8]], location: [UInt8]?, requestURL: String
    ) -> ChallengeVerdict {
        var fields = wwwAuthenticate.map { (name: Array("WWW-Authenticate".utf8), value: $0) }
        if let location { fields.append((name: Array("Location".utf8), value: location)) }
        return judge(UpstreamAnswer(status: status, fields: fields, requestURL: requestURL, requestMethod: []))
    }
}
