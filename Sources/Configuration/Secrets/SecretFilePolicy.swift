/// `secret_files`: what a secret file that others can read leads to (docs/security/guarantees.md#invariant-7).
public enum SecretFilePolicy: String, Sendable, CaseIterable { case warn, strict }
