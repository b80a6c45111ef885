public import Configuration
internal import TLS
internal import World

extension Configuration {
    /// Reads every client certificate once and gives a warning for each that cannot be used, or that ends soon. Blocks.
    public func checkClientKeys(environment: (String) -> String?) -> [Diagnostic] {
        let now = Platform.machine.time.wallSeconds()
        var diagnostics: [Diagnostic] = []
        for (owner, mark, files) in clientKeys {
            let mark = places.mark(of: files.certificate, in: mark)
            let what = "the certificate of \(owner)"
            do {
                let certificate = try ClientCertificate(
                    reading: files, environment: environment, policy: secretFiles)
                let place = "\(what) (\(files.certificate))"
                switch ExpiryState(of: certificate.validity, at: now) {
                case .good: break
                case .notYet: diagnostics.append(Diagnostic(.warning, "\(place) is not valid yet", at: mark))
                case .over: diagnostics.append(Diagnostic(.warning, "\(place) has ended; renew it", at: mark))
                case .ending:
                    let hours = (certificate.validity.last - now) / 3600
                    let left = hours < 72 ? "\(hours) hours" : "\(hours / 24) days"
                    diagnostics.append(Diagnostic(.warning, "\(place) ends in \(left); renew it", at: mark))
                }
            } catch {
                diagnostics.append(Diagnostic(.warning, "\(what) cannot be used: \(error)", at: mark))
            }
        }
        return diagnostics.sorted()
    }
}
