internal import Gateway
internal import Keeping
internal import Octets

/// Changes that can be made from the page, by whoever has signed in. Plain forms: they work without a script.
extension Page {
    mutating func writeOperator() {
        switch `operator` {
        case .cannotSignIn: break
        case .mayProve: out.markup("<a class=\"pace\" href=\"/sign-in\">sign in</a>\n")
        case .isSignedIn:
            button("Reload the configuration", "/reload")
            button("Purge all tokens", "/tokens/purge?all=yes")
        }
    }

    mutating func writeButtons(of identity: IdentityFacts) {
        let name = PercentEncoding.encode(identity.status.name)
        out.markup("<div class=\"acts\">")
        button("Purge", "/tokens/purge?identity=\(name)", of: identity.status.name)
        if identity.state == .quarantined {
            button("Lift the quarantine", "/reset?identity=\(name)", of: identity.status.name)
        }
        out.markup("</div>\n")
    }

    private mutating func button(_ text: StaticString, _ place: String, of identity: String? = nil) {
        out.markup("<form method=\"post\"")
        out.attribute("action", place)
        out.markup("><button")
        // Read out alone, one of many that look alike says nothing.
        if let identity { out.attribute("aria-label", "\(text): \(shortened(identity, to: 80))") }
        out.markup(">")
        out.markup(text)
        out.markup("</button></form>")
    }

    mutating func writeDone() {
        let text: StaticString
        switch done {
        case "reload": text = "The configuration is being read again; what comes of it stands here with the next look."
        case "purge": text = "Purged. Tokens are had anew as they are asked for."
        case "reset":
            text = "The quarantine is lifted; the credential is tried again by the next request that needs it."
        case "unstored":
            text =
                "Purged from memory, but not all from the store: tokens may come back from there. Purge again when it works."
        case "nothing": text = "Nothing was changed."
        default: return
        }
        out.markup("<p class=\"notice good\" role=\"status\">")
        out.markup(text)
        out.markup("</p>\n")
    }
}
