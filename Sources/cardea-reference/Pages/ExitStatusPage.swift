import Gateway

extension Reference {
    var exitStatusPage: (page: Page, about: String) {
        var text = Markdown.head("Exit status")
        text += Markdown.table(
            ["status", "what it says", "what to do"],
            ProcessEnd.allCases.map {
                [
                    "\(Markdown.anchor("\($0.rawValue)"))\($0.rawValue)", Markdown.plain($0.meaning),
                    Markdown.plain($0.advice),
                ]
            })
        text += """
            `cardea run -- COMMAND` ends with the status of COMMAND; with 127 where it cannot be started, and with 128 and the signal's number where
            a signal ended it.

            """
        return (Page(name: "exit-status.md", text: text), "every status that a command ends with")
    }
}
