import CNghttp2
import HTTP1
import Testing

@testable import HTTP2

/// A head that goes to a stream field by field has the fields that it would have had as a text, in their order.
@Suite struct OutgoingHeadTests {
    @Test(arguments: UInt64(0)..<40) func `requests are those of the text`(part: UInt64) throws {
        var heads = DrawnHeads(seed: part)
        var compared = 0
        for _ in 0..<100 {
            let drawn = DrawnRequest(&heads)
            guard let (text, fields) = drawn.bothWays() else { continue }
            compared += 1
            #expect(fields == text, "\(drawn)")
        }
        #expect(compared > 20)
    }

    @Test(arguments: UInt64(0)..<40) func `answers are those of the text`(part: UInt64) throws {
        var heads = DrawnHeads(seed: part)
        var compared = 0
        for _ in 0..<100 {
            let bytes = heads.response()
            let edits = heads.responseEdits()
            let origin = Array(heads.one(of: ["", "http://localhost:8080", "https://here"]).utf8)
            let isPrivate = heads.happens(1, in: 2)
            let lines = Array(heads.one(of: ["", "Server-Timing: a;dur=1.5\r\nX-Other:b \r\n"]).utf8)
            let framing = heads.framing()
            var head = ResponseHead(maxFields: 128)
            guard (try? head.parse(bytes.span, limits: HeadLimits())) == bytes.count else { continue }
            compared += 1
            let text = Listed.text { output in
                writeResponse(
                    head, bytes: bytes.span, edits: edits, callerOrigin: origin.span, isPrivate: isPrivate,
                    lines: lines.span,
                    framing: framing, callerMinorVersion: 1, close: framing == .chunked, into: &output)
            } fill: {
                let isFilled = $0.fill(response: $1)
                #expect(isFilled)
            }
            let fields = Listed.fields(of: bytes) { output in
                writeResponse(
                    head, bytes: bytes.span, edits: edits, callerOrigin: origin.span, isPrivate: isPrivate,
                    lines: lines.span,
                    framing: framing, into: &output)
            } fill: {
                $0.fill(response: $1, received: $2)
            }
            #expect(fields == text, "\(String(decoding: bytes, as: UTF8.self))")
        }
        #expect(compared > 20)
    }

    @Test func `an extended CONNECT has its protocol and no proof`() throws {
        let bytes = Array(
            """
            GET /chat HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\
            Sec-WebSocket-Version: 13\r\n\r\n
            """.utf8)
        var head = RequestHead(maxFields: 8)
        #expect(try head.parse(bytes.span, limits: HeadLimits()) == bytes.count)
        let listed = Listed.fields(of: bytes) { output in
            writeRequest(head, bytes: bytes.span, edits: RequestEdits(), credential: nil, framing: .none, into: &output)
        } fill: {
            $0.fill(
                request: $1, received: $2, scheme: "https", secretName: .init(start: nil, count: 0),
                secretTarget: false, protocolName: "websocket", acceptsTrailers: false)
        }
        #expect(
            listed.description == """
                :method: CONNECT
                :protocol: websocket
                :scheme: https
                :path: /chat
                :authority: a
                sec-websocket-version: 13
                held:
                """ + " ")
    }

    @Test func `more fields than it has room for find some`() throws {
        let lines = (0..<200).map { "X-\($0): \($0)\r\n" }.joined()
        let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n".utf8)
        var head = RequestHead(maxFields: 256)
        #expect(try head.parse(bytes.span, limits: HeadLimits(fields: 256)) == bytes.count)
        var output = OutgoingHead()
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
        defer { memory.deallocate() }
        output.begin(in: memory)
        writeRequest(head, bytes: bytes.span, edits: RequestEdits(), credential: nil, framing: .none, into: &output)
        let (hasOverflowed, fields) = (output.overflowed, output.withFields { $0.count })
        #expect(!hasOverflowed && fields == 200)
        // What is put together has a bound.
        output.begin(in: UnsafeMutableRawBufferPointer(rebasing: memory[..<100]))
        writeRequest(head, bytes: bytes.span, edits: RequestEdits(), credential: nil, framing: .none, into: &output)
        let overflows = output.overflowed
        #expect(overflows)
    }

    @Test func `it reaches the peer`() throws {
        let pair = Pair()
        let bytes = Array("GET /a?b HTTP/1.1\r\nhost: a\r\nX-One: 1\r\naccept: x\r\nx-two: \r\n\r\n".utf8)
        var head = RequestHead(maxFields: 8)
        #expect(try head.parse(bytes.span, limits: HeadLimits()) == bytes.count)
        var output = OutgoingHead()
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
        defer { memory.deallocate() }
        for _ in 0..<3 {
            output.begin(in: memory)
            let credential = Array("Authorization: Bearer secret\r\n".utf8)
            writeRequest(
                head, bytes: bytes.span, edits: RequestEdits(), credential: credential.span, framing: .none,
                into: &output)
            let asked = bytes.withUnsafeBytes {
                pair.client.open(
                    request: output, received: $0, scheme: "https", secretName: Array("authorization".utf8),
                    secretTarget: false, acceptsTrailers: true, ended: true)
            }
            #expect(try #require(asked).credential.count == 13)
            // nghttp2 has copied what is not the program's own.
            memory.initializeMemory(as: UInt8.self, repeating: 0x2A)
            pair.exchange()
            let came = try #require(pair.server.takeOpened().first)
            #expect(
                came.readAll() == """
                    GET /a?b HTTP/1.1\r\nx-one: 1\r\naccept: x\r\nx-two: \r\nauthorization: Bearer secret\r\n\
                    host: a\r\n\r\n
                    """)
            #expect(came.acceptsTrailers)
        }
    }
}

private struct DrawnRequest: CustomStringConvertible {
    let bytes: [UInt8]
    let edits: RequestEdits
    let credential: [UInt8]?
    let hop: ForwardedHop
    let framing: BodyFraming
    let expects: Bool
    let asHEAD: Bool
    let secretName: [UInt8]
    let acceptsTrailers: Bool

    init(_ heads: inout DrawnHeads) {
        bytes = heads.request()
        edits = heads.requestEdits()
        credential = heads.credential(for: edits.place)
        hop = heads.hop()
        framing = heads.framing()
        expects = heads.happens(1, in: 6)
        asHEAD = heads.happens(1, in: 6)
        secretName = Array(heads.one(of: ["", "authorization", "x-api-key", "cookie"]).utf8)
        acceptsTrailers = heads.happens(1, in: 4)
    }

    /// Nil for what is refused before it is written.
    func bothWays() -> (text: Listed, fields: Listed)? {
        var head = RequestHead(maxFields: 128)
        guard (try? head.parse(bytes.span, limits: HeadLimits())) == bytes.count, head.targetForm != .authority else {
            return nil
        }
        let ready = credential ?? []
        let text = Listed.text { output in
            writeRequest(
                head, bytes: bytes.span, edits: edits, credential: credential == nil ? nil : ready.span, hop: hop,
                framing: framing, expectContinue: expects, upgrade: head.upgrade, asHEAD: asHEAD, into: &output)
        } fill: {
            let isFilled = $0.fill(
                request: $1, scheme: "https", secretName: secretName, secretTarget: edits.place == .query,
                acceptsTrailers: acceptsTrailers)
            #expect(isFilled)
        }
        let fields = Listed.fields(of: bytes) { output in
            writeRequest(
                head, bytes: bytes.span, edits: edits, credential: credential == nil ? nil : ready.span, hop: hop,
                framing: framing, expectContinue: expects, asHEAD: asHEAD, into: &output)
        } fill: { list, head, received in
            secretName.withUnsafeBytes {
                list.fill(
                    request: head, received: received, scheme: "https", secretName: $0,
                    secretTarget: edits.place == .query, protocolName: "", acceptsTrailers: acceptsTrailers)
            }
        }
        return (text, fields)
    }

    var description: String { "\(String(decoding: bytes, as: UTF8.self))\(edits)" }
}

/// What nghttp2 is given.
private struct Listed: Equatable, CustomStringConvertible {
    private struct Pair: Equatable {
        let name: [UInt8]
        let value: [UInt8]
        let isSecret: Bool
    }

    private var pairs: [Pair]
    private var held: [UInt8]

    private init(_ list: borrowing FieldList) {
        held = Array(list.held)
        pairs = list.withPairs { pairs, count in
            UnsafeBufferPointer(start: pairs, count: count).map { pair in
                Pair(
                    name: Array(UnsafeBufferPointer(start: pair.name, count: pair.namelen)),
                    value: Array(UnsafeBufferPointer(start: pair.value, count: pair.valuelen)),
                    isSecret: pair.flags & UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) != 0)
            }
        }
    }

    static func text(
        _ write: (inout OutputCursor) -> Void, fill: (inout FieldList, UnsafeMutableRawBufferPointer) -> Void
    ) -> Listed {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
        defer { memory.deallocate() }
        var output = OutputCursor(memory)
        write(&output)
        #expect(!output.overflowed)
        var list = FieldList()
        fill(&list, UnsafeMutableRawBufferPointer(rebasing: memory[..<output.count]))
        return Listed(list)
    }

    static func fields(
        of received: [UInt8], _ write: (inout OutgoingHead) -> Void,
        fill: (inout FieldList, borrowing OutgoingHead, UnsafeRawBufferPointer) -> Void
    ) -> Listed {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
        defer { memory.deallocate() }
        var output = OutgoingHead()
        output.begin(in: memory)
        write(&output)
        let hasOverflowed = output.overflowed
        #expect(!hasOverflowed)
        var list = FieldList()
        return received.withUnsafeBytes {
            fill(&list, output, $0)
            return Listed(list)
        }
    }

    var description: String {
        func text(_ octets: [UInt8]) -> String { String(decoding: octets, as: UTF8.self) }
        return pairs.map { "\(text($0.name)):\($0.isSecret ? "!" : "") \(text($0.value))\n" }.joined()
            + "held: \(text(held))"
    }
}
