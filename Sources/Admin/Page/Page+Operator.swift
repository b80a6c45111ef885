internal import Keeping
internal import Octets

/// Changes that can be made from the page, by whoever has signed in. Plain forms: they work without a script.
extension Page {
    var signIn: [HTML] {
        switch `operator` {
        case .cannotSignIn: []
        case .mayProve: ["<a class=\"pace\" href=\"/sign-in\">sign in</a>\n"]
        case .isSignedIn:
            [button("Reload the configuration", "/reload"), button("Purge all tokens", "/tokens/purge?all=yes")]
        }
    }

    func buttons(of identity: IdentityFacts) -> HTML {
        let name = identity.status.name
        let query = "identity=\(PercentEncoding.encode(name))"
        let reset =
            identity.state == .quarantined ? button("Lift the quarantine", "/reset?\(query)", of: name) : nil
        return "<div class=\"acts\">\(button("Purge", "/tokens/purge?\(query)", of: name))\(reset)</div>\n"
    }

    private func button(_ text: String, _ action: String, of identity: String? = nil) -> HTML {
        // Read out alone, one of many that look alike says nothing.
        let label = identity.map { name -> HTML in " aria-label=\"\(text): \(shortened(name, to: 80))\"" }
        let target = view.returning(from: action)
        return "<form method=\"post\" action=\"\(target)\"><button\(label)>\(text)</button></form>"
    }

    /// The sentence that tells an operator the effect of the button that was pressed.
    var outcome: HTML? {
        let texts = [
            "reload": "The configuration is being read again; what comes of it stands here with the next look.",
            "purge": "Purged. Tokens are had anew as they are asked for.",
            "reset": "The quarantine is lifted; the credential is tried again by the next request that needs it.",
            "unstored":
                "Purged from memory, but not all from the store: tokens may come back from there. Purge again when it works.",
            "nothing": "Nothing was changed.",
        ]
        return done.flatMap { texts[$0] }.map { "<p class=\"notice good\" role=\"status\">\($0)</p>\n" }
    }
}
