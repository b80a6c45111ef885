internal import CLinux
internal import Glibc
internal import Numbers

/// How many processors this process may use: the smallest of the affinity mask and the limits of its cgroup and those above.
public enum CPULimit {
    /// Data loops at most, however many processors there are: past that, memory and wake-ups grow and the gateway is no faster.
    static let maximumLoops = 4

    /// Loops for this machine: the limit rounded up, 1 … 4.
    public static func loops() -> Int {
        loops(processors: affinity(), quotas: cgroupQuotas())
    }

    // MARK: - Pure

    /// - Parameters:
    ///   - processors: that the scheduler may use.
    ///   - quotas: processors' worth of time, in thousandths, of each cgroup that limits us.
    static func loops(processors: Int, quotas: [Int]) -> Int {
        let limit = quotas.map { ($0 + 999) / 1000 }.min() ?? processors
        return min(max(min(limit, processors), 1), maximumLoops)
    }

    /// The text of `cpu.max` (cgroup v2): "quota period" in microseconds, or "max period".
    /// - Returns: thousandths of a processor; nil for no limit or a text of another form.
    static func quota(v2 text: String) -> Int? {
        let words = text.split(whereSeparator: \.isWhitespace)
        guard words.count == 2, let quota = ReceivedNumber(words[0]), let period = ReceivedNumber(words[1]) else {
            return nil
        }
        return quota1000(quota, period)
    }

    /// The texts of `cpu.cfs_quota_us` and `cpu.cfs_period_us` (cgroup v1); a quota of −1 is no limit.
    static func quota(v1 quota: String, period: String) -> Int? {
        guard let quota = ReceivedNumber(trimmed(quota)), let period = ReceivedNumber(trimmed(period)) else {
            return nil
        }
        return quota1000(quota, period)
    }

    private static func quota1000(_ quota: ReceivedNumber, _ period: ReceivedNumber) -> Int? {
        guard let quota = quota.within(1...Int.max / 2000), let period = period.within(1...1_000_000_000) else {
            return nil
        }
        // Rounded up here as well: a hair over one processor is two loops.
        return (quota * 1000 + period - 1) / period
    }

    /// The cgroup paths in `/proc/self/cgroup`: of v2 (the line with hierarchy 0) and of v1's `cpu` controller.
    static func cgroupPaths(_ text: String) -> (v2: String?, v1: String?) {
        var v2: String?
        var v1: String?
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3, parts[2].hasPrefix("/"), !parts[2].contains("/..") else { continue }
            if parts[0] == "0", parts[1].isEmpty { v2 = String(parts[2]) }
            if parts[1].split(separator: ",").contains("cpu") { v1 = String(parts[2]) }
        }
        return (v2, v1)
    }

    /// A path and all above it, down to the root: each of them limits us. At most 64.
    static func ancestry(_ path: String) -> [String] {
        var rest = path.split(separator: "/").prefix(63)
        var paths: [String] = []
        while !rest.isEmpty {
            paths.append("/" + rest.joined(separator: "/"))
            rest.removeLast()
        }
        return paths + [""]
    }

    private static func trimmed(_ text: String) -> Substring {
        text.split(whereSeparator: \.isWhitespace).first ?? ""
    }

    // MARK: - The machine

    private static func affinity() -> Int {
        let processors = Int(cardea_affinity())
        return processors > 0 ? processors : max(Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))), 1)
    }

    private static func cgroupQuotas() -> [Int] {
        let paths = cgroupPaths(read("/proc/self/cgroup") ?? "")
        var quotas: [Int] = []
        // In a container the path is often that of the host, and the root of the mount is ours: the root is asked in any case.
        for path in ancestry(paths.v2 ?? "/") {
            for root in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
                if let quota = read(root + path + "/cpu.max").flatMap(quota(v2:)) { quotas.append(quota) }
            }
        }
        for path in ancestry(paths.v1 ?? "/") {
            for root in ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"] {
                if let limit = read(root + path + "/cpu.cfs_quota_us"),
                    let period = read(root + path + "/cpu.cfs_period_us"),
                    let quota = quota(v1: limit, period: period)
                {
                    quotas.append(quota)
                }
            }
        }
        return quotas
    }

    /// The first 4 KiB of a small file of the kernel.
    private static func read(_ path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { _ = Glibc.close(file) }
        return withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { bytes in
            let count = Glibc.read(file, bytes.baseAddress, bytes.count)
            guard count >= 0 else { return nil }
            return String(decoding: UnsafeRawBufferPointer(rebasing: bytes[..<count]), as: UTF8.self)
        }
    }
}
