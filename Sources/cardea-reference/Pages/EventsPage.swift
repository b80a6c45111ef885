extension Reference {
    var eventsPage: (page: Page, about: String) {
        var text = Markdown.head("Log events")
        text += """
            Events stand on standard error, one a line, as JSON or as text (`log.format`), from `log.level` on. An event's text is fixed; what differs
            stands in fields beside it, and no field ever has a header, a query, a body or a token. Events that others can cause without end are
            written at a bounded rate: the next one says in `left_out` how many were not.

            In systemd's journal (standard output or error is the stream that `JOURNAL_STREAM` names) a line begins with its priority, which the
            journal takes off: `<3>` for `error`, `<4>` for `warn`, `<6>` for `info` and access records, `<7>` for `debug`. So
            `journalctl -u cardea --priority warning --output cat` shows what is wrong, and each line is whole JSON. Elsewhere there is none.


            """
        for level in ["error", "warn", "info", "debug"] {
            let events = EventWords.all.filter { $0.levels.first == level }.sorted { $0.text < $1.text }
            text += "\(Markdown.anchor(level))\n## \(level)\n\n"
            text += Markdown.table(
                ["event", "fields", "what it says", "what to do"],
                events.map { event in
                    let also = event.levels.dropFirst().map { " (also `\($0)`)" }.joined()
                    return [
                        Markdown.anchor(Markdown.slug(event.text)) + Markdown.plain(event.text) + also,
                        event.fields.map { "`\($0)`" }.joined(separator: " "), Markdown.plain(event.meaning),
                        Markdown.plain(event.advice ?? ""),
                    ]
                })
        }
        text += Markdown.anchor("fields") + "\n## Fields\n\n"
        text += Markdown.table(
            ["field", "what it holds"], EventWords.fields.map { [Markdown.code($0.name), $0.meaning] })
        text += Markdown.anchor("access") + "\n## Access records\n\n"
        text += """
            One line a request on standard output, where `log.access` says so: `errors` for those of 400 and above and those that Cardea itself
            answered or cut short, `all` for every one. A field without a value is left out.


            """
        text += Markdown.table(
            ["field", "what it holds"], AccessWords.fields.map { [Markdown.code($0.name), $0.meaning] })
        return (Page(name: "log-events.md", text: text), "every event of the log, and the fields of access records")
    }
}
