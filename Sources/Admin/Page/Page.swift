internal import DataPath
internal import Gateway
internal import Keeping

/// The page at the admin address: the facts of one moment, in one document that loads nothing else and runs no script.
///
/// This file holds its frame; `Page+Identities.swift` and `Page+Routes.swift` the two tables, `style.css` the looks.
struct Page {
    let facts: SiteFacts
    /// Whether it loads itself anew every few seconds.
    let refreshes: Bool
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
    static let maximumRoutes = 100

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

    var html: String { document.source }

    private var document: HTML {
        let identities = facts.status.identityFacts
        return """
            \(head(identities))<body>
            \(header)<main>
            \(tiles)\(outcome)\(notices(identities))\(section(of: identities))\(routes)\(upstreams)</main>
            \(footer)</body>
            </html>

            """
    }

    // MARK: - Frame

    private func head(_ identities: [IdentityFacts]) -> HTML {
        // To the page as such: what a button did is told once.
        let refresh: HTML? = refreshes ? "<meta http-equiv=\"refresh\" content=\"10;url=/\">\n" : nil
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
            \(refresh)<title>\(title)</title>
            <style>\(PageStyle.sheet)</style>
            </head>

            """
    }

    private var header: HTML {
        let pace: HTML =
            refreshes ? "updates every 10 s <a href=\"/?refresh=off\">pause</a>" : "paused <a href=\"/\">resume</a>"
        return """
            <header>
            <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">\
            <path d="M4 7h9v18H4z"/><path d="M19 7h9v18h-9z"/><path class="pin" d="M16 4v24"/></svg>
            <h1>Cardea</h1>\(span("version", shortened(facts.version, to: 60)))\
            \(facts.isReady ? span("chip good", "ready") : span("chip bad", "not ready"))<span class="gap"></span>\
            \(signIn)<span class="pace">\(pace)</span>
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

    private func notices(_ identities: [IdentityFacts]) -> [HTML] {
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
        notices += identities.filter { $0.command != nil }.prefix(20).map(callForPerson)
        if facts.logDropped > 0 { warn("Log", "\(grouped(facts.logDropped)) lines found no room and were dropped") }
        return notices
    }

    private func callForPerson(_ identity: IdentityFacts) -> HTML {
        let (need, advice) =
            switch identity.state {
            case .quarantined:
                ("is quarantined.", "Its credential is not sent again until the secret changes or this is run:")
            case .loginDue: ("soon needs a person to log in.", "Run:")
            default: ("needs a person to log in.", "Run:")
            }
        let words = [need, identity.status.lastFailure.map(sentence), advice].compactMap(\.self).joined(separator: " ")
        return """
            <p class="notice bad"><strong>\(shortened(identity.status.name, to: 80))</strong> \(words) \
            <code>\(shortened(identity.command ?? "", to: 200))</code></p>

            """
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

    func leftOut(_ count: Int, _ what: String) -> HTML? {
        guard count > 0 else { return nil }
        return """
            <p class="quiet more">and \(grouped(UInt64(count))) more \(what) in <a href="/status">the status</a></p>

            """
    }
}
