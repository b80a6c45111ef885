internal import Configuration
internal import Glibc
internal import Numbers

/// The kernel's figures for this process. A figure that cannot be read, as in a sandbox without /proc, is nil and left out.
struct ProcessFacts: Sendable, Equatable {
    /// User and system time, seconds.
    var cpuSeconds: Double?
    /// Seconds since 1970.
    var startTime: Double?
    var threads: Int?
    /// Bytes.
    var residentMemory: UInt64?
    /// Bytes of it that belong to no file: what the process itself holds.
    var residentAnonymous: UInt64?
    var virtualMemory: UInt64?
    var openDescriptors: Int?
    var maximumDescriptors: UInt64?
}

extension ProcessFacts {
    /// - Parameters:
    ///   - stat: /proc/self/stat (proc_pid_stat(5)).
    ///   - status: /proc/self/status.
    ///   - bootTime: seconds since 1970.
    ///   - ticks: clock ticks a second.
    init(stat: String, status: String, bootTime: UInt64?, ticks: Int) {
        // The second field is the command in parentheses and may hold blanks and parentheses itself.
        if ticks > 0, let end = stat.lastIndex(of: ")") {
            let fields = stat[stat.index(after: end)...].split { $0 == " " || $0 == "\n" }
            // Numbered from 1 in the manual; here the third is the first.
            func field(_ number: Int) -> UInt64? {
                number - 3 < fields.count ? ReceivedNumber(fields[number - 3])?.within(0...UInt64.max) : nil
            }
            if let user = field(14), let system = field(15) { cpuSeconds = Double(user &+ system) / Double(ticks) }
            threads = field(20).flatMap { Int(exactly: $0) }
            if let started = field(22), let bootTime { startTime = Double(bootTime) + Double(started) / Double(ticks) }
        }
        for line in status.split(separator: "\n") {
            let words = line.split { $0 == " " || $0 == "\t" || $0 == ":" }
            guard words.count == 3, words[2] == "kB", let value = ReceivedNumber(words[1])?.within(0...UInt64.max >> 10)
            else {
                continue
            }
            switch words[0] {
            case "VmRSS": residentMemory = value << 10
            case "RssAnon": residentAnonymous = value << 10
            case "VmSize": virtualMemory = value << 10
            default: break
            }
        }
    }

    /// `btime` of /proc/stat.
    static func bootTime(in stat: String) -> UInt64? {
        for line in stat.split(separator: "\n") where line.hasPrefix("btime ") {
            return ReceivedNumber(line.dropFirst(6))?.within(0...UInt64.max)
        }
        return nil
    }
}

/// Reads the facts. The files are the kernel's memory, so reading them on a loop waits for no device.
struct ProcessReader: Sendable {
    private let bootTime: UInt64?
    private let ticks: Int

    init() {
        // Once: with many processors this file is long, and what is wanted of it never changes.
        bootTime = ProcessFacts.bootTime(in: Self.text(of: "/proc/stat", upTo: 1 << 20))
        ticks = sysconf(Int32(_SC_CLK_TCK))
    }

    func read() -> ProcessFacts {
        var facts = ProcessFacts(
            stat: Self.text(of: "/proc/self/stat", upTo: 4096),
            status: Self.text(of: "/proc/self/status", upTo: 16_384),
            bootTime: bootTime, ticks: ticks)
        facts.openDescriptors = Self.openDescriptors()
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur != .max {
            facts.maximumDescriptors = UInt64(limit.rlim_cur)
        }
        return facts
    }

    private static func openDescriptors() -> Int? {
        guard let directory = opendir("/proc/self/fd") else { return nil }
        defer { closedir(directory) }
        var count = 0
        while readdir(directory) != nil { count += 1 }
        // Not counted: `.`, `..` and the descriptor that reads the directory.
        return max(count - 3, 0)
    }

    private static func text(of path: String, upTo limit: Int) -> String {
        (try? FileReader.read(path, bound: limit)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}
