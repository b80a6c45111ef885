import ScriptedKernel

/// The claims about a play, whatever its script said.
struct Claims {
    let play: Play
    private let sent: [Sent]

    /// A request as its caller sent it.
    private struct Sent {
        var message: Message
        /// Path and query, as an upstream is asked for them.
        var path: [UInt8]
    }

    init(_ play: Play) {
        self.play = play
        sent = play.callers.flatMap { Self.requests(of: $0) }.map { message in
            Sent(message: message, path: message.authority == nil ? Self.path(of: message) : message.target)
        }
    }

    func check() {
        for upstream in play.upstreams { check(upstream: upstream) }
        checkSingleSends()
        let answers = play.upstreams.flatMap { given(by: $0) }
        for caller in play.callers { check(caller: caller, answers) }
    }

    // MARK: - What was sent

    private static func requests(of caller: Play.Talk) -> [Message] {
        if HTTP2Reading.isPreface(caller.sent) {
            let reading = HTTP2Reading(.client, isReceived: true)
            var messages = reading.read(caller.sent).messages
            for index in messages.indices where reading.resets.contains(messages[index].stream) {
                messages[index].message.isWhole = false
            }
            return messages.map(\.message)
        }
        var reading = HTTP1Reading(caller.sent, .requests, isReceived: true)
        return reading.all().all
    }

    /// RFC 9112 section 3.2.
    private static func path(of message: Message) -> [UInt8] {
        let target = message.target
        guard let scheme = ["http://", "https://"].first(where: { target.map(lowercase).starts(with: $0.utf8) }) else {
            return target
        }
        let rest = target.dropFirst(scheme.utf8.count).drop { $0 != 0x2F && $0 != 0x3F }
        if rest.isEmpty { return message.method == Array("OPTIONS".utf8) ? [0x2A] : [0x2F] }
        return rest.first == 0x3F ? [0x2F] + rest : Array(rest)
    }

    // MARK: - Toward upstreams

    private func requests(to upstream: Play.Talk) -> (messages: [Message], flaw: String?) {
        let octets = upstream.peer.received
        if play.script.habits.upstreamSpeaksHTTP2 {
            let reading = HTTP2Reading(.client, isReceived: false)
            let read = reading.read(octets)
            return (read.messages.map(\.message), read.flaw)
        }
        var reading = HTTP1Reading(octets, .requests, isReceived: false)
        let read = reading.all()
        return (read.all, read.flaw)
    }

    private func check(upstream: Play.Talk) {
        let (messages, flaw) = requests(to: upstream)
        if let flaw { refute("what left for the upstream is not well-formed: \(flaw)") }
        var uses = [Int](repeating: 0, count: sent.count)
        for message in messages.filter(\.isWhole) + messages.filter({ !$0.isWhole }) {
            let like = sent.indices.filter { isSame(message, sent[$0]) }
            // Callers may ask the same in two ways, and the gateway may have refused one of them.
            let fitting = like.filter { index in foreignField(of: message, sent[index].message) == nil }
            guard let found = (fitting.isEmpty ? like : fitting).min(by: { uses[$0] < uses[$1] }) else {
                refute("a request left that no caller sent: \(text(message.method)) \(text(message.target))")
            }
            uses[found] += 1
            // A request whose credential was refused goes out again, on the same connection perhaps, and a stream that was not looked at.
            let most = carriesCredential(message) || play.script.habits.upstreamSpeaksHTTP2 ? 4 : 1
            expect(uses[found] <= most, "a request left twice on one connection")
            checkFields(message, sent[found].message)
        }
    }

    private func carriesCredential(_ message: Message) -> Bool {
        message.target.starts(with: "/fixed/".utf8) || message.target.starts(with: "/granted/".utf8)
    }

    /// RFC 9110 section 9.2.2: what is not idempotent is not sent again by an intermediary that cannot know whether it was seen.
    private func checkSingleSends() {
        guard !play.script.habits.upstreamSpeaksHTTP2 else { return }
        let all = play.upstreams.flatMap { requests(to: $0).messages }
        for message in all where message.isWhole && !carriesCredential(message) && message.method == Array("POST".utf8)
        {
            let many = all.count {
                $0.isWhole && $0.method == message.method && $0.target == message.target && $0.body == message.body
            }
            let asked = sent.count { isSame(message, $0) }
            expect(many <= asked, "a POST left more often than it was sent")
        }
    }

    private func isSame(_ message: Message, _ sent: Sent) -> Bool {
        let source = sent.message
        guard message.target == sent.path else { return false }
        // Over HTTP/2 a WebSocket is asked for by another method (RFC 8441).
        let changes = message.upgrades || source.upgrades || source.protocolName != nil
        guard message.method == source.method || changes else { return false }
        guard !changes else { return true }
        return message.isWhole ? source.isWhole && message.body == source.body : source.body.starts(with: message.body)
    }

    /// Fields that the gateway writes itself, or puts together from several.
    private static let ownRequestFields: Set<[UInt8]> = Set(
        [
            "host", "via", "authorization", "content-length", "transfer-encoding", "connection", "cookie", "te",
            "upgrade",
            "max-forwards", "forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "expect",
        ].map { Array($0.utf8) })

    private func foreignField(of message: Message, _ source: Message) -> Message.Field? {
        message.fields.first { !Self.ownRequestFields.contains($0.name) && !source.fields.contains($0) }
    }

    private func checkFields(_ message: Message, _ source: Message) {
        if let field = foreignField(of: message, source) {
            refute("a field left that was not sent: \(text(field.name)): \(text(field.value))")
        }
        let host = message.authority.map { [$0] } ?? message.values("host")
        expect(host == [Array("127.0.0.1:\(Stage.upstreamPort)".utf8)], "another host than the upstream's")
        let credentials = message.values("authorization")
        if message.target.starts(with: "/fixed/".utf8) {
            expect(credentials == [Play.fixedToken], "not the fixed credential alone")
        } else if message.target.starts(with: "/granted/".utf8) {
            expect(credentials.count == 1 && play.tokens.contains(credentials[0]), "not a token of the issuer alone")
        } else {
            expect(credentials == source.values("authorization"), "not the caller's own credential")
        }
    }

    // MARK: - Toward callers

    private func given(by upstream: Play.Talk) -> [Message] {
        let requests = requests(to: upstream).messages
        if play.script.habits.upstreamSpeaksHTTP2 {
            let asked = HTTP2Reading(.client, isReceived: false).read(upstream.peer.received).messages
            let methods = Dictionary(asked.map { ($0.stream, $0.message.method) }) { first, _ in first }
            return HTTP2Reading(.server, isReceived: true, methods: methods).read(upstream.sent).messages.map(\.message)
        }
        var reading = HTTP1Reading(
            upstream.sent, .answers, isReceived: true, hasEnded: upstream.hasLeft, methods: requests.map(\.method))
        return reading.all().all
    }

    private func check(caller: Play.Talk, _ sources: [Message]) {
        let octets = caller.peer.received
        let asked = Self.requests(of: caller)
        let found: [Message]
        if HTTP2Reading.isPreface(caller.sent) {
            let requests = HTTP2Reading(.client, isReceived: true).read(caller.sent).messages
            let methods = Dictionary(requests.map { ($0.stream, $0.message.method) }) { first, _ in first }
            let read = HTTP2Reading(.server, isReceived: false, methods: methods).read(octets)
            if let flaw = read.flaw { refute("what a caller got is not well-formed: \(flaw)") }
            found = read.messages.map(\.message)
        } else {
            var reading = HTTP1Reading(
                octets, .answers, isReceived: false, hasEnded: caller.peer.sawEnd, methods: asked.map(\.method))
            let read = reading.all()
            if let flaw = read.flaw { refute("what a caller got is not well-formed: \(flaw)") }
            found = read.all
        }
        // A request that cannot be read is answered, too.
        expect(found.count { $0.status >= 200 || $0.status == 101 } <= asked.count + 1, "more answers than requests")
        for answer in found where !isOwn(answer) {
            expect(
                sources.contains { isSame(answer, $0) },
                "an answer that no upstream gave: \(answer.status) \(text(answer.body))")
        }
        let canary = Play.fixedToken.dropFirst(7)
        if !play.upstreams.contains(where: { contains($0.sent, canary) }), !contains(caller.sent, canary) {
            expect(!contains(octets, canary), "a credential came to a caller")
        }
    }

    private func isOwn(_ answer: Message) -> Bool {
        answer.status == 100 || answer.values("content-type").contains(Array("application/problem+json".utf8))
    }

    private func isSame(_ answer: Message, _ source: Message) -> Bool {
        guard answer.status == source.status else { return false }
        for field in answer.fields where !Self.ownAnswerFields.contains(field.name) {
            guard source.fields.contains(field) else { return false }
        }
        guard answer.status >= 200, answer.method != Array("HEAD".utf8) else { return true }
        return source.body.starts(with: answer.body)
            && (!answer.isWhole || answer.endsWithConnection || answer.body == source.body)
    }

    private static let ownAnswerFields: Set<[UInt8]> = Set(
        [
            "via", "connection", "content-length", "transfer-encoding", "keep-alive", "cache-control", "location",
            "content-location", "set-cookie", "upgrade", "date",
        ].map { Array($0.utf8) })

    private func contains(_ octets: [UInt8], _ part: ArraySlice<UInt8>) -> Bool {
        octets.count >= part.count
            && (0...octets.count - part.count).contains { octets[$0...].starts(with: part) }
    }
}

func text(_ octets: [UInt8]) -> String { String(decoding: octets.prefix(200), as: UTF8.self) }
