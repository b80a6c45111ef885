internal import Keeping

/// What is searched for, and which states are shown. A plain form and links: they work without a script.
extension Page {
    /// - Parameter tones: of all lines that the search finds, whatever their state.
    func finder(_ tones: [IdentityState.Tone]) -> HTML {
        let kept = [("state", view.state), ("refresh", view.refreshes ? "on" : "")].filter { !$0.1.isEmpty }
            .map { name, value -> HTML in "<input type=\"hidden\" name=\"\(name)\" value=\"\(value)\"/>" }
        let all = choice("all", tones.count, view.with(state: ""), isChosen: view.state.isEmpty)
        let choices = IdentityState.Tone.allCases.map { tone in
            choice(
                tone.word, tones.count { $0 == tone }, view.with(state: tone.word), isChosen: view.state == tone.word,
                tone)
        }
        // A state that an address named.
        let isOther = !view.state.isEmpty && !IdentityState.Tone.allCases.contains { $0.word == view.state }
        let other: HTML = "<li>\(span("chosen", view.state))</li>"
        return """
            <div class="finder">
            <form role="search" method="get" action="/">\(kept)\
            <input type="search" name="q" value="\(view.search)" maxlength="\(PageView.maximumSearch)" \
            aria-label="Find an identity or a route" placeholder="name, upstream, scheme, failure" \
            autocomplete="off" spellcheck="false"/><button>Find</button></form>
            <nav aria-label="States"><ul class="choices">\(all)\(choices)\(isOther ? other : nil)</ul></nav>
            </div>

            """
    }

    private func choice(
        _ word: String, _ count: Int, _ view: PageView, isChosen: Bool, _ tone: IdentityState.Tone? = nil
    ) -> HTML {
        let mark: HTML? = isChosen ? " aria-current=\"true\"" : nil
        let style = count == 0 ? "none" : tone?.rawValue ?? "every"
        return """
            <li><a class="\(style)" href="\(view.address())"\(mark)>\(word) <b>\(grouped(UInt64(count)))</b></a></li>
            """
    }

    /// Said where lines were asked for and none is like that; nil where there never was one.
    func nothingFound(_ what: String) -> HTML? {
        guard !view.isWhole else { return nil }
        let all = PageView(search: "", refreshes: view.refreshes).address()
        return "<p class=\"quiet\">No \(what) is like that. <a href=\"\(all)\">Show all</a></p>\n"
    }
}
