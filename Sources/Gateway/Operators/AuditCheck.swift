internal import Audit
public import Configuration

/// The check of an audit log: nothing is made, changed or locked.
extension Configuration {
    /// An error where the gateway would refuse to start for want of a key; a warning where this user cannot tell.
    public func checkAudit() -> [Diagnostic] {
        guard let audit else { return [] }
        do throws(AuditFault) {
            _ = try AuditFiles(audit.path).head()
            return []
        } catch {
            return [Diagnostic(error.kind == .disk ? .warning : .error, "audit: \(error)", at: auditMark)]
        }
    }
}
