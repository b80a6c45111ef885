internal import Keeping
internal import Telemetry

/// Moments, as Prometheus' conventions have them: the time since or until a moment is computed by whoever asks, also while nobody scrapes.
extension Scrape {
    mutating func writeDates(_ facts: SiteFacts) {
        let now = facts.wallTime
        each(.tokenIssuedAt) { $0.age.map { now - seconds($0) } }
        each(.tokenExpiresAt) { $0.expiresIn.map { now + seconds($0) } }
        each(.loginExpiresAt) { $0.status.login?.expiresIn.map { now + seconds($0) } }
        write(facts.status.certificateValidities)
        let configuration = facts.status.configuration
        one(.reloadSuccessful, configuration.refusal == nil ? 1 : 0)
        one(.restartNeeded, configuration.needsRestart.isEmpty ? 0 : 1)
    }

    private mutating func write(_ validities: [CertificateValidityStatus]) {
        guard !validities.isEmpty else { return }
        let labelled = validities.map { validity in
            let labels = [("use", validity.use.rawValue), ("file", validity.file), ("subject", validity.subject)]
            return (labels: labels, validity: validity)
        }
        family(.certificateNotBefore, labelled.map { ($0.labels, Double($0.validity.notBefore)) })
        family(.certificateNotAfter, labelled.map { ($0.labels, Double($0.validity.notAfter)) })
    }
}
