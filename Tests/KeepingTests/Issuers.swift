import HTTP1
import ScriptedKernel

@testable import DataPath
@testable import Scenes

/// Configurations whose issuer stands at 127.0.0.1:9100.
extension Plans {
    /// An OAuth client.
    /// - Parameters:
    ///   - token: members of the identity's `token`.
    ///   - route: further members of the route.
    static func client(_ token: String = "", identity: String = "", route: String = "") -> String {
        """
        identities:
          o:
            oauth2: {token_url: "http://127.0.0.1:9100/token", client_id: c, client_secret: env:S\(member(identity))}
            token: {\(token)}
        routes:
          - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: o\(member(route))}

        """
    }

    /// WebGate identities of the user `svc`, one a name, each with a route for `/NAME/`.
    /// - Parameter paths: further routes of the first identity.
    static func gate(
        _ token: String = "", identity: String = "", names: [String] = ["w"], paths: [String] = []
    ) -> String {
        var text = "identities:\n"
        for name in names {
            text += """
                  \(name):
                    oam_webgate:
                      {service: "http://127.0.0.1:9100/s", user_agent_prefix: P, client_id: c-\(name), username: svc,
                       password: env:P\(member(identity))}
                    token: {\(token)}

                """
        }
        text += "routes:\n"
        for (name, path) in names.map({ ($0, $0) }) + paths.map({ (names[0], $0) }) {
            text += """
                  - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: \(name), match: {path: "/\(path)/"}, \
                name: r-\(path)}

                """
        }
        return text
    }

    private static func member(_ text: String) -> String { text.isEmpty ? "" : ", " + text }
}

/// Answers of issuers.
extension Wire {
    static func json(_ body: String, status: Int = 200, _ fields: String = "") -> String {
        "HTTP/1.1 \(status) X\r\nContent-Type: application/json\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    static func bearer(_ token: String, expiresIn: String = "100", _ more: String = "") -> String {
        json(#"{"access_token":"\#(token)","token_type":"Bearer","expires_in":\#(expiresIn)\#(more)}"#)
    }

    static func idaas(_ type: String, _ value: String) -> String {
        json(#"{"X-Idaas-Rest-Token-Type":"\#(type)","X-Idaas-Rest-Token-Value":"\#(value)"}"#)
    }

    static let unavailable = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"
}

/// An OAuth server that numbers its tokens: t1, t2, …
final class NumberedIssuer {
    var granted = 0
    var expiresIn = "100"
    /// Set: answers this instead.
    var fails: String?

    func answer(_ request: Request) -> String? {
        if let fails { return fails }
        granted += 1
        return Wire.bearer("t\(granted)", expiresIn: expiresIn)
    }
}

/// OAM's Mobile & Social server.
final class NumberedGate {
    var handles = 0
    var users = 0
    var tokens = 0
    var fails: String?
    /// Steps that never get an answer.
    var hangs: Set<String> = []
    var refusesPassword = false

    func answer(_ request: Request) -> String? {
        let step = request.path.split(separator: "/").last.map(String.init) ?? ""
        if hangs.contains(step) { return nil }
        if let fails { return fails }
        switch step {
        case "register":
            if refusesPassword { return Wire.json("{}", status: 401) }
            handles += 1
            return Wire.idaas("CLIENTREGHANDLE", "h\(handles)")
        case "authenticate":
            if refusesPassword { return Wire.json("{}", status: 401) }
            users += 1
            return Wire.idaas("USERTOKEN", "u\(users)")
        default:
            tokens += 1
            return Wire.idaas("ACCESSTOKEN", "a\(tokens)")
        }
    }

    /// An upstream behind a WebGate of this name: what carries a token of now goes through.
    func guarded(_ realm: String = "WG", accepts: @escaping (String) -> Bool = { _ in true }) -> (Request) -> String? {
        { request in
            guard let sent = request.authorization, accepts(sent) else {
                return
                    "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: OAM-Auth realm=\"\(realm):2 /\", request-ctx=\"c\"\r\n"
                    + "Content-Length: 0\r\n\r\n"
            }
            return Wire.ok(sent)
        }
    }
}
