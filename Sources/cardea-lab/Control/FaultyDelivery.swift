/// Sends an answer of the protected site, honestly or as the set faults want it.
struct FaultyDelivery {
    let faults: Faults
    let connection: Connection
    let request: Request

    /// False when the connection must be closed now.
    func deliver(_ response: Response, keepAlive: Bool) throws(WireFault) -> Bool {
        let isChallenge = response.status == 401 || response.status == 302
        func take(_ name: String) -> Faults.Fault? {
            faults.takeDelivery(name, path: request.path, isChallenge: isChallenge)
        }
        if take("hang") != nil {
            Moment.wait(milliseconds: 120_000) { connection.peerIsGone || !faults.isSet("hang") }
            return false
        }
        if take("close_without_answer") != nil { return false }
        if take("reset_before_answer") != nil {
            connection.resetOnClose()
            throw .gone
        }
        if take("garbage_answer") != nil {
            try connection.send("\u{1}\u{2}SSH-2.0-not-http\r\n\r\n")
            return false
        }
        if take("interim") != nil {
            try connection.send("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")
        }
        if take("two_answers") != nil {
            try connection.send(
                response, to: request, keepAlive: keepAlive,
                excess: "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nX-Second: yes\r\n\r\nsmuggled")
            return keepAlive
        }
        if take("reset_mid_body") != nil {
            try sendHalf(response, keepAlive: keepAlive)
            // The half must be on its way before the reset discards what is still queued here.
            Moment.wait(milliseconds: 100)
            connection.resetOnClose()
            throw .gone
        }
        if take("truncate_body") != nil {
            try sendHalf(response, keepAlive: keepAlive)
            return false
        }
        if let fault = take("huge_head") {
            let line = "X-Filler: " + String(repeating: "f", count: 1_000) + "\r\n"
            let filler = String(repeating: line, count: max(1, (fault.number ?? 1_048_576) / line.utf8.count))
            try connection.send(Self.start + filler + "Content-Length: 2\r\n\r\nok")
            return false
        }
        if let broken = Self.broken.first(where: { take($0.fault) != nil }) {
            try connection.send(broken.octets)
            return false
        }
        try connection.send(response, to: request, keepAlive: keepAlive)
        return true
    }

    private func sendHalf(_ response: Response, keepAlive: Bool) throws(WireFault) {
        try connection.send(connection.head(of: response, to: request, keepAlive: keepAlive))
        let half = max(1, response.payload.length / 2)
        if case .pattern(_, chunked: true) = response.payload, request.minorVersion == 1 {
            try connection.send(String(half, radix: 16) + "\r\n" + String(repeating: "x", count: half) + "\r\n")
        } else {
            try connection.send([UInt8](repeating: 0x78, count: half))
        }
    }

    private static let start = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"

    private static let broken: [(fault: String, octets: String)] = [
        ("folded_answer", start + "X-Folded: one\r\n two\r\nContent-Length: 2\r\n\r\nok"),
        ("bare_lf_answer", "HTTP/1.1 200 OK\nX-Loose: a\rb\nContent-Length: 2\n\nok"),
        ("length_and_chunked", start + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
        ("two_lengths", start + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!"),
        ("bad_chunk", start + "Transfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n0\r\n\r\n"),
    ]
}
