import Glibc
import TLS
import Testing

/// Against servers that are not ours, over TCP.
@Suite struct OtherImplementationTests {
    let files: Certificates

    init() throws {
        signal(SIGPIPE, SIG_IGN)
        files = try Certificates.shared.get()
    }

    private func serve(_ options: [String]) throws -> ServerProgram {
        try ServerProgram(
            [
                "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", files.path("good.pem"), "-key",
                files.path("good.key"), "-rev",
            ] + options)
    }

    private func client(_ alpn: [String] = []) throws -> TLSClientConfiguration {
        try TLSClientConfiguration(authorities: [.file(files.path("ca.pem"))], alpn: alpn)
    }

    @Test(arguments: [("-tls1_2", TLSVersion.v1_2), ("-tls1_3", .v1_3)])
    func `s_server answers, resumes and agrees on a protocol`(option: String, version: TLSVersion) throws {
        let server = try serve([option, "-alpn", "http/1.1"])
        let configuration = try client(["h2", "http/1.1"])
        for visit in 0..<2 {
            let descriptor = dial(server.port)
            defer { close(descriptor) }
            let connection = try TLSConnection(client: configuration, serverName: "127.0.0.1", descriptor: descriptor)
            #expect(connection.shakeAlone(descriptor) == .done)
            #expect(connection.version == version && connection.negotiatedProtocol == "http/1.1")
            #expect(connection.send("abc\n") == .bytes(4))
            #expect(connection.receiveAlone(descriptor).1 == "cba\n")
            #expect(connection.resumed == (visit == 1))
            connection.shutdown()
        }
    }

    @Test func `a server of TLS 1-1 is refused, also by legacy`() throws {
        let server = try serve(["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"])
        for legacy in [false, true] {
            let descriptor = dial(server.port)
            defer { close(descriptor) }
            let configuration = try TLSClientConfiguration(
                authorities: [.file(files.path("ca.pem"))], legacy: legacy)
            let connection = try TLSConnection(client: configuration, serverName: "good.test", descriptor: descriptor)
            guard case .failed(let fault) = connection.shakeAlone(descriptor) else {
                Issue.record("spoke TLS 1.1")
                continue
            }
            let expected = fault.kind == .alert(70) || fault.kind == .protocolError
            #expect(expected, "\(fault)")
        }
    }

    @Test(arguments: [true, false])
    func `Python ends with close_notify or cuts`(notify: Bool) throws {
        let program = """
            import socket, ssl, sys
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[1], sys.argv[2])
            listener = socket.create_server(("127.0.0.1", 0))
            print("listening 127.0.0.1:%d" % listener.getsockname()[1], flush=True)
            plain, _ = listener.accept()
            stream = context.wrap_socket(plain, server_side=True)
            stream.recv(100)
            stream.sendall(b"body")
            if sys.argv[3] == "notify":
                try: stream.unwrap()
                except (OSError, ssl.SSLError): pass
            stream.close()
            """
        let server = try ServerProgram([
            "python3", "-c", program, files.path("good.pem"), files.path("good.key"), notify ? "notify" : "cut",
        ])
        let descriptor = dial(server.port)
        defer { close(descriptor) }
        let connection = try TLSConnection(client: client(), serverName: "good.test", descriptor: descriptor)
        #expect(connection.shakeAlone(descriptor) == .done)
        #expect(connection.send("request") == .bytes(7))
        #expect(connection.receiveAlone(descriptor).1 == "body")
        #expect(connection.receiveAlone(descriptor).0 == (notify ? .closed : .truncated))
        connection.shutdown()
    }
}
