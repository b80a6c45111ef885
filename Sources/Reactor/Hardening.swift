internal import CLinux
internal import Glibc

/// What the process does to itself before it holds a secret.
public enum Hardening {
    /// A step that the kernel refused; all of them are best effort, and the caller says so in the log.
    public struct Refusal: Sendable, Equatable {
        /// A fixed word for the step.
        public let step: StaticString
        public let errno: Int32

        public static func == (left: Refusal, right: Refusal) -> Bool {
            left.step.description == right.step.description && left.errno == right.errno
        }
    }

    /// All steps that every process of ours takes, before its threads start.
    /// - Returns: the steps that were refused.
    public static func apply() -> [Refusal] {
        ignoreBrokenPipes()
        return [forbidDumps(), forbidCoreFiles(), forbidNewPrivileges(), raiseDescriptorLimit()].compactMap(\.self)
    }

    // MARK: - Steps

    /// Other processes of our user can neither attach nor read `/proc/self/mem`, and a crash leaves no memory image.
    public static func forbidDumps() -> Refusal? {
        refusal("dumpable", cardea_forbid_dumps())
    }

    /// A second line: `core_pattern` with a pipe ignores the limit, which is why `forbidDumps` comes first.
    public static func forbidCoreFiles() -> Refusal? {
        refusal("core", cardea_set_core_limit(0))
    }

    /// No setuid program that we start gains anything. Needed before a sandbox, too.
    public static func forbidNewPrivileges() -> Refusal? {
        refusal("no_new_privs", cardea_forbid_new_privileges())
    }

    /// A peer that goes away is an error of the write, not a signal.
    public static func ignoreBrokenPipes() { signal(SIGPIPE, SIG_IGN) }

    /// Raises the soft limit of descriptors to the hard one.
    public static func raiseDescriptorLimit() -> Refusal? {
        refusal("descriptors", cardea_raise_descriptor_limit())
    }

    /// Descriptors that this process may have open.
    public static var descriptorLimit: Int { Int(clamping: cardea_descriptor_limit()) }

    // MARK: - Secret memory

    /// Keeps memory out of swap and out of core files, as far as the limits allow.
    /// - Returns: whether it is locked. The range is widened to whole pages.
    @discardableResult
    public static func protect(_ memory: UnsafeRawBufferPointer) -> Bool {
        guard let range = pages(memory) else { return true }
        _ = cardea_exclude_from_dumps(range.start, range.length)
        return mlock(range.start, range.length) == 0
    }

    /// Wipes memory that `protect` was given, and lets its pages go. The pages must hold nothing else that is protected: locks
    /// do not add up.
    public static func wipe(_ memory: UnsafeMutableRawBufferPointer) {
        guard let start = memory.baseAddress else { return }
        explicit_bzero(start, memory.count)
        guard let range = pages(UnsafeRawBufferPointer(memory)) else { return }
        munlock(range.start, range.length)
    }

    private static func pages(_ memory: UnsafeRawBufferPointer) -> (start: UnsafeMutableRawPointer, length: Int)? {
        guard let base = memory.baseAddress, memory.count > 0 else { return nil }
        let page = max(Int(sysconf(Int32(_SC_PAGESIZE))), 4096)
        let before = Int(bitPattern: base) % page
        let length = (before + memory.count + page - 1) / page * page
        return (UnsafeMutableRawPointer(mutating: base) - before, length)
    }

    private static func refusal(_ step: StaticString, _ status: Int32) -> Refusal? {
        status == 0 ? nil : Refusal(step: step, errno: -status)
    }
}
