@testable import Scenes

/// Replaces the refresh token at each use, and ends the login when a spent one comes.
final class RotatingIssuer {
    var current = "r0"
    var uses = 0
    var reuses = 0
    /// Otherwise the same one comes back.
    var rotates = true
    /// Of the last answer: what goes with it.
    var expiresIn = "100"

    func answer(_ request: Request) -> String? {
        guard let sent = request.member("refresh_token") else { return Wire.ok("") }
        if request.member("scope") == "bad" { return Wire.json(#"{"error":"invalid_scope"}"#, status: 400) }
        guard sent == current else {
            if sent.hasPrefix("r"), current.hasPrefix("r") {
                reuses += 1
                current = "ended"
            }
            return Wire.json(#"{"error":"invalid_grant"}"#, status: 400)
        }
        uses += 1
        if rotates { current = "r\(uses)" }
        return Wire.bearer("t\(uses)", expiresIn: expiresIn, #","refresh_token":"\#(current)""#)
    }

    static func plan(
        _ identities: [String] = [""], token: String = "", routes: [(identity: Int, scope: String)] = [(0, "a")]
    ) -> String {
        var text = "identities:\n"
        for (index, more) in identities.enumerated() {
            text += """
                  i\(index):
                    oauth2:
                      {token_url: "http://127.0.0.1:9100/token", grant: refresh_token, client_id: c, client_secret: env:S,
                       refresh_token: env:R\(more.isEmpty ? "" : ", " + more)}
                    token: {\(token)}

                """
        }
        text += "routes:\n"
        for route in routes {
            text += """
                  - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: i\(route.identity), \
                match: {path: "/\(route.scope)/"}, name: \(route.scope), scopes: [\(route.scope)]}

                """
        }
        return text
    }
}

extension Request {
    /// Of a form.
    func member(_ name: String) -> String? {
        for pair in body.split(separator: "&") where pair.hasPrefix(name + "=") {
            return String(pair.dropFirst(name.utf8.count + 1))
        }
        return nil
    }
}
