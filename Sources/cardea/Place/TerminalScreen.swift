import Glibc

/// A terminal's other screen, on which a command shows one page after the other; the person's own screen comes back with the end.
///
/// A signal ends the process at once, whatever it waits for: the handler gives the screen back and lets the signal do what it does to any
/// process, so that a shell tells a watch that was interrupted from one that failed.
struct TerminalScreen {
    /// The other screen, without a cursor, and with lines that end at its edge instead of going on in the next one (xterm's private modes
    /// 1049, 25 and 7).
    /// Computed, since a handler must not wait for whoever makes a static value for the first time.
    private static var enters: StaticString { "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l\u{1B}[H" }
    private static var leaves: StaticString { "\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l" }

    init() {
        for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            signal(number) { number in
                TerminalScreen.write(TerminalScreen.leaves)
                Glibc.signal(number, SIG_DFL)
                raise(number)
            }
        }
        // Ctrl-Z: whoever takes the terminal meanwhile gets it as it was. What was shown is shown again by the next page.
        signal(SIGTSTP) { _ in
            TerminalScreen.write(TerminalScreen.leaves)
            raise(SIGSTOP)
            TerminalScreen.write(TerminalScreen.enters)
        }
        Self.write(Self.enters)
    }

    /// Lines that fit; 24 where the terminal does not say.
    var rows: Int {
        var size = winsize()
        return ioctl(1, UInt(TIOCGWINSZ), &size) == 0 && size.ws_row > 0 ? Int(size.ws_row) : 24
    }

    /// Shows the lines from the top, in place of those before, without a moment in which the screen is empty.
    func show(_ lines: [String]) {
        StandardOutput.write("\u{1B}[H" + lines.map { $0 + "\u{1B}[K" }.joined(separator: "\r\n") + "\u{1B}[J")
    }

    /// Fit for a signal's handler: one call of the kernel.
    private static func write(_ text: StaticString) {
        _ = Glibc.write(1, text.utf8Start, text.utf8CodeUnitCount)
    }
}

/// Standard output without a buffer: whoever reads a pipe gets each line when it is written.
enum StandardOutput {
    /// Writes all of it, or as much as the reader takes before it goes away.
    static func write(_ text: String) {
        var text = text
        text.withUTF8 { octets in
            var written = 0
            while written < octets.count, let start = octets.baseAddress {
                let count = Glibc.write(1, start + written, octets.count - written)
                if count < 0, errno != EINTR { return }
                written += max(count, 0)
            }
        }
    }
}
