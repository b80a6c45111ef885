internal import CLinux
internal import Glibc

/// The restrictions that the process puts on itself before it holds a secret.
public enum Hardening {
    /// A step that the kernel refused; all of them are best effort, and the caller says so in the log.
    public struct Refusal: Sendable, Equatable {
        /// A fixed word for the step.
        public let step: String
        /// The error number of the step.
        public let errno: Int32
    }

    /// All steps that every process of ours takes, before its threads start.
    /// - Returns: the steps that were refused.
    public static func apply() -> [Refusal] {
        // A peer that goes away is an error of the write, not a signal.
        signal(SIGPIPE, SIG_IGN)
        // Where Swift's runtime has found its helper for backtraces, a crash would print registers and memory, and the process would wait
        // for the helper (docs/security/crashes.md#backtraces).
        for crash in [SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGBUS, SIGSEGV, SIGQUIT] { signal(crash, SIG_DFL) }
        return [
            // Other processes of our user can neither attach nor read `/proc/self/mem`, and a crash leaves no memory image.
            refusal("dumpable", cardea_forbid_dumps()),
            // A second line: `core_pattern` with a pipe ignores the limit, which is why the step before comes first.
            refusal("core", cardea_set_core_limit(0)),
            // No setuid program that we start gains anything. Needed before a sandbox, too.
            refusal("no_new_privs", cardea_forbid_new_privileges()),
            // Raises the soft limit of descriptors to the hard one.
            refusal("descriptors", cardea_raise_descriptor_limit()),
        ].compactMap(\.self)
    }

    /// Descriptors that this process may have open.
    public static var descriptorLimit: Int { Int(clamping: cardea_descriptor_limit()) }

    private static func refusal(_ step: String, _ status: Int32) -> Refusal? {
        status == 0 ? nil : Refusal(step: step, errno: -status)
    }
}
