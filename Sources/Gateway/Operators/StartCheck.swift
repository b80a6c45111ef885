public import Configuration
internal import DataPath
internal import Glibc
internal import Handshakes
internal import HotCache
internal import TLS
internal import World

/// The diagnostics with which `check` tells what `run` would refuse, or serve only in part.
extension Configuration {
    /// Goes the way of a start as far as it leaves no trace: every certificate, key and authority is read, and everything is compiled.
    /// An error for what the gateway would refuse and for what no reader could use; a warning for what it serves without, and for what this
    /// user cannot read, who need not be the gateway's. Blocks.
    public func checkStart(environment: @escaping @Sendable (String) -> String?) -> [Diagnostic] {
        var diagnostics = checkCertificates(environment: environment) + checkAuthorities() + checkTickets()
        // Compiling would report the same faults once more, and without their places.
        guard !diagnostics.contains(where: { $0.severity == .error }), !hasUnreadableCertificates(environment) else {
            return diagnostics
        }
        do throws(GatewayFault) {
            _ = try CompiledConfiguration(
                self, environment: environment, persists: store.path != nil,
                cache: HotCache(readers: 1, slots: 4096, byteLimit: 1 << 20), loops: 1)
        } catch {
            let file = Mark(file: routes.first?.mark.file ?? identities.first?.mark.file ?? "environment")
            diagnostics.append(Diagnostic(.error, "\(error)", at: file))
        }
        return diagnostics
    }

    /// The library may be there where the gateway runs.
    private func checkTickets() -> [Diagnostic] {
        let proxies = proxiesWithTickets
        guard !proxies.isEmpty, let reason = ProxyNegotiate.missingLibrary else { return [] }
        return proxies.map { Diagnostic(.warning, "'proxy' of \($0.owner): \(reason)", at: $0.mark) }
    }

    // MARK: - Listeners

    private func compiler(_ environment: @escaping @Sendable (String) -> String?) -> ListenerCompiler {
        ListenerCompiler(
            configuration: self, listeners: [:], environment: environment, edition: Edition(number: 0), earlier: [],
            time: Platform.machine.time)
    }

    private func hasUnreadableCertificates(_ environment: @escaping @Sendable (String) -> String?) -> Bool {
        let compiler = compiler(environment)
        return listeners.contains { listener in
            (try? compiler.forward(of: listener, tickets: TicketKeys())) == nil
                || compiler.sources(of: listener).contains { (try? $0.read()) == nil }
        }
    }

    private func checkCertificates(environment: @escaping @Sendable (String) -> String?) -> [Diagnostic] {
        let compiler = compiler(environment)
        let now = Platform.machine.time.wallSeconds()
        var diagnostics: [Diagnostic] = []
        for listener in listeners {
            func tell(_ fault: any Error, of path: String) {
                let isOurs = (fault as? GatewayFault)?.isOfThisUser ?? false
                diagnostics.append(
                    Diagnostic(isOurs ? .warning : .error, "\(fault)", at: places.mark(of: path, in: listener.mark)))
            }
            // `checkSecrets` reports a key that cannot be read.
            func isReadable(_ key: SecretReference) -> Bool {
                (try? readSecret(key, environment: environment, policy: secretFiles)) != nil
            }
            if let path = listener.intercept?.ca, isReadable(.file(path: path)) {
                do { _ = try compiler.forward(of: listener, tickets: TicketKeys()) } catch { tell(error, of: path) }
            }
            for (files, source) in zip(listener.tls, compiler.sources(of: listener)) where isReadable(files.key) {
                let file = files.certificate
                func warn(_ text: String) {
                    let what = "certificate \(file) of listener '\(listener.name)'"
                    diagnostics.append(
                        Diagnostic(.warning, "\(what) \(text)", at: places.mark(of: file, in: listener.mark)))
                }
                do {
                    let identity = try source.identity(of: source.read(), tickets: TicketKeys(), now: now)
                    if now >= identity.notAfter { warn("has expired") }
                    if now < identity.notBefore { warn("is not valid yet") }
                    if let fault = identity.stapleFault { warn(": \(fault)") }
                } catch { tell(error, of: file) }
            }
        }
        return diagnostics.sorted()
    }

    // MARK: - Authorities

    private func checkAuthorities() -> [Diagnostic] {
        var sets =
            identities.map { ("identity '\($0.name)'", $0.mark, $0.network.tls) }
            + routes.map { ("route '\($0.name)'", $0.mark, $0.tls) }
        if let export = tracing?.export {
            sets.append(("tracing", Mark(file: routes.first?.mark.file ?? ""), export.network.tls))
        }
        var diagnostics: [Diagnostic] = []
        var known: [String: TrustAnchors.FileFault?] = [:]
        for (owner, mark, tls) in sets {
            for case .file(let path) in tls.authorities {
                // Thousands of routes may name one file.
                let fault = known[path] ?? TrustAnchors.fault(of: path)
                known[path] = .some(fault)
                guard let fault else { continue }
                diagnostics.append(
                    Diagnostic(
                        fault.isUnreadable ? .warning : .error, "'tls.ca' of \(owner): \(fault.reason)",
                        at: places.mark(of: path, in: mark)))
            }
        }
        return diagnostics.sorted()
    }
}
