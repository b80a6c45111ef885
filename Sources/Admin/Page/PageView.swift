internal import Keeping
internal import Octets

/// The part of the page that its reader has asked for, by the query of its address.
///
/// All of it is decided here and not by a script in the browser: the page runs none, what it shows has an address that can be kept and passed
/// on, and a search finds also what the page has no room for.
struct PageView: Sendable, Equatable {
    /// As it was typed.
    var search = ""
    /// Another word of `states`, or empty for every state.
    var state = ""
    /// Whether the browser fetches it anew every few seconds. It does so for whoever asks: that takes away what is being typed, and folds
    /// what was unfolded.
    var refreshes = false
    /// Lower-case words that each have to stand in a line.
    private var words: [String] = []

    /// Unicode scalars.
    static let maximumSearch = 100
    /// Seconds.
    static let refreshTime = 10
    static let states = IdentityState.Tone.allCases.map(\.word) + IdentityState.allCases.map(\.rawValue)

    /// Everything.
    init() {}

    init(query: String) {
        self.init(
            search: queryValue("q", in: query) ?? "", state: queryValue("state", in: query) ?? "",
            refreshes: queryValue("refresh", in: query) == "on")
    }

    init(search: String, state: String = "", refreshes: Bool = false) {
        self.search = String(search.unicodeScalars.prefix(Self.maximumSearch))
        self.state = Self.states.contains(state) ? state : ""
        self.refreshes = refreshes
        words = self.search.lowercased().split { $0.isWhitespace }.map(String.init)
    }

    /// Whether nothing is left out for what the reader asked.
    var isWhole: Bool { words.isEmpty && state.isEmpty }

    /// The same with another state.
    func with(state: String) -> PageView { PageView(search: search, state: state, refreshes: refreshes) }

    /// The same, fetched anew or not.
    func with(refreshes: Bool) -> PageView { PageView(search: search, state: state, refreshes: refreshes) }

    /// Whether every word stands in one of the texts.
    func finds(_ texts: [String?]) -> Bool {
        if words.isEmpty { return true }
        let all = texts.compactMap(\.self).joined(separator: "\n").lowercased()
        return words.allSatisfy { all.contains($0) }
    }

    /// Whether a line is of the state that was asked for.
    func admits(_ tone: IdentityState.Tone, _ word: IdentityState? = nil) -> Bool {
        state.isEmpty || state == tone.word || state == word?.rawValue
    }

    /// The page's address, for a link or a field: nothing but letters, digits and marks of a query.
    /// - Parameter done: the change that was just made.
    func address(done: String? = nil) -> String {
        returning(from: done.map { "/?done=\(PercentEncoding.encode($0))" } ?? "/")
    }

    /// The address of a button, which leads back here.
    func returning(from action: String) -> String {
        let pairs = parameters.map { "\($0)=\(PercentEncoding.encode($1))" }
        guard !pairs.isEmpty else { return action }
        return action + (action.contains("?") ? "&" : "?") + pairs.joined(separator: "&")
    }

    private var parameters: [(String, String)] {
        [("q", search), ("state", state), ("refresh", refreshes ? "on" : "")].filter { !$0.1.isEmpty }
    }
}
