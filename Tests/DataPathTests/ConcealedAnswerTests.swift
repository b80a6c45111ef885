import HTTP1
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// `answers: conceal` on the whole loop, wherever an answer is cut.
@Suite struct ConcealedAnswerTests {
    private static let token = "Bearer secret-of-tests"
    private static let hidden = "Bearer ***************"
    private static let answers: [String] = [
        Wire.ok("you sent \(token) to me", "X-Seen: \(token)\r\n"),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nBeare\r\n11\r\nr secret-of-tests\r\n0\r\nX-End: \(token)\r\n\r\n",
        "HTTP/1.1 200 \(token)\r\nConnection: close\r\n\r\n\(token)",
        "HTTP/1.1 103 Early Hints\r\nLink: <\(token)>\r\n\r\n" + Wire.ok("secret-of-tests"),
    ]

    /// The whole text, so that a test of a part of it cannot be blind for the rest.
    private static func plain(_ text: String) -> String {
        guard let (head, body, trailers) = Wire.unchunked(text) else { return text }
        return head + body + trailers
    }

    /// Where a body of no announced length pauses, the first octets of a credential go.
    private static func withoutConcessions(_ text: String, mayPause: Bool) -> String {
        guard mayPause else { return text }
        let secret = "secret-of-tests"
        return (1...3).reduce(text) { text, count in
            let stars = String(repeating: "*", count: secret.count - count)
            return text.replacing(secret.prefix(count) + stars, with: String(repeating: "*", count: secret.count))
        }
    }

    @Test(arguments: answers) func anAnswerMayBeCutAnywhere(answer: String) throws {
        let octets = Array(answer.utf8)
        var seen: String?
        for cut in 1..<octets.count {
            let scene = try Scene(Plans.fixed("answers: conceal"))
            try scene.publish(Self.token, generation: 1)
            let caller = scene.call(Wire.get())
            let upstream = try #require(scene.upstreams.first)
            #expect(upstream.takeText().contains("Accept-Encoding: identity\r\n"))
            upstream.send(Array(octets[..<cut]))
            scene.settle()
            upstream.send(Array(octets[cut...]))
            upstream.finish()
            scene.settle()
            let text = Self.withoutConcessions(
                Self.plain(caller.takeText()), mayPause: !answer.contains("Content-Length"))
            #expect(
                !text.contains("secret-of-tests") && text.contains(Self.hidden.dropFirst(7)), "cut at \(cut): \(text)")
            if let seen { #expect(text == seen, "cut at \(cut)") }
            seen = text
            caller.reset()
            scene.end()
        }
    }

    /// The end of an answer whose last octets may begin a credential still goes.
    @Test func whatOnlyBeginsLikeACredentialArrives() throws {
        let scene = try Scene(Plans.fixed("answers: conceal"))
        try scene.publish(Self.token, generation: 1)
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nBearer secre")
        scene.settle()
        #expect(caller.takeText() == Wire.ok("Bearer secre"))
        // The connection serves the next request.
        caller.send(Wire.get())
        scene.settle()
        upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nBearer s")
        scene.settle()
        #expect(caller.takeText() == Wire.ok("Bearer s"))
        scene.end()
    }

    /// Its reader may have to answer a message before the next one comes.
    @Test func aMessageThatEndsLikeACredentialBeginsDoesNotWait() throws {
        let scene = try Scene(Plans.fixed("answers: conceal"))
        try scene.publish(Self.token, generation: 1)
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        upstream.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\nyes sec\r\n")
        scene.settle()
        var text = caller.takeText()
        #expect(text.hasSuffix("4\r\nyes \r\n3\r\nsec\r\n"))
        upstream.send("2\r\nre\r\n")
        scene.settle()
        #expect(caller.takeText().isEmpty)
        upstream.send("d\r\nt-of-tests se\r\n0\r\n\r\n")
        scene.settle()
        text += caller.takeText()
        #expect(Wire.unchunked(text)?.1 == "yes sec************ se")
        scene.end()
    }

    @Test func aCredentialThatIsTooShortIsNotSent() throws {
        let scene = try Scene(Plans.fixed("answers: conceal"))
        try scene.publish("short77", generation: 1)
        let caller = scene.call(Wire.get())
        #expect(caller.status == 503)
        #expect(scene.upstreams.allSatisfy { $0.receivedCount == 0 })
        scene.end()
    }
}
