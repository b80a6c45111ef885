import Glibc

// token-bench hits | eviction | fill FILE TOKENS | spill FILE TOKENS | users-fill FILE KEY TOKENS
// | users-load GATEWAY API TOKENS REQUESTS: a table on standard error, the same as JSON on standard output.

func tell(_ text: String) {
    let line = Array((text + "\n").utf8)
    _ = write(2, line, line.count)
}

/// A bench has nobody to recover for, and a table of what did not happen would be a wrong figure: it says why and fails.
func giveUp(_ why: String) -> Never {
    tell("token-bench: " + why)
    exit(70)
}

func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
}

func number(_ value: Double, _ places: Int = 1) -> String {
    var scale = 1.0
    for _ in 0..<places { scale *= 10 }
    let scaled = (value * scale).rounded() / scale
    return "\(scaled)"
}

let arguments = CommandLine.arguments
switch arguments.dropFirst().first {
case "hits":
    let rows = HitTable.run()
    tell(
        "ns a hit, \(HitTable.tokenSize)-byte token copied, \(HitTable.keys) tokens; best and median of \(HitTable.rounds) rounds"
    )
    for row in rows {
        tell(
            "  \(row.readers) reader\(row.readers == 1 ? " " : "s") \(row.writer ? "+ writer" : "        ")  "
                + padded(row.contender, 32) + padded(number(row.best), 8) + number(row.median))
    }
    let items = rows.map {
        "{\"contender\":\"\($0.contender)\",\"readers\":\($0.readers),\"writer\":\($0.writer),\"best_ns\":\(number($0.best)),\"median_ns\":\(number($0.median))}"
    }
    print(
        "{\"token_bytes\":\(HitTable.tokenSize),\"tokens\":\(HitTable.keys),\"rounds\":\(HitTable.rounds),\"rows\":[\(items.joined(separator: ","))]}"
    )
case "eviction":
    let rows = EvictionTable.run()
    tell("hit ratio, \(EvictionTable.keys) keys, room for \(EvictionTable.capacity)")
    for row in rows {
        tell("  " + padded(row.trace, 44) + "SIEVE \(number(row.ours, 4))  LRU \(number(row.leastRecentlyUsed, 4))")
    }
    let items = rows.map {
        "{\"trace\":\"\($0.trace)\",\"sieve\":\(number($0.ours, 4)),\"lru\":\(number($0.leastRecentlyUsed, 4))}"
    }
    print(
        "{\"keys\":\(EvictionTable.keys),\"capacity\":\(EvictionTable.capacity),\"rows\":[\(items.joined(separator: ","))]}"
    )
case "fill" where arguments.count == 4:
    try SpillTable.fill(arguments[2], tokens: Int(arguments[3]) ?? 0)
case "spill" where arguments.count == 4:
    let tokens = Int(arguments[3]) ?? 0
    let result = try SpillTable.run(arguments[2], tokens: tokens, requests: 1_000_000)
    tell("\(result.tokens) tokens of \(result.tokenBytes) bytes, hot cache of \(result.cacheBytes >> 20) MiB, Zipf 0.9")
    tell("  file                          \(result.fileBytes >> 20) MiB")
    tell(
        "  open, and one token looked up \(number(result.openMilliseconds)) ms, \(number(result.firstLookupMilliseconds)) ms"
    )
    tell("  hit ratio                     \(number(result.hitRatio, 4)) of \(result.requests); lost \(result.lost)")
    tell(
        "  lookup p50 p99 p99.9          \(number(result.p50)) \(number(result.p99)) \(number(result.p999)) us, of \(result.lookups)"
    )
    tell("  resident before, after        \(result.residentBefore >> 20) MiB, \(result.residentAfter >> 20) MiB")
    print(
        "{\"tokens\":\(result.tokens),\"token_bytes\":\(result.tokenBytes),\"cache_bytes\":\(result.cacheBytes),"
            + "\"file_bytes\":\(result.fileBytes),\"open_ms\":\(number(result.openMilliseconds)),"
            + "\"first_lookup_ms\":\(number(result.firstLookupMilliseconds)),\"requests\":\(result.requests),"
            + "\"hit_ratio\":\(number(result.hitRatio, 4)),\"lost\":\(result.lost),\"lookups\":\(result.lookups),"
            + "\"p50_us\":\(number(result.p50)),\"p99_us\":\(number(result.p99)),\"p999_us\":\(number(result.p999)),"
            + "\"resident_before\":\(result.residentBefore),\"resident_after\":\(result.residentAfter)}")
case "users-fill" where arguments.count == 5:
    try UserTable.fill(arguments[2], key: arguments[3], tokens: Int(arguments[4]) ?? 0)
case "users-load" where arguments.count == 6:
    let words = arguments.dropFirst(2).compactMap { Int($0) }
    guard words.count == 4 else { exit(64) }
    let result = UserTable.load(
        gateway: UInt16(clamping: words[0]), api: UInt16(clamping: words[1]), tokens: words[2], requests: words[3])
    let (lookups, all) = (result.lookups, result.all)
    print(
        "{\"requests\":\(result.requests),\"hit_ratio\":\(number(Double(result.hits) / Double(max(1, result.requests)), 4)),"
            + "\"wrong\":\(result.wrong),\"lookups\":\(lookups.count),"
            + "\"p50_us\":\(number(UserTable.quantile(lookups, 0.5))),\"p99_us\":\(number(UserTable.quantile(lookups, 0.99))),"
            + "\"p999_us\":\(number(UserTable.quantile(lookups, 0.999))),"
            + "\"request_p50_us\":\(number(UserTable.quantile(all, 0.5))),"
            + "\"request_p99_us\":\(number(UserTable.quantile(all, 0.99))),"
            + "\"per_second\":\(Int(Double(result.requests) / max(result.seconds, 1e-9)))}")
default:
    tell(
        "token-bench hits | eviction | fill FILE TOKENS | spill FILE TOKENS | users-fill FILE KEY TOKENS | users-load GATEWAY API TOKENS REQUESTS"
    )
    exit(64)
}
