internal import Configuration
internal import Numbers

/// An answer of Adobe's, read without trust: its status, its tree, and the error that it may be or hold
/// (docs/design/wire/adobe-pass.md#errors).
struct AdobePassReply {
    let status: Int
    /// Nil for what is no JSON, as the page that says 429.
    let tree: JSONTree?
    let sentAt: UInt64
    let location: String?

    init(_ answer: IssuerAnswer) {
        status = answer.status
        sentAt = answer.sentAt
        location = answer.header("Location")
        tree = try? JSONTree(answer.body)
    }

    func text(_ pointer: String...) -> String? { tree?.text(pointer) }

    /// The error that is the whole answer, or stands in it under `error`, or in its only decision.
    var error: AdobePassError? {
        guard let tree else { return nil }
        if status >= 400 { return AdobePassError(tree, []) ?? AdobePassError(tree, ["error"]) }
        return AdobePassError(tree, ["error"]) ?? AdobePassError(tree, ["decisions", "0", "error"])
    }
}

/// An enhanced error (docs/design/wire/adobe-pass.md#errors). `action` says what to do; codes may be new ones.
struct AdobePassError {
    let action: String
    /// The code has a fixed shape, so that it may be shown.
    let code: String

    init?(_ tree: JSONTree, _ path: [String]) {
        guard
            let action = tree.text(path + ["action"])?.asErrorCode
                ?? (tree.text(path + ["code"]) == nil ? nil : "none")
        else { return nil }
        self.action = action
        code = tree.text(path + ["code"])?.asErrorCode ?? "unnamed_error"
    }

    /// The error is about the decision and not about how it was asked for, or how the server is.
    var isDenial: Bool { action == "none" && !code.hasPrefix("invalid_") && code != "internal_server_error" }

    func failure(_ step: String) -> GrantFailure {
        switch action {
        case "authentication": .interactionRequired(reason: "\(step): \(code)")
        case "configuration", "application-registration": .configuration(reason: "\(step): \(code)")
        case "retry": .timedOut(step: "\(step) (\(code))")
        default:
            if isDenial {
                .policyDenied(reason: code)
            } else if code == "internal_server_error" {
                .issuerUnavailable(retryAfterSeconds: nil, reason: "\(step): \(code)")
            } else {
                .configuration(reason: "\(step): \(code)")
            }
        }
    }
}
