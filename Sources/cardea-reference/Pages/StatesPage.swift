import Keeping

extension Reference {
    var statesPage: (page: Page, about: String) {
        var text = Markdown.head("States")
        text += """
            The state of a token, and of an identity, whose state is the worst of its tokens', worst first. The word is the same in `cardea tokens`,
            `cardea explain`, `/readyz`, `/status`, [`cardea_identity_state`](metrics.md#cardea_identity_state) and on the page.


            """
        text += Markdown.table(
            ["state", "what it says"],
            IdentityState.allCases.map {
                [Markdown.anchor($0.rawValue) + Markdown.code($0.rawValue), Markdown.plain($0.meaning)]
            })
        return (Page(name: "states.md", text: text), "every state of an identity and its tokens")
    }
}
