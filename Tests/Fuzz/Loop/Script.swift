/// An input as a play: who sends which octets in which order, and when time passes or somebody hangs up.
///
/// The text is flat, so that octets that are put in, taken out or copied change one scene and not the meaning of all that follow. Three
/// octets of habits come first; then everything is the caller's, up to the next mark (0xF5, which no UTF-8 has) with its letter.
///
/// | mark | what follows, up to the next mark |
/// |---|---|
/// | `c` `u` `i` | octets of the caller, of the upstream it was last passed on to, of the issuer |
/// | `C` `U` | a frame of HTTP/2 of theirs: kind, flags, stream, payload; the length is counted here |
/// | `H` `h` | a field section of theirs: flags, stream, lines of `name: value`, each ending with LF |
/// | `t` | nothing: time passes, by the octet behind the letter |
/// | `f` `F` `I` | nothing: the caller, the upstream, the issuer says that no more comes |
/// | `r` `R` | nothing: the caller, the upstream breaks its connection |
/// | `n` | another caller comes, and is the one from now on |
/// | `w` `W` | nothing: how much more the caller, the upstream takes, by the octet behind the letter |
/// | the mark itself | the octet 0xF5 in what is being said |
struct Script {
    var habits = Habits()
    var scenes: [Scene] = []

    /// - Note: bits of the first octet, and two lengths.
    struct Habits {
        /// The protocol that the gateway speaks with the upstream.
        var upstreamSpeaksHTTP2 = false
        /// The caller's preface and first SETTINGS go out by themselves.
        var callerSpeaksHTTP2 = false
        /// At the end callers say nothing, and do not hang up either.
        var callersStay = false
        /// An upstream over HTTP/2 does not begin by itself with its SETTINGS.
        var upstreamIsMute = false
        /// The first connection to the upstream is refused.
        var refusesFirst = false
        /// Octets that come at once; zero: all.
        var callerPiece = 0
        var upstreamPiece = 0
    }

    enum Side { case caller, upstream, issuer }

    enum Scene {
        case say(Side, [UInt8])
        case pass(UInt64)
        case finish(Side)
        case reset(Side)
        case call
        case window(Side, Int)
    }

    static let mark: UInt8 = 0xF5

    init?(_ input: UnsafeBufferPointer<UInt8>) {
        guard input.count >= 4 else { return nil }
        habits.upstreamSpeaksHTTP2 = input[0] & 1 != 0
        habits.callerSpeaksHTTP2 = input[0] & 2 != 0
        habits.callersStay = input[0] & 4 != 0
        habits.upstreamIsMute = input[0] & 8 != 0
        habits.refusesFirst = input[0] & 16 != 0
        habits.callerPiece = Int(input[1])
        habits.upstreamPiece = Int(input[2])
        var kind = UInt8(ascii: "c")
        var said: [UInt8] = []
        var position = 3
        while position < input.count {
            let octet = input[position]
            position += 1
            guard octet == Self.mark, position < input.count else {
                said.append(octet)
                continue
            }
            let letter = input[position]
            position += 1
            if letter == Self.mark {
                said.append(octet)
                continue
            }
            close(kind, said)
            said.removeAll(keepingCapacity: true)
            kind = letter
        }
        close(kind, said)
    }

    private mutating func close(_ kind: UInt8, _ said: [UInt8]) {
        switch Character(UnicodeScalar(kind)) {
        case "c": say(.caller, said)
        case "u": say(.upstream, said)
        case "i": say(.issuer, said)
        case "C" where said.count >= 3: say(.caller, Self.frame(said[0], said[1], said[2], said[3...]))
        case "U" where said.count >= 3: say(.upstream, Self.frame(said[0], said[1], said[2], said[3...]))
        case "H" where said.count >= 2: say(.caller, Self.frame(1, said[0], said[1], Self.fields(said[2...])[...]))
        case "h" where said.count >= 2: say(.upstream, Self.frame(1, said[0], said[1], Self.fields(said[2...])[...]))
        case "t": scenes.append(.pass(Self.times[Int(said.first ?? 0) % Self.times.count]))
        case "f": scenes.append(.finish(.caller))
        case "F": scenes.append(.finish(.upstream))
        case "I": scenes.append(.finish(.issuer))
        case "r": scenes.append(.reset(.caller))
        case "R": scenes.append(.reset(.upstream))
        case "n":
            scenes.append(.call)
            say(.caller, said)
        case "w": scenes.append(.window(.caller, Int(said.first ?? 0) * 16))
        case "W": scenes.append(.window(.upstream, Int(said.first ?? 0) * 16))
        default: break
        }
    }

    private mutating func say(_ side: Side, _ said: [UInt8]) {
        if !said.isEmpty { scenes.append(.say(side, said)) }
    }

    /// Nanoseconds.
    private static let times: [UInt64] = [
        10_000_000, 1_100_000_000, 5_100_000_000, 10_100_000_000, 21_000_000_000, 61_000_000_000, 76_000_000_000,
    ]

    static func frame(_ kind: UInt8, _ flags: UInt8, _ stream: UInt8, _ payload: ArraySlice<UInt8>) -> [UInt8] {
        let count = payload.count
        return [UInt8(count >> 16), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF), kind, flags, 0, 0, 0, stream]
            + payload
    }

    /// Literals without a table and without Huffman's code (RFC 7541 section 6.2.2): what is said stays to be read in the input.
    private static func fields(_ lines: ArraySlice<UInt8>) -> [UInt8] {
        var block: [UInt8] = []
        for line in lines.split(separator: 0x0A) {
            let colon = line.dropFirst().firstIndex(of: 0x3A) ?? line.endIndex
            var value = line[min(colon + 1, line.endIndex)...]
            if value.first == 0x20 { value.removeFirst() }
            block.append(0)
            append(line[..<colon], to: &block)
            append(value, to: &block)
        }
        return block
    }

    private static func append(_ text: ArraySlice<UInt8>, to block: inout [UInt8]) {
        if text.count < 127 {
            block.append(UInt8(text.count))
        } else {
            // RFC 7541 section 5.1.
            var rest = text.count - 127
            block.append(127)
            while rest >= 128 {
                block.append(UInt8(rest & 0x7F) | 0x80)
                rest >>= 7
            }
            block.append(UInt8(rest))
        }
        block += text
    }
}
