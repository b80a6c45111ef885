import Audit
import Configuration
import DataPath
import Gateway
import Telemetry
import World

/// How programs come to the audit log of a configuration.
enum AuditPlace {
    /// The trail of a gateway; nil without `audit`.
    /// - Parameter version: of the program, for the first record.
    /// - Throws: where the log has no key, or a secret cannot be had: a gateway that is to be audited does not serve without.
    static func trail(_ configuration: Configuration, _ log: LogThread, version: String) throws(GatewayFault)
        -> AuditTrail?
    {
        guard let audit = configuration.audit else { return nil }
        let key = try subjectKey(audit)
        do throws(AuditFault) {
            return try AuditTrail(
                AuditFiles(audit.path), subjectKey: key, events: log.events, time: SystemTime(), routes: log.routes,
                opening: [AuditField(.version, .name(version))])
        } catch { throw GatewayFault("audit: \(error)") }
    }

    /// An operator's act where no gateway runs: one record, written at once. What cannot be written is said; the act is done.
    static func note(_ act: AuditAct, _ fields: [AuditField], _ configuration: Configuration?) {
        guard let audit = configuration?.audit else { return }
        let files = AuditFiles(audit.path)
        var patience = 100
        while true {
            do throws(AuditFault) {
                let time = UInt64(max(SystemTime().wallNanoseconds(), 0))
                _ = try files.append { _ in [AuditRecord(time: time, act: act, fields: fields)] }
                return
            } catch {
                guard error.kind == .busy, patience > 0 else {
                    return ConfigurationAccess.complain("cardea: done, but not in the audit log: \(error)")
                }
                patience -= 1
                SystemTime().pause(milliseconds: 20)
            }
        }
    }

    private static func subjectKey(_ audit: AuditLog) throws(GatewayFault) -> SubjectKey? {
        guard let reference = audit.subjectKey else { return nil }
        let secret: SecretBytes
        do throws(SecretFault) {
            secret = try readSecret(reference, environment: ConfigurationAccess.environment)
        } catch { throw GatewayFault("audit.subject_key: \(error)") }
        guard let key = secret.withBytes({ SubjectKey($0) }) else {
            throw GatewayFault(
                "audit.subject_key: \(reference): it has fewer than \(SubjectKey.least) characters, which can be guessed"
            )
        }
        return key
    }
}
