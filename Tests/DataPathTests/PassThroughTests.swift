import ScriptedKernel
import Testing

@testable import Scenes

/// What goes in comes out, however the network cuts it.
@Suite struct PassThroughTests {
    private static let fields =
        "Accept: */*\r\nX-Odd_Name:  two  blanks \r\nx-latin: caf\u{e9}\r\nX-Empty:\r\nCookie: a=1; b=\"2\"\r\n"
    private static let answerFields = "Server: old/1.0 (x)\r\nX-A: 1\r\nx-a: 2\r\nSet-Cookie: s=1; Path=/\r\n"

    @Test func untouchedBytesPassAsTheyAre() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call()
        // Latin-1: bytes that are no UTF-8.
        let latin = Array("X-Latin: caf".utf8) + [0xe9] + Array("\r\n".utf8)
        caller.send("PROPFIND /a%2Fb/../c?d=%zz&e HTTP/1.1\r\nhost: localhost\r\n\(Self.fields)")
        caller.send(latin + [13, 10])
        scene.settle()
        let upstream = try #require(scene.upstreams.first)
        let expected = Wire.forwarded("PROPFIND", "/a%2Fb/../c?d=%zz&e", Self.fields + "MARK")
        let halves = expected.split(separator: "MARK", maxSplits: 1).map { Array($0.utf8) }
        #expect(upstream.take() == halves[0] + latin + halves[1])
        upstream.send("HTTP/1.1 207 Odd  Reason\r\n\(Self.answerFields)Content-Length: 3\r\n\r\nabc")
        scene.settle()
        #expect(
            caller.takeText() == "HTTP/1.1 207 Odd  Reason\r\n\(Self.answerFields)Content-Length: 3\r\n\r\nabc")
        #expect(!caller.sawEnd && scene.idleUpstreams == 1)
        scene.end()
    }

    /// A request's head, cut in two at every place.
    @Test func aRequestMayBeCutAnywhere() throws {
        let scene = try Scene(Plans.open())
        let request = Array((Wire.get("/p?q", Self.fields)).utf8)
        let expected = Wire.forwarded("GET", "/p?q", Self.fields)
        for cut in 1..<request.count {
            let caller = scene.call()
            caller.send(Array(request[..<cut]))
            scene.settle()
            if let upstream = scene.upstreams.first { #expect(upstream.receivedCount == 0, "cut at \(cut)") }
            caller.send(Array(request[cut...]))
            scene.settle()
            let upstream = try #require(scene.upstreams.first)
            #expect(upstream.takeText() == expected, "cut at \(cut)")
            upstream.send(Wire.ok("x"))
            scene.settle()
            #expect(caller.takeText() == Wire.ok("x"), "cut at \(cut)")
            caller.finish()
            scene.settle()
            #expect(caller.isClosed)
        }
        #expect(scene.upstreams.count == 1, "one connection served them all")
        scene.end()
    }

    /// Byte by byte, with the loop turning after each.
    @Test func aRequestMayDribbleIn() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call()
        for byte in Wire.post("hello", "X-A: b\r\n").utf8 {
            caller.send([byte])
            scene.settle()
        }
        let upstream = try #require(scene.upstreams.first)
        #expect(
            upstream.takeText()
                == Wire.forwarded("POST", "/", "X-A: b\r\n", framing: "Content-Length: 5\r\n", body: "hello"))
        for byte in Wire.ok("world").utf8 {
            upstream.send([byte])
            scene.settle()
        }
        #expect(caller.takeText() == Wire.ok("world"))
        scene.end()
    }

    @Test func anAnswerMayBeCutAnywhere() throws {
        let scene = try Scene(Plans.open())
        let answer = Array(Wire.ok("body", Self.answerFields).utf8)
        for cut in 1..<answer.count {
            let caller = scene.call(Wire.get())
            let upstream = try #require(scene.upstreams.first)
            upstream.discard()
            upstream.send(Array(answer[..<cut]))
            scene.settle()
            upstream.send(Array(answer[cut...]))
            scene.settle()
            #expect(caller.takeText() == Wire.ok("body", Self.answerFields), "cut at \(cut)")
            caller.finish()
            scene.settle()
        }
        #expect(scene.upstreams.count == 1)
        scene.end()
    }

    // MARK: - Chunks

    private static let chunked = "5\r\nhello\r\n1;x=\"y\"\r\n,\r\n00a\r\n big world\r\n0\r\nX-Sum: 1\r\n\r\n"

    @Test func aChunkedRequestMayBeCutAnywhere() throws {
        let scene = try Scene(Plans.open())
        let request = Array(
            ("PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + Self.chunked).utf8)
        for cut in 1..<request.count {
            let caller = scene.call()
            caller.send(Array(request[..<cut]))
            scene.settle()
            caller.send(Array(request[cut...]))
            scene.settle()
            let upstream = try #require(scene.upstreams.first)
            let seen = try #require(Wire.unchunked(upstream.takeText()), "cut at \(cut)")
            #expect(seen.head == Wire.forwarded("PUT", framing: "Transfer-Encoding: chunked\r\n"), "cut at \(cut)")
            #expect(seen.body == "hello, big world" && seen.trailers == "X-Sum: 1\r\n", "cut at \(cut)")
            upstream.send(Wire.ok())
            scene.settle()
            #expect(caller.takeText() == Wire.ok(), "cut at \(cut)")
            caller.finish()
            scene.settle()
        }
        #expect(scene.upstreams.count == 1)
        scene.end()
    }

    @Test func aChunkedAnswerMayBeCutAnywhere() throws {
        let scene = try Scene(Plans.open())
        let answer = Array(("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + Self.chunked).utf8)
        for cut in 1..<answer.count {
            let caller = scene.call(Wire.get())
            let upstream = try #require(scene.upstreams.first)
            upstream.discard()
            upstream.send(Array(answer[..<cut]))
            scene.settle()
            upstream.send(Array(answer[cut...]))
            scene.settle()
            let seen = try #require(Wire.unchunked(caller.takeText()), "cut at \(cut)")
            #expect(seen.head == "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "cut at \(cut)")
            #expect(seen.body == "hello, big world" && seen.trailers == "X-Sum: 1\r\n", "cut at \(cut)")
            caller.finish()
            scene.settle()
        }
        #expect(scene.upstreams.count == 1)
        scene.end()
    }

    // MARK: - Kinds of answers

    @Test func interimAnswersPassAndTheFinalOneFollows() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        scene.upstreams[0].send("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + Wire.ok("a"))
        scene.settle()
        #expect(caller.takeText() == "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + Wire.ok("a"))
        scene.end()
    }

    @Test func anAnswerThatEndsWithItsConnectionIsChunked() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        scene.upstreams[0].send("HTTP/1.1 200 OK\r\n\r\nabc")
        scene.settle()
        scene.upstreams[0].send("def")
        scene.settle()
        scene.upstreams[0].finish()
        scene.settle()
        #expect(Wire.unchunked(caller.takeText())?.body == "abcdef")
        #expect(!caller.sawEnd && scene.upstreams[0].isClosed)
        scene.end()
    }

    @Test func anOldCallerGetsTheEndOfTheConnectionForTheEndOfTheBody() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call("GET / HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")
        scene.upstreams[0].send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        scene.settle()
        #expect(caller.takeText() == "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc")
        #expect(caller.sawEnd)
        scene.end()
    }

    @Test func anAnswerToHeadHasNoBody() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        scene.upstreams[0].send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        scene.settle()
        #expect(caller.takeText() == "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        #expect(scene.idleUpstreams == 1 && !caller.sawEnd)
        scene.end()
    }

    // MARK: - Pipelines

    @Test func aPipelineIsAnsweredInOrder() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get("/1") + Wire.post("two", path: "/2") + Wire.get("/3"))
        let upstream = try #require(scene.upstreams.first)
        #expect(upstream.takeText() == Wire.forwarded("GET", "/1"), "one at a time")
        upstream.send(Wire.ok("1"))
        scene.settle()
        #expect(
            upstream.takeText() == Wire.forwarded("POST", "/2", framing: "Content-Length: 3\r\n", body: "two"))
        upstream.send(Wire.ok("2"))
        scene.settle()
        #expect(upstream.takeText() == Wire.forwarded("GET", "/3"))
        upstream.send(Wire.ok("3"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("1") + Wire.ok("2") + Wire.ok("3"))
        #expect(scene.upstreams.count == 1 && !caller.sawEnd)
        scene.end()
    }

    /// Answered by us, each in the turn of the one before: as many as a block holds, and no deeper for it.
    @Test func aLongPipelineCostsNoStack() throws {
        let scene = try Scene(Plans.open("match: {path: /here/}"))
        let caller = scene.call()
        for _ in 0..<2_000 { caller.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") }
        scene.settle()
        #expect(caller.takeText().split(separator: "404 Not Found").count == 2_001)
        #expect(!caller.sawEnd)
        scene.end()
    }

    @Test func theLastRequestOfAHalfClosedCallerIsServed() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call()
        caller.send(Wire.get())
        caller.finish()
        scene.settle()
        scene.upstreams[0].send(Wire.ok("late"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("late") && caller.isClosed)
        scene.end()
    }
}
