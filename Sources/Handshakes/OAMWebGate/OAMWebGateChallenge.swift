internal import HTTP1
internal import Octets

/// Realm of an `OAM-Auth` challenge: `<WebGate>:<level>`, a separator that no document settles, and a URL that is only information.
struct OAMRealm: Equatable {
    /// Name of the WebGate; the whole realm where it has another shape.
    var name: [UInt8]
    /// 0–9999.
    var level: Int?
    var url: [UInt8]?

    /// The leftmost colon after at least one byte that is followed by one to four digits and then by blanks, `/` or the end. One
    /// pass: behind each colon at most five bytes are looked at.
    init(_ realm: [UInt8]) {
        name = realm
        for colon in realm.indices.dropFirst() where realm[colon] == UInt8(ascii: ":") {
            let digits = realm[(colon + 1)...].prefix(5).prefix(while: \.isDigit)
            guard (1...4).contains(digits.count) else { continue }
            let rest = realm[digits.endIndex...]
            guard rest.first.map({ $0.isBlank || $0 == UInt8(ascii: "/") }) ?? true else { continue }
            name = Array(realm[..<colon])
            level = digits.reduce(0) { $0 * 10 + Int($1 & 0x0F) }
            url = rest.isEmpty ? nil : Array(rest.drop(while: \.isBlank))
            return
        }
    }
}

// MARK: - Judging answers

extension OAMWebGateHandshake {
    var inspectedStatuses: [Int] { [401, 302, 303, 307] }

    func judge(_ answer: UpstreamAnswer) -> ChallengeVerdict {
        switch answer.status {
        case 401 where settings.contextSource != .redirect:
            return judgeChallenge(answer.values(of: "WWW-Authenticate"), requestURL: answer.requestURL)
        case 302, 303, 307:
            guard let location = answer.values(of: "Location").last, Self.isLoginPage(location) else { return .none }
            guard settings.contextSource != .challenge else {
                return .misconfigured(
                    reason: "the WebGate redirected to its login page: it does not know user_agent_prefix, or its "
                        + "OAMAuthUserAgentPrefix or OAMAuthAuthenticationServiceLocation is not set")
            }
            return judgeRedirect(location, requestURL: answer.requestURL)
        default:
            return .none
        }
    }

    /// The longest request context taken; longer ones do not come from a head that a WebGate can send.
    static var longestContext: Int { 16 * 1024 }

    // The first usable one counts; broken ones before it do not hide it.
    private func judgeChallenge(_ lines: [[UInt8]], requestURL: String) -> ChallengeVerdict {
        var complaint: String?
        for item in AuthChallenge.list(lines) where item.scheme.matches(settings.challengeScheme) {
            switch context(of: item) {
            case .success(let context):
                var realm = OAMRealm([])
                switch item["realm"] {
                case .one(let text): realm = OAMRealm(text)
                case .absent: break
                case .duplicate:
                    complaint = complaint ?? "duplicate realm"
                    continue
                }
                return .challenged(
                    challenge(realm: realm.name, level: realm.level, context: context, requestURL: requestURL))
            case .failure(let fault):
                complaint = complaint ?? fault.reason
            }
        }
        return complaint.map { .unusable(reason: $0) } ?? .none
    }

    private struct ContextFault: Error { var reason: String }

    private func context(of item: AuthChallenge) -> Result<[UInt8], ContextFault> {
        if let fault = item.fault { return .failure(ContextFault(reason: fault.rawValue)) }
        switch item[settings.contextParam] {
        case .absent: return .failure(ContextFault(reason: "no \(settings.contextParam)"))
        case .duplicate: return .failure(ContextFault(reason: "duplicate \(settings.contextParam)"))
        case .one(let bytes):
            guard Self.isContext(bytes) else {
                return .failure(
                    ContextFault(reason: "\(settings.contextParam) is empty, too long, or not visible ASCII"))
            }
            return .success(bytes)
        }
    }

    private static func isContext(_ bytes: [UInt8]) -> Bool {
        (1...longestContext).contains(bytes.count) && bytes.allSatisfy { (0x20...0x7E).contains($0) }
    }

    // Host and query of the redirect are not looked at: only the path tells the login page from redirects of the application.
    private static func isLoginPage(_ location: [UInt8]) -> Bool {
        let path = location.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        return path.has(suffix: "/obrareq.cgi") || path.has(part: "/oam/server/")
    }

    private func judgeRedirect(_ location: [UInt8], requestURL: String) -> ChallengeVerdict {
        guard let mark = location.firstIndex(of: UInt8(ascii: "?")) else {
            return .unusable(reason: "redirect to the login page without a query")
        }
        let context = Array(location[(mark + 1)...])
        guard Self.isContext(context) else {
            return .unusable(reason: "query of the redirect is empty, too long, or not visible ASCII")
        }
        return .challenged(
            challenge(realm: Self.agent(in: context), level: nil, context: context, requestURL: requestURL))
    }

    // The WebGate's name as the realm would say it: `agentid%3D<name>`, up to the next encoded blank.
    private static func agent(in context: [UInt8]) -> [UInt8] {
        guard let mark = context.map(\.asciiLowercased).firstRange(of: "agentid%3d".utf8) else { return [] }
        return Array(
            context[mark.upperBound...].prefix { $0.isLetterOrDigit || "-._~".utf8.contains($0) }.prefix(256))
    }

    private func challenge(realm: [UInt8], level: Int?, context: [UInt8], requestURL: String) -> Challenge {
        let url = String(requestURL.prefix { $0 != "?" })
        // Text of another shape may be another one each time.
        let isName = level != nil || realm.allSatisfy { $0.isLetterOrDigit || "-._~:".utf8.contains($0) }
        return Challenge(
            realm: isName ? realm.losslessText : "", level: level, context: Secret(context), resource: requestURL,
            boundURL: settings.tokenScope == .url ? url : nil)
    }
}

extension Collection<UInt8> {
    fileprivate func has(suffix text: String) -> Bool {
        count >= text.utf8.count && self.dropFirst(count - text.utf8.count).matches(text)
    }

    fileprivate func has(part text: String) -> Bool {
        map(\.asciiLowercased).firstRange(of: text.utf8.map(\.asciiLowercased)) != nil
    }
}
