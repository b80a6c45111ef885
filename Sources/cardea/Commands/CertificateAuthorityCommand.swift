import ArgumentParser
import Glibc
import TLS
import World

/// `cardea ca`: the authority behind interception.
struct CertificateAuthorityCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ca", abstract: "Makes the authority that signs for intercepted hosts.",
        subcommands: [Initialize.self])

    struct Initialize: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "init", abstract: "Makes an authority for the named hosts only, and writes it to two files.",
            discussion: """
                OUT.pem holds certificate and private key and goes into a listener's intercept.ca; OUT.crt is the certificate alone, for the
                trust stores of the callers. The certificate says for which hosts it may speak, so that nobody can use the key for others.
                """)

        @Option(
            name: .long, parsing: .upToNextOption,
            help: "Hosts it may speak for: names, *.example.com and all below it, addresses.")
        var hosts: [String] = []

        @Option(name: .long, help: "Days that it lives.")
        var days = 365

        @Option(name: .long, help: "Path of the two files, without .pem and .crt.", completion: .file())
        var out = "cardea-ca"

        @Option(name: .long, help: "Name that people read in their trust stores, at most 64 bytes.")
        var name = "Cardea interception authority"

        @Flag(name: .long, help: "Prints the result as JSON.")
        var json = false

        func run() throws {
            let hosts = hosts.flatMap { $0.split(separator: ",").map(String.init) }
                // An IPv6 address as it stands in the configuration and in URLs.
                .map { $0.hasPrefix("[") && $0.hasSuffix("]") ? String($0.dropFirst().dropLast()) : $0 }
            guard !hosts.isEmpty else { throw ValidationError("name at least one host: --hosts api.example.com") }
            guard (1...3650).contains(days) else { throw ValidationError("--days is between 1 and 3650") }
            let made: (certificate: [UInt8], pair: [UInt8])
            do {
                made = try CertificateMint.makeAuthority(
                    name: name, hosts: hosts, days: days, now: SystemTime().wallSeconds())
            } catch {
                throw ExitCode(ExitStatus.configuration, saying: "\(error)")
            }
            // The key first: a certificate whose key could not be written would be of use to nobody.
            try write(made.pair, to: "\(out).pem", mode: 0o600)
            do {
                try write(made.certificate, to: "\(out).crt", mode: 0o644)
            } catch {
                // Ours, made a moment ago; left behind it would stand in the way of the next attempt.
                unlink("\(out).pem")
                throw error
            }
            if json {
                print(#"{"pair":"\#(out).pem","certificate":"\#(out).crt"}"#)
            } else {
                print("\(out).pem: certificate and key; name it in intercept.ca and keep it secret")
                print("\(out).crt: certificate alone; install it where callers look for authorities")
            }
        }

        private func write(_ bytes: [UInt8], to path: String, mode: mode_t) throws {
            // Never over something that is there: it may be the authority that callers trust.
            let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)
            guard descriptor >= 0 else {
                let reason =
                    errno == EEXIST ? "is there already; choose another --out" : String(cString: strerror(errno))
                throw ExitCode(ExitStatus.configuration, saying: "\(path): \(reason)")
            }
            defer { close(descriptor) }
            guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count, fsync(descriptor) == 0 else {
                unlink(path)
                throw ExitCode(ExitStatus.configuration, saying: "\(path): \(String(cString: strerror(errno)))")
            }
        }
    }
}
