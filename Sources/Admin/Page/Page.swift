internal import DataPath
internal import Gateway
internal import Keeping
internal import Telemetry

/// The page at the admin address: the facts of one moment, in one document that loads nothing else and runs no script.
///
/// This file holds its frame; `Page+Identities.swift` and `Page+Routes.swift` the two tables, `PageStyle.swift` the looks.
struct Page {
    let facts: SiteFacts
    /// Whether it loads itself anew every few seconds.
    let refreshes: Bool
    /// The rights of the viewer.
    let `operator`: Operator
    /// The last part of the path of the change that a button has just made.
    let done: String?
    var out = HTML()

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

    init(_ facts: SiteFacts, refreshes: Bool, operator: Operator = .cannotSignIn, done: String? = nil) {
        self.facts = facts
        self.refreshes = refreshes
        self.operator = `operator`
        self.done = done
    }

    var html: String {
        var page = self
        page.write()
        return page.out.source
    }

    private mutating func write() {
        let identities = facts.status.identityFacts
        writeHead(identities)
        out.markup("<body>\n")
        writeHeader()
        out.markup("<main>\n")
        writeTiles()
        writeDone()
        writeNotices(identities)
        writeIdentities(identities)
        writeRoutes()
        writeUpstreams()
        out.markup("</main>\n")
        writeFooter()
        out.markup("</body>\n</html>\n")
    }

    // MARK: - Frame

    private mutating func writeHead(_ identities: [IdentityFacts]) {
        out.markup("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
        out.markup("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
        out.markup("<meta name=\"color-scheme\" content=\"light dark\">\n")
        // To the page as such: what a button did is told once.
        if refreshes { out.markup("<meta http-equiv=\"refresh\" content=\"10;url=/\">\n") }
        // The tab tells the worst, so that it need not be looked at.
        let troubled =
            identities.count { $0.state.tone == .bad } + facts.status.upstreams.count { $0.outage != nil }
        out.element(
            "title",
            troubled > 0 ? "\(troubled) in trouble · Cardea" : facts.isReady ? "Cardea" : "not ready · Cardea")
        out.markup("\n<style>")
        out.markup(PageStyle.sheet)
        out.markup("</style>\n</head>\n")
    }

    private mutating func writeHeader() {
        out.markup("<header>\n<svg class=\"mark\" viewBox=\"0 0 32 32\" aria-hidden=\"true\">")
        out.markup(
            "<path d=\"M4 7h9v18H4z\"/><path d=\"M19 7h9v18h-9z\"/><path class=\"pin\" d=\"M16 4v24\"/></svg>\n<h1>Cardea</h1>"
        )
        out.element("span", class: "version", shortened(facts.version, to: 60))
        out.element("span", class: facts.isReady ? "chip good" : "chip bad", facts.isReady ? "ready" : "not ready")
        out.markup("<span class=\"gap\"></span>")
        writeOperator()
        if refreshes {
            out.markup(
                "<span class=\"pace\">updates every 10 s <a href=\"/?refresh=off\">pause</a></span>\n</header>\n")
        } else {
            out.markup("<span class=\"pace\">paused <a href=\"/\">resume</a></span>\n</header>\n")
        }
    }

    private mutating func writeTiles() {
        let unrouted = facts.traffic.unrouted.reduce(0) { $0 &+ $1.count }
        let requests = facts.traffic.routes.reduce(unrouted) { $0 &+ $1.total }
        let rates = facts.trends.compactMap(\.perSecond)
        let hits = facts.traffic.lookups.first { $0.name == "hit" }?.count ?? 0
        // Requests that need no token say nothing about where tokens are found.
        let lookups = facts.traffic.lookups.filter { $0.name != "none" }.reduce(0) { $0 &+ $1.count }
        out.markup("<dl class=\"tiles\">\n")
        tile("Up for", spelled(facts.age))
        tile(
            "Requests", grouped(requests),
            rates.isEmpty ? nil : "\(spelledRate(rates.reduce(0, +))) a second")
        tile("Callers", grouped(UInt64(max(facts.traffic.callers, 0))), "connections now")
        tile(
            "Tokens at hand", lookups == 0 ? "–" : "\(decimal(Self.percentage(hits, of: lookups), places: 1)) %",
            "of requests that need one")
        let store = facts.status.storeState
        tile(
            "Store", store == .memory ? "memory" : store == .refused ? "not used" : store.rawValue,
            store == .memory
                ? "tokens end with the process"
                : store == .serving ? "\(facts.status.restoredTokens) restored at start" : nil,
            tone: store == .degraded || store == .refused ? .warn : nil)
        if let shared = facts.status.shared {
            tile(
                "Fleet", shared.state.rawValue,
                "\(shortened(shared.place, to: 80)); format \(shared.format)\(shared.isSealed ? "" : ", which can be forged"); \(grouped(shared.taken)) tokens taken, \(grouped(shared.alone)) had alone, \(grouped(shared.withheld)) steps withheld",
                tone: shared.state == .degraded ? .warn : nil)
        }
        let subjects = facts.status.subjects
        if subjects.inMemory > 0 || subjects.refused > 0 || facts.status.tokens.contains(where: { $0.subjects != nil })
        {
            tile(
                "End users", "\(grouped(UInt64(max(subjects.inMemory, 0))))",
                "of \(grouped(UInt64(max(subjects.limit, 0)))) in memory; \(grouped(subjects.refused)) refused, \(grouped(subjects.evicted)) given up",
                tone: subjects.refused > 0 ? .warn : nil)
        }
        out.markup("</dl>\n")
    }

    private mutating func tile(
        _ name: StaticString, _ value: String, _ note: String? = nil, tone: IdentityState.Tone? = nil
    ) {
        out.markup("<div")
        if let tone { out.attribute("class", tone.rawValue) }
        out.markup("><dt>")
        out.markup(name)
        out.markup("</dt>")
        out.element("dd", value)
        if let note { out.element("dd", class: "note", note) }
        out.markup("</div>\n")
    }

    /// Rounded down: a hundred percent means all of them.
    static func percentage(_ part: UInt64, of whole: UInt64) -> Double {
        whole == 0 ? 0 : (Double(part) / Double(whole) * 1000).rounded(.down) / 10
    }

    // MARK: - What a person should know first

    private mutating func writeNotices(_ identities: [IdentityFacts]) {
        if let refusal = facts.status.configuration.refusal { notice(.warn, "Reload refused", shortened(refusal)) }
        let waiting = facts.status.configuration.needsRestart
        if !waiting.isEmpty { notice(.warn, "Changed with the next start", waiting.joined(separator: ", ")) }
        for reason in facts.reasons.prefix(20) { notice(.warn, "Not ready", reason) }
        if let shared = facts.status.shared, shared.state == .degraded {
            notice(.warn, "Shared store", shared.detail ?? shared.place)
        }
        switch facts.status.storeState {
        case .degraded, .refused: notice(.warn, "Store", facts.status.store)
        case .serving, .memory: break
        }
        for identity in identities.filter({ $0.command != nil }).prefix(20) {
            let isQuarantined = identity.state == .quarantined
            out.markup("<p class=\"notice bad\"><strong>")
            out.text(shortened(identity.status.name, to: 80))
            out.markup("</strong> ")
            out.text(
                isQuarantined
                    ? "is quarantined."
                    : identity.state == .loginDue ? "soon needs a person to log in." : "needs a person to log in.")
            if let failure = identity.status.lastFailure { out.text(" " + sentence(failure)) }
            out.text(
                isQuarantined
                    ? " Its credential is not sent again until the secret changes or this is run: " : " Run: ")
            out.element("code", shortened(identity.command ?? "", to: 200))
            out.markup("</p>\n")
        }
        if facts.logDropped > 0 {
            notice(.warn, "Log", "\(grouped(facts.logDropped)) lines found no room and were dropped")
        }
    }

    private mutating func notice(_ tone: IdentityState.Tone, _ subject: StaticString, _ text: String) {
        out.markup("<p")
        out.attribute("class", "notice \(tone.rawValue)")
        out.markup("><strong>")
        out.markup(subject)
        out.markup("</strong> ")
        out.text(sentence(text))
        out.markup("</p>\n")
    }

    private mutating func writeFooter() {
        out.markup("<footer>\n<p>")
        out.element("span", shortened(facts.configurationPath, to: 200))
        for address in facts.listening.prefix(8) {
            out.markup(" · ")
            out.element("span", shortened(address, to: 120))
        }
        out.markup(
            "</p>\n<p><a href=\"/status\">status as JSON</a> · <a href=\"/metrics\">metrics</a> · <a href=\"/readyz\">readiness</a></p>\n"
        )
        let glitches = facts.traffic.glitches.filter { $0.count > 0 }
        if !glitches.isEmpty {
            out.markup("<p>Odd events dealt with: ")
            out.text(
                glitches.map { "\($0.name.split(separator: "_").joined(separator: " ")) \(grouped($0.count))" }.joined(
                    separator: " · "))
            out.markup("</p>\n")
        }
        out.markup("</footer>\n")
    }

    mutating func leftOut(_ count: Int, _ what: StaticString) {
        guard count > 0 else { return }
        out.markup("<p class=\"quiet more\">and ")
        out.text(grouped(UInt64(count)))
        out.markup(" more ")
        out.markup(what)
        out.markup(" in <a href=\"/status\">the status</a></p>\n")
    }
}
