import Configuration
import HTTP1
import Octets
import Synchronization
import Testing

@testable import Handshakes

private func octets(_ hexadecimal: String) throws -> [UInt8] { try #require(Hexadecimal.decode(hexadecimal.utf8)) }

/// A server's message with these pairs.
private func challenge(
    _ pairs: [NTLMPair] = [NTLMPair(id: 2, value: NTLMMessage.octets("Domain"))], flags: UInt32 = 0x8082_8205,
    nonce: [UInt8] = [1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]
) -> [UInt8] {
    let info = NTLMPair.octets(pairs)
    let count = NTLMMessage.octets(UInt16(info.count))
    let zeros = [UInt8](repeating: 0, count: 8)
    return NTLMMessage.signature + NTLMMessage.octets(UInt32(2)) + [0, 0, 0, 0, 48, 0, 0, 0]
        + NTLMMessage.octets(flags) + nonce + zeros + count + count + NTLMMessage.octets(UInt32(48)) + info
}

private func verdict(_ settings: NTLMSettings = NTLMSettings(username: "u"), _ lines: String...) throws
    -> ChallengeVerdict
{
    try NTLMHandshake(settings, statuses: nil).judge(
        status: 401, wwwAuthenticate: lines.map { Array($0.utf8) }, location: nil, requestURL: "https://a.example/x")
}

/// NTLM by the examples of [MS-NLMP] section 4.2, and messages that are none. That servers take what is made here is
/// `test_ntlm_authenticates_connections.py`.
@Suite struct NTLMTests {
    /// RFC 1320 appendix A.5.
    @Test(arguments: [
        ("", "31d6cfe0d16ae931b73c59d7e0c089c0"), ("a", "bde52cb31de33e46245e05fbdbd6fb24"),
        ("abc", "a448017aaf21d8525fc10ae87aa6729d"), ("message digest", "d9130a8164549fe818874806e1c7014b"),
        ("abcdefghijklmnopqrstuvwxyz", "d79e1c308aa5bbcdeea8ed63df412da9"),
        ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "043f8582f241db351ce627e153e7f0e4"),
        (
            "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
            "e33b4ddc9c38f2199c3e7b164fcc0536"
        ),
    ])
    func theOldHash(text: String, hash: String) {
        #expect(Hexadecimal.encode(MD4.hash(Array(text.utf8))) == hash)
    }

    /// Sections 4.2.4.1.1 and 4.2.4.2.
    @Test func theKeyOfTheSpecification() throws {
        let key = try #require(NTLMKey(of: Secret("Password"), NTLMSettings(username: "User", domain: "Domain")))
        #expect(Hexadecimal.encode(key.octets) == "0c868a403bfd7a93a3001ef22ef02e3f")
        let older = try #require(key.code(try octets("0123456789abcdef") + [UInt8](repeating: 0xaa, count: 8)))
        #expect(Hexadecimal.encode(older) == "86c35097ac9cec102554764a57cccc19")
        let blob =
            try octets("0101000000000000000000000000000000000000")
            .dropLast(4) + [UInt8](repeating: 0xaa, count: 8)
            + (try octets("0000000002000c0044006f006d00610069006e0001000c005300650072007600650072000000000000000000"))
        let proof = try #require(key.code(try octets("0123456789abcdef") + blob))
        #expect(Hexadecimal.encode(proof) == "68cd0ab851e51c96aabc927bebef6a1c")
    }

    /// At a proxy the same messages, one after the other. Each other message than NTLM's second is answered with nothing.
    @Test func aProxyIsAnsweredOnce() throws {
        let handshake = ProxyNTLM(NTLMUser("CORP\\u"), word: .ntlm, host: "proxy.example", GrantWorld())
        func answer(_ password: String, _ received: [UInt8]?) throws -> [UInt8] {
            let told = Mutex<Result<[UInt8], GrantFailure>?>(nil)
            handshake.begin(with: Array(password.utf8)).answer(received, within: 1) { result in
                told.withLock { $0 = result }
            }
            return try #require(told.withLock { $0 }).get()
        }
        #expect(try answer("p", nil) == NTLMMessage.first)
        let message = try answer("p", Base64.octets(of: challenge()))
        #expect(message[8] == 3 && message.count > 88)
        #expect(Array(message[12..<88]) != [UInt8](repeating: 0, count: 76))
        for wrong in [
            [], Array("!".utf8), Base64.octets(of: NTLMMessage.first), [UInt8](repeating: 0x41, count: 20_000),
        ] {
            #expect(throws: GrantFailure.self) { try answer("p", wrong) }
        }
        #expect(throws: GrantFailure.self) { try answer("p\u{1}", nil) }
        #expect(handshake.openingMessages == 1 && handshake.mostMessages == 2)
    }

    @Test func aMessageIsRead() throws {
        let read = try NTLMChallenge(challenge())
        #expect(read.nonce == (try octets("0123456789abcdef")))
        #expect(read.pairs == [NTLMPair(id: 2, value: NTLMMessage.octets("Domain"))])
        guard case .nonce = try verdict(NTLMSettings(username: "u"), "NTLM " + Base64.encode(challenge())) else {
            Issue.record("no nonce")
            return
        }
    }

    /// The server has not asked for what follows: whatever it is, nobody's password is judged by it.
    @Test func noMessageThatIsNoneIsAnswered() throws {
        let good = challenge()
        var broken: [[UInt8]] = [[], Array("NTLMSSP".utf8), Array("NTLMSSP\0".utf8), Array("Kerberos".utf8)]
        broken += (0..<good.count).map { Array(good.prefix($0)) }
        // Type, length, place and flags of something else.
        for (place, value): (Int, UInt8) in [
            (0, 0x4f), (8, 1), (8, 3), (9, 1), (20, 4), (22, 2), (40, 0xff), (41, 0xff), (44, 0xff), (45, 0xff),
            (46, 1),
            (47, 0x7f), (47, 0xff), (44, 12), (44, 47), (50, 0xff), (51, 0xff), (40, 0),
        ] {
            var message = good
            message[place] = value
            if place == 40, value == 0 { message[41] = 0 }
            broken.append(message)
        }
        broken.append(challenge((0..<65).map { NTLMPair(id: 3, value: [UInt8($0)]) }))
        #expect(broken.count >= 50)
        for message in broken {
            guard
                case .unusable = try verdict(
                    NTLMSettings(username: "u"), message.isEmpty ? "NTLM" : "NTLM \(Base64.encode(message))")
            else {
                Issue.record("\(message) is answered")
                continue
            }
        }
    }

    @Test func whatIsOfferedIsTold() throws {
        let settings = NTLMSettings(username: "u")
        guard case .none = try verdict(settings, "Basic realm=\"x\"") else {
            Issue.record("Basic")
            return
        }
        for lines in [
            ["Negotiate"], ["NTLM"], ["NTLM", "Negotiate"], ["NTLM TlRMTVNT"],
            ["NTLM " + String(repeating: "A", count: 20_000)],
        ] {
            let answered = try NTLMHandshake(settings, statuses: nil).judge(
                status: 401, wwwAuthenticate: lines.map { Array($0.utf8) }, location: nil,
                requestURL: "https://a.example/x")
            guard case .unusable = answered else {
                Issue.record("\(lines): \(answered)")
                continue
            }
        }
    }

    /// The proof covers the certificate, the server's own facts, and our word that there is a code over all messages.
    @Test func theAnswerCoversTheChannel() throws {
        let settings = NTLMSettings(username: "User", domain: "Domain")
        let key = try #require(NTLMKey(of: Secret("Password"), settings))
        let time: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
        let told = try NTLMChallenge(
            challenge([
                NTLMPair(id: 2, value: NTLMMessage.octets("Domain")), NTLMPair(id: 7, value: time),
                NTLMPair(id: 10, value: [9, 9]), NTLMPair(id: 6, value: [9, 9, 9, 9]),
            ]))
        func message(_ point: [UInt8]?) throws -> [UInt8] {
            try #require(
                NTLMAnswer(
                    to: told, as: settings, clientNonce: time, wallSeconds: 0, service: "HTTP/a.example",
                    serverEndPoint: point
                ).message(key))
        }
        let one = try message([1])
        let proof = try #require(one.firstRange(of: [1, 1, 0, 0, 0, 0, 0, 0] + time + time))
        let pairs = try NTLMPair.list(one[(proof.upperBound + 4)...])
        #expect(pairs.map(\.id) == [2, 7, 6, 10, 9] && pairs[2].value == [2, 0, 0, 0])
        #expect(pairs[4].value == NTLMMessage.octets("HTTP/a.example"))
        #expect(try message([2]) != one && message(nil) != one && message([1]) == one)
        // A server that tells its time gets no answer of the older form.
        #expect(Array(one[88..<112]) == [UInt8](repeating: 0, count: 24))
    }
}
