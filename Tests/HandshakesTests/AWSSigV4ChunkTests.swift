import TLS
import Testing

@testable import Handshakes

private let scope = AWSSigV4CredentialScope(date: "20130524", region: "us-east-1", service: "s3")
private let signature = AWSSigV4Signature(
    scope: scope, timestamp: "20130524T000000Z", secret: Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"))

private func streaming(_ form: AWSSigV4Streaming.Form, _ length: Int, _ trailers: String? = nil) throws
    -> AWSSigV4Streaming
{
    var fields = [("x-amz-content-sha256", form.word), ("x-amz-decoded-content-length", "\(length)")]
    if let trailers { fields.append(("x-amz-trailer", trailers)) }
    return try #require(try AWSSigV4Streaming(fields))
}

private let zeros = String(repeating: "0", count: 64)
private func chunk(_ size: String, _ data: [UInt8], _ digits: String = zeros) -> [UInt8] {
    bytes("\(size);chunk-signature=\(digits)\r\n") + data + bytes("\r\n")
}
private func last(_ digits: String = zeros, _ trailers: String = "") -> [UInt8] {
    bytes("0;chunk-signature=\(digits)\r\n\(trailers)\r\n")
}

/// Sends a body through in pieces, as a data loop does.
private struct Relay {
    var signer: AWSSigV4ChunkSigner
    var held: [UInt8] = []
    var passed: [UInt8] = []
    /// The most that was held when nothing more could pass.
    var mostHeld = 0

    init(_ announced: AWSSigV4Streaming, after head: String, mostOfChunk: Int = 1 << 20) {
        signer = AWSSigV4ChunkSigner(signature, after: bytes(head), of: announced, mostOfChunk: mostOfChunk)
    }

    mutating func send(_ body: [UInt8], pieces: Int) throws {
        var at = 0
        while at < body.count {
            held += body[at..<min(body.count, at + pieces)]
            at += pieces
            let count = try held.withUnsafeMutableBytes { (raw) throws -> Int in try signer.sign(raw) }
            passed += held[..<count]
            held.removeFirst(count)
            mostHeld = max(mostHeld, held.count)
            if held.count > signer.room { Issue.record("more is held than there is room for") }
        }
        try signer.end()
        #expect(held.isEmpty)
    }
}

/// The two examples of the documentation of S3: 65 KiB of `a` in two chunks.
@Suite struct AWSSigV4ChunkTests {
    private static let seed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"
    private static let seedWithTrailer = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"

    private static func body(_ digits: [String], _ trailers: (String) -> String = { _ in "" }) -> [UInt8] {
        let a = UInt8(ascii: "a")
        return chunk("10000", [UInt8](repeating: a, count: 65_536), digits[0])
            + chunk("400", [UInt8](repeating: a, count: 1024), digits[1])
            + last(digits[2], trailers(digits.last ?? ""))
    }

    @Test(arguments: [1, 7, 16 * 1024, 1 << 20])
    func chunksOfTheExample(pieces: Int) throws {
        var relay = Relay(try streaming(.signed, 66_560), after: Self.seed)
        try relay.send(Self.body([zeros, zeros, zeros]), pieces: pieces)
        #expect(
            relay.passed
                == Self.body([
                    "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
                    "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
                    "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
                ]))
        #expect(relay.mostHeld < 65_536 + 100 + pieces)
    }

    @Test(arguments: [1, 7, 16 * 1024, 1 << 20])
    func trailersOfTheExample(pieces: Int) throws {
        func trailers(_ digits: String) -> String {
            "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:\(digits)\r\n"
        }
        var relay = Relay(
            try streaming(.signedWithTrailer, 66_560, "x-amz-checksum-crc32c"), after: Self.seedWithTrailer)
        try relay.send(Self.body([zeros, zeros, zeros, zeros], trailers), pieces: pieces)
        #expect(
            relay.passed
                == Self.body(
                    [
                        "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
                        "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
                        "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
                        "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435",
                    ], trailers))
    }

    /// Nothing but the digits of signatures is another octet than before.
    @Test func spellingsOfOthersStay() throws {
        let body =
            chunk("0000A", bytes("0123456789")) + chunk("a", bytes("\r\n0;chunk-"))
            + last(String(repeating: "F", count: 64))
        var relay = Relay(try streaming(.signed, 20), after: zeros)
        try relay.send(body, pieces: 3)
        #expect(relay.passed.count == body.count)
        let lines = relay.passed.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        #expect(lines.first?.starts(with: bytes("0000A;chunk-signature=")) == true)
    }

    @Test func anEmptyObject() throws {
        var relay = Relay(try streaming(.signed, 0), after: Self.seed)
        try relay.send(last(), pieces: 5)
        #expect(relay.passed.count == last().count && relay.passed != last())
    }

    @Test func aChunkThatIsTooLargeIsKnownByItsFirstLine() throws {
        var relay = Relay(try streaming(.signed, 100_000), after: zeros, mostOfChunk: 9_999)
        let fault = #expect(throws: BodyFault.self) {
            try relay.send(bytes("2710;chunk-signature=\(zeros)\r\n"), pieces: 99)
        }
        #expect(fault?.isTooLarge == true)
        #expect(relay.passed.isEmpty)
    }

    private static let announced = "x-amz-checksum-crc32,x-amz-b"
    private static let fields = "x-amz-checksum-crc32:AAAA\r\nX-Amz-B: b \r\n"
    private static func signed(_ fields: String, _ digits: String = zeros) -> [UInt8] {
        chunk("5", bytes("hello")) + last(zeros, fields + "x-amz-trailer-signature:\(digits)\r\n")
    }

    @Test func severalTrailersInAnyOrder() throws {
        for fields in [Self.fields, "X-AMZ-B:b\r\nx-amz-checksum-crc32:\tAAAA\r\n"] {
            var relay = Relay(try streaming(.signedWithTrailer, 5, Self.announced), after: zeros)
            try relay.send(Self.signed(fields), pieces: 4)
            #expect(relay.passed.suffix(4) == bytes("\r\n\r\n"))
            // The canonical form is one, so the signature is.
            #expect(relay.passed.dropLast(4).suffix(64).elementsEqual(bytes(Self.trailerDigits)))
        }
    }

    private static let trailerDigits = "1d51c09fcad6686110a4806dda9daeb9846f5c6f8e1238e19130dbf551fb0278"

    static let malformed: [(String, [UInt8])] = [
        ("nothing", []),
        ("no last chunk", chunk("5", bytes("hello"))),
        ("half a last chunk", chunk("5", bytes("hello")) + bytes("0;chunk-signature=\(zeros)\r\n")),
        ("half an end", Array((chunk("5", bytes("hello")) + last()).dropLast())),
        ("octets behind", chunk("5", bytes("hello")) + last() + [0x0A]),
        ("a request behind", chunk("5", bytes("hello")) + last() + bytes("GET / HTTP/1.1\r\n\r\n")),
        ("a second end", chunk("5", bytes("hello")) + last() + last()),
        ("no size", chunk("", bytes("hello")) + last()),
        ("a size that is none", chunk("x", bytes("hello")) + last()),
        ("a sign", chunk("+5", bytes("hello")) + last()),
        ("a minus", chunk("-5", bytes("hello")) + last()),
        ("a blank before", chunk(" 5", bytes("hello")) + last()),
        ("a blank behind", chunk("5 ", bytes("hello")) + last()),
        ("0x", chunk("0x5", bytes("hello")) + last()),
        ("sixteen digits", chunk("0000000000000005", bytes("hello")) + last()),
        ("64 bits", chunk("ffffffffffffffff", bytes("hello")) + last()),
        ("60 bits", chunk("fffffffffffffff", bytes("hello")) + last()),
        ("a size too small", chunk("4", bytes("hello")) + last()),
        ("a size too large", chunk("6", bytes("hello")) + last()),
        ("more than announced", chunk("6", bytes("hello!")) + last()),
        ("more in two", chunk("4", bytes("hell")) + chunk("2", bytes("o!")) + last()),
        ("less than announced", chunk("4", bytes("hell")) + last()),
        ("an empty object", last()),
        ("no signature", bytes("5\r\nhello\r\n0\r\n\r\n")),
        ("an empty signature", bytes("5;chunk-signature=\r\nhello\r\n") + last()),
        ("63 digits", chunk("5", bytes("hello"), String(zeros.dropLast())) + last()),
        ("65 digits", chunk("5", bytes("hello"), zeros + "0") + last()),
        ("letters", chunk("5", bytes("hello"), String(repeating: "g", count: 64)) + last()),
        ("a signature with a blank", chunk("5", bytes("hello"), " " + zeros.dropLast()) + last()),
        ("a name in capitals", bytes("5;Chunk-Signature=\(zeros)\r\nhello\r\n") + last()),
        ("another name", bytes("5;chunk-signaturf=\(zeros)\r\nhello\r\n") + last()),
        ("a blank in the line", bytes("5; chunk-signature=\(zeros)\r\nhello\r\n") + last()),
        ("an extension behind", bytes("5;chunk-signature=\(zeros);a=b\r\nhello\r\n") + last()),
        ("an extension before", bytes("5;a=b;chunk-signature=\(zeros)\r\nhello\r\n") + last()),
        ("two signatures", bytes("5;chunk-signature=\(zeros);chunk-signature=\(zeros)\r\nhello\r\n") + last()),
        ("a bare line feed", bytes("5;chunk-signature=\(zeros)\nhello\r\n") + last()),
        ("a bare return", bytes("5;chunk-signature=\(zeros)\rhello\r\n") + last()),
        ("a line feed behind data", bytes("5;chunk-signature=\(zeros)\r\nhello\n") + last()),
        ("no end of data", bytes("5;chunk-signature=\(zeros)\r\nhello") + last()),
        ("an empty line first", bytes("\r\n") + chunk("5", bytes("hello")) + last()),
        ("an empty line between", chunk("5", bytes("hello")) + bytes("\r\n") + last()),
        ("a line without end", [UInt8](repeating: UInt8(ascii: "0"), count: 200)),
        ("a zero octet", [0] + chunk("5", bytes("hello")) + last()),
        ("plain text", bytes("hello")),
        ("trailers that nobody announced", chunk("5", bytes("hello")) + last(zeros, "x-amz-a:b\r\n")),
        ("a signature of trailers", chunk("5", bytes("hello")) + last(zeros, "x-amz-trailer-signature:\(zeros)\r\n")),
    ]

    static let malformedTrailers: [(String, [UInt8])] = [
        ("none", chunk("5", bytes("hello")) + last()),
        ("no signature", chunk("5", bytes("hello")) + last(zeros, fields)),
        ("one missing", signed("x-amz-b:b\r\n")),
        ("one twice", signed(fields + "x-amz-b:b\r\n")),
        ("one more", signed(fields + "x-amz-c:c\r\n")),
        ("no colon", signed("x-amz-checksum-crc32\r\nx-amz-b:b\r\n")),
        ("a blank before the colon", signed("x-amz-checksum-crc32 :a\r\nx-amz-b:b\r\n")),
        ("folded", signed("x-amz-checksum-crc32:a\r\n b\r\nx-amz-b:b\r\n")),
        ("a bare line feed", signed("x-amz-checksum-crc32:a\nx-amz-b:b\r\n")),
        ("a control character", signed("x-amz-checksum-crc32:a\u{1}\r\nx-amz-b:b\r\n")),
        ("no ASCII", signed("x-amz-checksum-crc32:\u{e4}\r\nx-amz-b:b\r\n")),
        ("63 digits", signed(fields, String(zeros.dropLast()))),
        ("a blank in the signature", signed(fields, " " + zeros)),
        ("letters", signed(fields, String(repeating: "g", count: 64))),
        (
            "the signature first",
            chunk("5", bytes("hello")) + last(zeros, "x-amz-trailer-signature:\(zeros)\r\n" + fields)
        ),
        ("the signature twice", signed(fields + "x-amz-trailer-signature:\(zeros)\r\n")),
        ("a field behind the signature", signed(fields + "x-amz-trailer-signature:\(zeros)\r\nx-amz-d:d\r\n")),
        ("9 KiB", signed("x-amz-checksum-crc32:\(String(repeating: "a", count: 9216))\r\nx-amz-b:b\r\n")),
        (
            "9 KiB without end",
            chunk("5", bytes("hello")) + bytes("0;chunk-signature=\(zeros)\r\n" + String(repeating: "a", count: 9216))
        ),
    ]

    @Test(arguments: [1, 6, 1 << 16])
    func malformedBodiesAreRefusedAndAValidOneIsNot(pieces: Int) throws {
        func fault(_ body: [UInt8], _ announced: AWSSigV4Streaming) -> BodyFault? {
            var relay = Relay(announced, after: zeros)
            do {
                try relay.send(body, pieces: pieces)
                return nil
            } catch { return error as? BodyFault }
        }
        let plain = try streaming(.signed, 5), trailing = try streaming(.signedWithTrailer, 5, Self.announced)
        #expect(fault(chunk("5", bytes("hello")) + last(), plain) == nil)
        #expect(fault(Self.signed(Self.fields), trailing) == nil)
        #expect(Self.malformed.count + Self.malformedTrailers.count > 50)
        for (name, body) in Self.malformed { #expect(fault(body, plain)?.isTooLarge == false, "\(name)") }
        for (name, body) in Self.malformedTrailers { #expect(fault(body, trailing)?.isTooLarge == false, "\(name)") }
    }

    /// Whatever comes, no call ends the process, and no octet is lost or added.
    @Test func drawnBodies() throws {
        var state: UInt64 = 7
        func draw(_ below: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % below
        }
        let trailing = try streaming(.signedWithTrailer, 5, Self.announced)
        let good = Self.signed(Self.fields)
        for _ in 0..<3000 {
            var body = good
            for _ in 0...draw(2) {
                let at = draw(body.count)
                switch draw(3) {
                case 0: body[at] = UInt8(draw(256))
                case 1: body.remove(at: at)
                default: body.insert(bytes("0;\r\n5:=a")[draw(8)], at: at)
                }
            }
            var relay = Relay(trailing, after: zeros)
            do {
                try relay.send(body, pieces: 1 + draw(300))
                #expect(relay.passed.count == body.count)
            } catch is BodyFault {
                #expect(relay.passed.count <= body.count)
            }
        }
    }
}

@Suite struct AWSSigV4StreamingTests {
    @Test(arguments: AWSSigV4Streaming.Form.allCases)
    func announcements(form: AWSSigV4Streaming.Form) throws {
        let trailers = form == .signed ? nil : "X-Amz-Checksum-CRC32 , x-amz-b"
        let announced = try streaming(form, 17, trailers)
        #expect((announced.form, announced.length) == (form, 17))
        #expect(announced.trailers == (trailers == nil ? [] : ["x-amz-checksum-crc32", "x-amz-b"]))
        // An SDK that signs nothing has no word for it.
        var fields = [("content-encoding", "gzip,aws-chunked"), ("x-amz-decoded-content-length", "5")]
        #expect(throws: SigningFault.self) { try AWSSigV4Streaming(fields) }
        fields.append(("x-amz-trailer", "x-amz-checksum-crc32"))
        #expect(try AWSSigV4Streaming(fields)?.form == .unsignedWithTrailer)
        #expect(
            try AWSSigV4Streaming([("x-amz-content-sha256", "UNSIGNED-PAYLOAD"), ("content-encoding", "gzip")]) == nil)
    }

    static let disagreeing: [[(name: String, value: String)]] = {
        let signed = ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")
        let trailing = ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
        let length = ("x-amz-decoded-content-length", "5")
        var all = [
            [signed], [length], [("content-encoding", "aws-chunked")], [("x-amz-trailer", "a")],
            [signed, signed, length],
            [signed, length, length], [trailing, length], [signed, length, ("x-amz-trailer", "a")],
            [("content-encoding", "gzip, AWS-Chunked"), length],
            [("x-amz-content-sha256", "UNSIGNED-PAYLOAD"), length],
        ]
        for word in [
            "STREAMING-AWS4-HMAC-SHA256-EVENTS", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", "STREAMING-",
            "streaming-unsigned-payload-trailer",
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD ", "STREAMING-UNSIGNED-PAYLOAD",
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER-",
        ] { all.append([("x-amz-content-sha256", word), length]) }
        for number in [
            "", "-1", "-0", "+5", "5.0", "0x5", " 5", "5,5", "99999999999999999999", "9223372036854775808", "five",
        ] {
            all.append([signed, ("x-amz-decoded-content-length", number)])
        }
        for names in [
            "", ",", "a,", "a,a", "a,A", "a b", "a:b", "x-amz-trailer-signature", "a\u{e4}",
            "a,X-Amz-Trailer-Signature",
        ] {
            all.append([trailing, length, ("x-amz-trailer", names)])
        }
        return all
    }()

    @Test func announcementsThatDisagreeAreTheCallers() {
        for fields in Self.disagreeing {
            let fault = #expect(throws: SigningFault.self, "\(fields)") { try AWSSigV4Streaming(fields) }
            #expect(fault?.isCallers == true)
        }
    }
}

@Suite struct AWSSigV4CallerScopeTests {
    private static let good =
        "AWS4-HMAC-SHA256 Credential=AKID/20261128/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature=0"

    @Test(arguments: [
        good, "AWS4-HMAC-SHA256 Credential=a/b/c/20261128/eu-west-1/s3/aws4_request,SignedHeaders=,Signature=",
        "AWS4-HMAC-SHA256 SignedHeaders=host, Credential=AKID/00000000/eu-west-1/s3/aws4_request",
        "AWS4-HMAC-SHA256  Credential=AKID=,/20261128/eu-west-1/s3/aws4_request".replacing(",", with: ""),
    ])
    func scopes(value: String) throws {
        let found = try AWSSigV4CallerScope.find(in: [("AUTHORIZATION", value), ("other", "AWS4-x")])
        #expect(found?.region == "eu-west-1" && found?.service == "s3")
    }

    @Test(arguments: ["", "Basic YTpi", "Bearer AWS4-HMAC-SHA256", "AWS AKID:sig", "AWS4", "Digest a=b", "Negotiate"])
    func otherCredentials(value: String) throws {
        #expect(try AWSSigV4CallerScope.find(in: [("authorization", value)]) == nil)
        #expect(try AWSSigV4CallerScope.find(in: []) == nil)
    }

    static let malformed: [String] = {
        let credentials = [
            "", "/", "////", "AKID", "AKID/20261128", "AKID/20261128/eu-west-1", "AKID/20261128/eu-west-1/s3",
            "20261128/eu-west-1/s3/aws4_request", "/20261128/eu-west-1/s3/aws4_request", "AKID/20261128/eu-west-1/s3/",
            "AKID/20261128/eu-west-1/s3/aws4_request/", "AKID/20261128/eu-west-1/s3/AWS4_REQUEST",
            "AKID/20261128/eu-west-1/s3/aws4_requests", "AKID/20261128/eu-west-1//aws4_request",
            "AKID/20261128//s3/aws4_request", "AKID//eu-west-1/s3/aws4_request",
            "AKID/2026112/eu-west-1/s3/aws4_request",
            "AKID/202611281/eu-west-1/s3/aws4_request", "AKID/2026-1-2/eu-west-1/s3/aws4_request",
            "AKID/2026112a/eu-west-1/s3/aws4_request", "AKID/20261128/eu west/s3/aws4_request",
            "AKID/20261128/eu-west-1/s3 /aws4_request", "AKID/20261128/eu-west-1/s3%2F/aws4_request",
            "AKID/20261128/eu-west-1/s3.amazonaws.com/aws4_request", "AKID/20261128/\u{e4}/s3/aws4_request",
            "AKID/20261128/eu-west-1/\u{0}/aws4_request", "AKID/20261128/*/s3/aws4_request",
            "AKID/20261128/eu-west-1/\"s3\"/aws4_request", "AKID/20261128/eu-west-1;x/s3/aws4_request",
            "AKID/20261128/eu-west-1/s3\\/aws4_request", "AKID/20261128/eu-west-1/s3/aws4_request ",
            "AKID/20261128/\(String(repeating: "a", count: 65))/s3/aws4_request",
            "AKID/20261128/eu-west-1/\(String(repeating: "a", count: 65))/aws4_request",
            String(repeating: "/", count: 60_000), String(repeating: "a", count: 60_000),
        ]
        let one = "Credential=AKID/20261128/eu-west-1/s3/aws4_request"
        return credentials.map { "AWS4-HMAC-SHA256 Credential=\($0), SignedHeaders=host, Signature=0" } + [
            "AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 ", "AWS4-HMAC-SHA256 SignedHeaders=host, Signature=0",
            "AWS4-HMAC-SHA256 \(one), \(one)", "AWS4-HMAC-SHA256 \(one), Credential=",
            "AWS4-HMAC-SHA256 credential=AKID/20261128/eu-west-1/s3/aws4_request",
            "AWS4-HMAC-SHA256 X\(one)", "AWS4-HMAC-SHA256,\(one)", "AWS4-HMAC-SHA256\t\(one)",
            "aws4-hmac-sha256 \(one)",
            "AWS4-HMAC-SHA512 \(one)", "AWS4-ECDSA-P256-SHA256 Credential=AKID/20261128/s3/aws4_request",
            "AWS4-ECDSA-P256-SHA256 \(one)",
            "AWS4- \(one)", "AWS4-HMAC-SHA256-PAYLOAD \(one)", "AWS4-HMAC-SHA256 \"\(one)\"", "AWS4-HMAC-SHA256 ,,,,",
        ]
    }()

    @Test func malformedScopesNeverChoose() {
        #expect(Self.malformed.count >= 50)
        for value in Self.malformed {
            let fault = #expect(throws: SigningFault.self, "\(value.prefix(99))") {
                try AWSSigV4CallerScope.find(in: [("Authorization", value)])
            }
            #expect(fault?.isCallers == true)
        }
        for other in [Self.good, "Basic YTpi"] {
            #expect(throws: SigningFault.self) {
                try AWSSigV4CallerScope.find(in: [("Authorization", Self.good), ("authorization", other)])
            }
        }
    }

    private func settings(_ services: [String], _ regions: [String]) -> AWSSigV4Settings {
        var settings = AWSSigV4Settings()
        (settings.services, settings.regions) = (services, regions)
        return settings
    }

    @Test func theListsDecide() throws {
        let caller = try AWSSigV4CallerScope.find(in: [("Authorization", Self.good)])
        let both = settings(["sqs", "s3"], ["eu-west-1"])
        #expect(try both.scope(at: "h", of: caller) == ("s3", "eu-west-1"))
        // A caller that signs nothing means what its host names.
        #expect(try both.scope(at: "sqs.eu-west-1.amazonaws.com", of: nil) == ("sqs", "eu-west-1"))
        // The scope that a caller signs for comes before the one that its host names.
        #expect(try both.scope(at: "sqs.eu-west-1.amazonaws.com", of: caller) == ("s3", "eu-west-1"))
        for (lists, host, caller) in [
            (both, "h", nil), (both, "sqs.us-east-1.amazonaws.com", nil), (both, "sts.eu-west-1.amazonaws.com", nil),
            (settings(["sqs"], ["eu-west-1"]), "h", caller), (settings(["s3"], ["us-east-1"]), "h", caller),
            (settings(["s3"], []), "h", caller), (settings([], ["eu-west-1"]), "h", caller),
        ] {
            let fault = #expect(throws: SigningFault.self) { try lists.scope(at: host, of: caller) }
            #expect(fault?.isCallers == true)
        }
        // Either list may be written without the other.
        var half = settings(["s3"], [])
        half.region = "us-east-1"
        #expect(try half.scope(at: "h", of: caller) == ("s3", "us-east-1"))
        #expect(try settings(["s3"], []).scope(at: "sqs.us-east-2.amazonaws.com", of: caller) == ("s3", "us-east-2"))
    }

    /// Without lists nothing of a caller's choosing counts, whatever it signs.
    @Test func withoutListsTheCallerChoosesNothing() throws {
        let caller = try AWSSigV4CallerScope.find(in: [("Authorization", Self.good)])
        #expect(try AWSSigV4Settings(service: "x", region: "y").scope(at: "h", of: caller) == ("x", "y"))
        #expect(throws: SigningFault("the host names no service and region of AWS")) {
            try AWSSigV4Settings().scope(at: "h", of: caller)
        }
    }
}
