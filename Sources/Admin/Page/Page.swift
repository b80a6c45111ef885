internal import DataPath
internal import Gateway
internal import Keeping

/// The page at the admin address: the facts of one moment, in one document that loads nothing else and runs no script.
///
/// Trouble stands first, and everything else is a line with its details folded: with fifty identities and two hundred routes one look tells
/// what a person has to do. This file holds its frame; `Page+Identities.swift` and `Page+Routes.swift` the two lists, `PageView` what is
/// searched for, `style.css` the looks.
struct Page {
    let facts: SiteFacts
    /// What its reader has asked for.
    var view = PageView()
    /// The rights of the viewer.
    var `operator` = Operator.cannotSignIn
    /// The last part of the path of the change that a button has just made.
    var done: String?

    enum Operator: Sendable {
        case cannotSignIn, mayProve, isSignedIn
    }

    /// The most identities on a page; the rest is counted and stands in `/status`.
    static let maximumIdentities = 100
    static let maximumTokensOfIdentity = 6
    static let maximumTokens = 200
    static let maximumRoutes = 200
    /// Identities in trouble whose details are unfolded.
    static let maximumUnfolded = 5
    /// So few that were searched for are unfolded.
    static let fewFound = 3

    /// Response fields beside the type. Nothing may be loaded, sent or framed; the one style is known by its digest.
    static let fields: [(name: String, value: String)] = [
        (
            "Content-Security-Policy",
            "default-src 'none'; style-src '\(PageStyle.digest)'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        ),
        // Such that a browser says of the page's own buttons where they stand: changes are taken from there alone.
        ("Referrer-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ]

    /// `Page.fields`, and the order to come again.
    var fields: [(name: String, value: String)] {
        // In a field and not in the document, which when it is saved stays what it was.
        let refresh = [(name: "Refresh", value: "\(PageView.refreshTime);url=\(view.address())")]
        return Self.fields + (view.refreshes ? refresh : [])
    }

    var html: String { document.source }

    private var document: HTML {
        let identities = facts.status.identityFacts
        let routes = facts.routeFacts(identities)
        let found = (identities: identities.filter(view.finds), routes: routes.filter(view.finds))
        // Upstreams have no line among the routes: what is wrong with one stands before everything that is well.
        let isCut = facts.status.upstreams.contains { $0.tone == .bad && view.finds($0) }
        return """
            \(head(identities))<body>
            \(header)<main>
            \(outcome)\(verdict(identities, routes))\(notices)\(tiles)\
            \(finder(found.identities.map(\.state.tone) + found.routes.map(\.tone)))\
            \(isCut ? upstreams : nil)\
            \(section(of: Self.troubleFirst(found.identities.filter { view.admits($0.state.tone, $0.state) }, \.state.tone)))\
            \(section(of: Self.troubleFirst(found.routes.filter { view.admits($0.tone, $0.identityState) }, \.tone)))\
            \(isCut ? nil : upstreams)</main>
            \(footer)</body>
            </html>

            """
    }

    /// What is bad, then what may become so; everything else as the configuration has it, where people find it again.
    static func troubleFirst<Line>(_ lines: [Line], _ tone: (Line) -> IdentityState.Tone) -> [Line] {
        let bad = lines.filter { tone($0) == .bad }
        let warn = lines.filter { tone($0) == .warn }
        return bad + warn + lines.filter { ![.bad, .warn].contains(tone($0)) }
    }

    /// Whether the details of lines are shown at once: few were asked for.
    func unfolds(_ count: Int) -> Bool { !view.search.isEmpty && count <= Self.fewFound }

    // MARK: - Frame

    private func head(_ identities: [IdentityFacts]) -> HTML {
        // The tab tells the worst, so that it need not be looked at.
        let troubled =
            identities.count { $0.state.tone == .bad } + facts.status.upstreams.count { $0.outage != nil }
        let title = troubled > 0 ? "\(troubled) in trouble · Cardea" : facts.isReady ? "Cardea" : "not ready · Cardea"
        return """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <title>\(title)</title>
            <style>\(PageStyle.sheet)</style>
            </head>

            """
    }

    private var header: HTML {
        let other = view.with(refreshes: !view.refreshes).address()
        let pace: HTML =
            view.refreshes
            ? "refreshed every \(PageView.refreshTime) s <a href=\"\(other)\">stop</a>"
            : "<a href=\"\(view.address())\">refresh</a> <a href=\"\(other)\">keep refreshing</a>"
        return """
            <header>
            <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">\
            <path d="M4 7h9v18H4z"/><path d="M19 7h9v18h-9z"/><path class="pin" d="M16 4v24"/></svg>
            <h1>Cardea</h1>\(span("version", shortened(facts.version, to: 60)))\
            \(facts.isReady ? span("chip good", "ready") : span("chip bad", "not ready"))<span class="gap"></span>\
            \(signIn)<span class="pace">as of <time>\(spelledTime(facts.wallTime))</time> UTC \(pace)</span>
            </header>

            """
    }

    private var tiles: HTML {
        let unrouted = facts.traffic.unrouted.reduce(0) { $0 &+ $1.count }
        let requests = facts.traffic.routes.reduce(unrouted) { $0 &+ $1.total }
        let rates = facts.trends.compactMap(\.perSecond)
        let hits = facts.traffic.lookups.first { $0.name == "hit" }?.count ?? 0
        // Requests that need no token say nothing about where tokens are found.
        let lookups = facts.traffic.lookups.filter { $0.name != "none" }.reduce(0) { $0 &+ $1.count }
        var tiles = [
            tile("Up for", spelled(facts.age), nil),
            tile(
                "Requests", grouped(requests),
                rates.isEmpty ? nil : "\(spelledRate(rates.reduce(0, +))) a second"),
            tile("Callers", grouped(UInt64(max(facts.traffic.callers, 0))), "connections now"),
            tile(
                "Tokens at hand", lookups == 0 ? "–" : "\(decimal(Self.percentage(hits, of: lookups), places: 1)) %",
                "of requests that need one"),
        ]
        switch facts.status.storeState {
        case .memory: tiles.append(tile("Store", "memory", "tokens end with the process"))
        case .serving: tiles.append(tile("Store", "serving", "\(facts.status.restoredTokens) restored at start"))
        case .degraded: tiles.append(tile("Store", "degraded", nil, warns: true))
        case .refused: tiles.append(tile("Store", "not used", nil, warns: true))
        }
        if let shared = facts.status.shared {
            let note =
                "\(shortened(shared.server, to: 80)); format \(shared.format)\(shared.isSealed ? "" : ", which can be forged"); \(grouped(shared.taken)) tokens taken, \(grouped(shared.alone)) had alone, \(grouped(shared.withheld)) steps withheld"
            tiles.append(tile("Fleet", shared.state.rawValue, note, warns: shared.state == .degraded))
        }
        let subjects = facts.status.subjects
        if subjects.inMemory > 0 || subjects.refused > 0 || facts.status.tokens.contains(where: { $0.subjects != nil })
        {
            let note =
                "of \(grouped(UInt64(max(subjects.limit, 0)))) in memory; \(grouped(subjects.refused)) refused, \(grouped(subjects.evicted)) given up"
            tiles.append(
                tile("End users", grouped(UInt64(max(subjects.inMemory, 0))), note, warns: subjects.refused > 0))
        }
        return "<dl class=\"tiles\">\n\(tiles)</dl>\n"
    }

    private func tile(_ name: String, _ value: String, _ note: String?, warns: Bool = false) -> HTML {
        let style: HTML? = warns ? " class=\"warn\"" : nil
        let note = note.map { note -> HTML in "<dd class=\"note\">\(note)</dd>" }
        return "<div\(style)><dt>\(name)</dt><dd>\(value)</dd>\(note)</div>\n"
    }

    /// Rounded down: a hundred percent means all of them.
    static func percentage(_ part: UInt64, of whole: UInt64) -> Double {
        whole == 0 ? 0 : (Double(part) / Double(whole) * 1000).rounded(.down) / 10
    }

    // MARK: - What a person should know first

    private func verdict(_ identities: [IdentityFacts], _ routes: [RouteFacts]) -> HTML {
        let upstreams = facts.status.upstreams.filter { $0.tone == .bad }.count
        for (tone, words) in [(IdentityState.Tone.bad, "In trouble:"), (.warn, "To be looked at:")] {
            let (some, others) = (identities.count { $0.state.tone == tone }, routes.count { $0.tone == tone })
            var parts: [HTML] = []
            func tell(_ section: String, _ text: String) {
                parts.append("\(parts.isEmpty ? "" : ", ")<a href=\"#\(section)\">\(text)</a>")
            }
            if some > 0 { tell("identities", "\(some) of \(counted(identities.count, "identity", "identities"))") }
            if others > 0 { tell("routes", "\(others) of \(counted(routes.count, "route", "routes"))") }
            if tone == .bad, upstreams > 0 { tell("upstreams", counted(upstreams, "upstream", "upstreams")) }
            guard !parts.isEmpty else { continue }
            let alone = PageView(search: "", state: tone.word, refreshes: view.refreshes).address()
            return """
                <p class="notice \(tone.rawValue)"><strong>\(words)</strong> \(parts). \
                <a href="\(alone)">Show these alone</a></p>

                """
        }
        return "<p class=\"notice calm\">Nothing is in trouble.</p>\n"
    }

    func counted(_ count: Int, _ one: String, _ many: String) -> String {
        "\(grouped(UInt64(count))) \(count == 1 ? one : many)"
    }

    /// What concerns no single identity or route.
    private var notices: [HTML] {
        var notices: [HTML] = []
        func warn(_ subject: String, _ text: String) {
            notices.append("<p class=\"notice warn\"><strong>\(subject)</strong> \(sentence(text))</p>\n")
        }
        if let refusal = facts.status.configuration.refusal { warn("Reload refused", shortened(refusal)) }
        let waiting = facts.status.configuration.needsRestart
        if !waiting.isEmpty { warn("Changed with the next start", waiting.joined(separator: ", ")) }
        for reason in facts.reasons.prefix(20) { warn("Not ready", reason) }
        if let shared = facts.status.shared, shared.state == .degraded {
            warn("Shared store", shared.detail ?? shared.server)
        }
        if [.degraded, .refused].contains(facts.status.storeState) { warn("Store", facts.status.store) }
        if facts.logDropped > 0 { warn("Log", "\(grouped(facts.logDropped)) lines found no room and were dropped") }
        return notices
    }

    private var footer: HTML {
        let places =
            [shortened(facts.configurationPath, to: 200)] + facts.listening.prefix(8).map { shortened($0, to: 120) }
        let glitches = facts.traffic.glitches.filter { $0.count > 0 }.map {
            "\($0.name.split(separator: "_").joined(separator: " ")) \(grouped($0.count))"
        }
        let events: HTML = "<p>Odd events dealt with: \(glitches.joined(separator: " · "))</p>\n"
        return """
            <footer>
            <p>\(places.enumerated().map { "\($0 == 0 ? "" : " · ")<span>\($1)</span>" })</p>
            <p><a href="/status">status as JSON</a> · <a href="/metrics">metrics</a> · <a href="/readyz">readiness</a></p>
            \(glitches.isEmpty ? nil : events)</footer>

            """
    }

    // MARK: - Parts

    func span(_ style: String, _ text: String) -> HTML { "<span class=\"\(style)\">\(text)</span>" }

    /// Lines that follow each other.
    func list(_ lines: [HTML]) -> HTML { "<ul class=\"card lines\">\n\(lines)</ul>\n" }

    func leftOut(_ count: Int, _ what: String) -> HTML? {
        guard count > 0 else { return nil }
        return """
            <p class="quiet more">and \(grouped(UInt64(count))) more \(what) in <a href="/status">the status</a></p>

            """
    }
}
