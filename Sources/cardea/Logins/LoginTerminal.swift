import Admin
import Glibc

/// The person's sight of a login at the terminal. In a pipe: the facts, and nothing that moves.
struct LoginTerminal {
    let isJSON: Bool
    let opensBrowser: Bool
    /// The person brings the browser's address back.
    let pastes: Bool
    private var shown: LoginDocument.Prompt?
    private var line = ""
    private var input: [UInt8] = []
    private(set) var isAtEnd = false

    private let isTerminal = isatty(2) == 1
    /// The longest line that is pasted.
    private static let longestLine = 16 * 1024

    init(isJSON: Bool, opensBrowser: Bool, pastes: Bool) {
        self.isJSON = isJSON
        self.opensBrowser = opensBrowser
        self.pastes = pastes
    }

    // MARK: - Out

    mutating func show(_ prompt: LoginDocument.Prompt, of told: LoginDocument) {
        var fixed = prompt
        fixed.secondsLeft = 0
        guard fixed != shown else { return }
        shown = fixed
        if isJSON {
            // At once, also in a pipe: whoever reads it is to act on it.
            var text = told.encoded()
            text.withUTF8 { _ = write(1, $0.baseAddress, $0.count) }
        } else {
            clear()
            for line in text(prompt, told.identity) { ConfigurationAccess.complain(line) }
        }
        if opensBrowser { Browser.open(prompt.url) }
    }

    private func text(_ prompt: LoginDocument.Prompt, _ identity: String) -> [String] {
        if let code = prompt.code {
            var lines = ["To log in for '\(identity)', open this page on any device", "", "    \(prompt.url)", ""]
            lines += ["and enter the code", "", "    \(code)", ""]
            lines += Self.square(prompt.completeUrl ?? prompt.url)
            return lines
        }
        if pastes {
            return [
                "To log in for '\(identity)', open this page in any browser", "", "    \(prompt.url)", "",
                "The browser ends at an address that it may not reach. Paste that address here:",
            ]
        }
        let said = opensBrowser && Browser.isThere ? "A browser opens. If it does not, open" : "Open"
        return [
            "To log in for '\(identity)': \(said) this page in a browser on this machine", "", "    \(prompt.url)", "",
        ]
    }

    /// A QR code where a camera could see it.
    private static func square(_ url: String) -> [String] {
        guard isatty(2) == 1 else { return [] }
        var size = winsize()
        let columns = ioctl(2, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
        guard let code = QRCode(url) else { return [] }
        let colours =
            ConfigurationAccess.environment("NO_COLOR") == nil
            && !["", "dumb"].contains(ConfigurationAccess.environment("TERM") ?? "")
        // Black on white, whatever the terminal's ground is; without colours the ground is taken for dark.
        let lines = code.lines(inverted: !colours)
        guard let width = lines.first?.count, width <= columns else { return [] }
        return lines.map { colours ? "\u{1B}[38;5;16;48;5;231m\($0)\u{1B}[0m" : $0 } + [""]
    }

    /// The words that are shown as long as the issuer has said nothing of the login.
    private func waits(for prompt: LoginDocument.Prompt?) -> String {
        guard let prompt else { return "asking the issuer" }
        return prompt.code == nil ? "waiting for the browser to come back" : "waiting for the code to be entered"
    }

    mutating func progress(_ told: LoginDocument) {
        guard isTerminal, !isJSON, !pastes else { return }
        let left = told.prompt.map { "\($0.secondsLeft / 60) m \($0.secondsLeft % 60) s left" }
        let words = [told.progress ?? waits(for: told.prompt), left].compactMap { $0 }
        let next = words.joined(separator: ", ")
        guard next != line else { return }
        line = next
        ConfigurationAccess.write("\r\u{1B}[K\(next)")
    }

    mutating func clear() {
        guard isTerminal, !line.isEmpty else { return }
        line = ""
        ConfigurationAccess.write("\r\u{1B}[K")
    }

    // MARK: - In

    /// A line of the standard input, if one is there in time.
    mutating func pasted(milliseconds: Int32) -> String? {
        if let line = takeLine() { return line }
        var watched = pollfd(fd: 0, events: Int16(POLLIN), revents: 0)
        guard !isAtEnd, poll(&watched, 1, milliseconds) > 0 else { return nil }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = read(0, &buffer, buffer.count)
        if count > 0 { input += buffer[..<count] }
        if count == 0 || count < 0 && errno != EINTR || input.count > Self.longestLine {
            isAtEnd = input.isEmpty || input.count > Self.longestLine
            if !isAtEnd { input.append(UInt8(ascii: "\n")) }
        }
        return takeLine()
    }

    private mutating func takeLine() -> String? {
        guard let end = input.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let bytes = input[..<end].filter { $0 > 0x20 && $0 < 0x7F }
        input.removeSubrange(...end)
        return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }
}

/// The person's browser, where there is a screen.
enum Browser {
    static var isThere: Bool { program != nil }

    private static var program: String? {
        let environment = ConfigurationAccess.environment
        if let named = environment("BROWSER"), !named.isEmpty, !named.contains(":") { return named }
        guard environment("DISPLAY") != nil || environment("WAYLAND_DISPLAY") != nil else { return nil }
        let folders = (environment("PATH") ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":")
        return folders.contains { access("\($0)/xdg-open", X_OK) == 0 } ? "xdg-open" : nil
    }

    /// The browser gets the part of the environment that a desktop program needs, and none of our secrets.
    private static let inherited = [
        "PATH", "HOME", "USER", "LANG", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS",
        "XDG_RUNTIME_DIR", "XDG_CURRENT_DESKTOP", "XDG_SESSION_TYPE", "XDG_DATA_DIRS", "XDG_CONFIG_DIRS", "BROWSER",
    ]

    static func open(_ url: String) {
        guard let program else { return }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for descriptor: Int32 in 0...2 {
            posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
        }
        // The address is one argument: no shell reads it.
        var arguments: [UnsafeMutablePointer<CChar>?] = [strdup(program), strdup(url), nil]
        var environment: [UnsafeMutablePointer<CChar>?] = Self.inherited.compactMap { name in
            ConfigurationAccess.environment(name).map { strdup("\(name)=\($0)") }
        }
        environment.append(nil)
        defer { for text in arguments + environment { free(text) } }
        var process: pid_t = 0
        _ = posix_spawnp(&process, program, &actions, nil, &arguments, &environment)
    }
}
