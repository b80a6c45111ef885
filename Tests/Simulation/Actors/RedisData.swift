/// The keys of a Redis server, as far as the fleet's scripts and commands need them. Times are milliseconds.
struct RedisData {
    enum Value {
        case text([UInt8])
        /// In the order in which fields were set.
        case hash([(field: [UInt8], value: [UInt8])])
    }

    private var keys: [[UInt8]: (value: Value, end: Int64?)] = [:]

    var count: Int { keys.count }

    /// Puts former values back, as somebody may who writes there and can open none. Where a version stands beside one, it is made a high one.
    /// - Parameters:
    ///   - version: above all that gateways have.
    ///   - old: what a gateway that knew only the old format would have written for what is sealed under a key; whoever writes there has
    ///     kept it. Nil for what is no session.
    mutating func replay(_ former: RedisData, version: Int, old: (_ key: [UInt8], _ sealed: [UInt8]) -> [UInt8]?) {
        for (key, entry) in former.keys {
            guard case .hash(var fields) = entry.value, let now = keys[key], case .hash = now.value else { continue }
            if let sealed = fields.first(where: { $0.field == Array("sealed".utf8) })?.value,
                let value = old(key, sealed)
            {
                fields = [(Array("version".utf8), Array("\(version)".utf8)), (Array("value".utf8), value)]
                // The newest session is left as it is: to lose it would be another fault.
                if case .hash(let newest) = now.value { fields += newest.filter { $0.field == Array("sealed".utf8) } }
            } else if let index = fields.firstIndex(where: { $0.field == Array("version".utf8) }) {
                fields[index].value = Array("\(version)".utf8)
                fields.removeAll { $0.field == Array("sealed".utf8) }
            }
            keys[key] = (.hash(fields), now.end)
        }
    }
    mutating func wipe() { keys = [:] }

    /// The answer of a command.
    enum Reply {
        case number(Int64)
        case text([UInt8])
        case null
        case status(String)
        case list([Reply])
        case error(String)
    }

    /// - Parameters:
    ///   - words: the command's name in any case, and its arguments.
    ///   - publish: tells subscribers; gives how many heard it.
    mutating func run(_ words: [[UInt8]], at now: Int64, publish: ([UInt8], [UInt8]) -> Int64) -> Reply {
        guard let name = words.first else { return .error("ERR no command") }
        let arguments = Array(words.dropFirst())
        switch (String(decoding: name, as: UTF8.self).uppercased(), arguments.count) {
        case ("PUBLISH", 2): return .number(publish(arguments[0], arguments[1]))
        case ("GET", 1): return text(arguments[0], now).map { .text($0) } ?? .null
        case ("SET", 2...): return set(arguments, now)
        case ("DEL", 1...): return .number(arguments.reduce(0) { $0 + (delete($1, now) ? 1 : 0) })
        case ("EXISTS", 1): return .number(find(arguments[0], now) == nil ? 0 : 1)
        case ("INCR", 1):
            let next = (text(arguments[0], now).flatMap { Int64(String(decoding: $0, as: UTF8.self)) } ?? 0) + 1
            keys[arguments[0]] = (.text(Array("\(next)".utf8)), keys[arguments[0]]?.end)
            return .number(next)
        case ("EXPIRE", 2): return expire(arguments[0], Self.number(arguments[1]) * 1000, now)
        case ("PEXPIRE", 2): return expire(arguments[0], Self.number(arguments[1]), now)
        case ("PTTL", 1):
            guard let entry = find(arguments[0], now) else { return .number(-2) }
            return .number(entry.end.map { $0 - now } ?? -1)
        case ("HGET", 2):
            return hash(arguments[0], now).first { $0.field == arguments[1] }.map { .text($0.value) } ?? .null
        case ("HSET", 3): return put(arguments[0], arguments[1], arguments[2], now)
        case ("HDEL", 2):
            let fields = hash(arguments[0], now)
            let left = fields.filter { $0.field != arguments[1] }
            if left.isEmpty { keys[arguments[0]] = nil } else { keys[arguments[0]]?.value = .hash(left) }
            return .number(Int64(fields.count - left.count))
        case ("HKEYS", 1): return .list(hash(arguments[0], now).map { .text($0.field) })
        default: return .error("ERR unknown command '\(String(decoding: name, as: UTF8.self))'")
        }
    }

    private static func number(_ text: [UInt8]) -> Int64 { Int64(String(decoding: text, as: UTF8.self)) ?? 0 }

    private mutating func find(_ key: [UInt8], _ now: Int64) -> (value: Value, end: Int64?)? {
        guard let entry = keys[key] else { return nil }
        if let end = entry.end, end <= now {
            keys[key] = nil
            return nil
        }
        return entry
    }

    private mutating func text(_ key: [UInt8], _ now: Int64) -> [UInt8]? {
        if case .text(let text) = find(key, now)?.value { text } else { nil }
    }

    private mutating func hash(_ key: [UInt8], _ now: Int64) -> [(field: [UInt8], value: [UInt8])] {
        if case .hash(let fields) = find(key, now)?.value { fields } else { [] }
    }

    private mutating func delete(_ key: [UInt8], _ now: Int64) -> Bool {
        let isThere = find(key, now) != nil
        keys[key] = nil
        return isThere
    }

    private mutating func expire(_ key: [UInt8], _ milliseconds: Int64, _ now: Int64) -> Reply {
        guard find(key, now) != nil else { return .number(0) }
        keys[key]?.end = now + milliseconds
        return .number(1)
    }

    private mutating func put(_ key: [UInt8], _ field: [UInt8], _ value: [UInt8], _ now: Int64) -> Reply {
        var fields = hash(key, now)
        if let index = fields.firstIndex(where: { $0.field == field }) {
            fields[index].value = value
            keys[key]?.value = .hash(fields)
            return .number(0)
        }
        fields.append((field, value))
        keys[key] = (.hash(fields), keys[key]?.end)
        return .number(1)
    }

    private mutating func set(_ arguments: [[UInt8]], _ now: Int64) -> Reply {
        var end: Int64?
        var isNew = false
        var index = 2
        while index < arguments.count {
            switch String(decoding: arguments[index], as: UTF8.self).uppercased() {
            case "NX": isNew = true
            case "PX" where index + 1 < arguments.count:
                index += 1
                end = now + Self.number(arguments[index])
            default: return .error("ERR syntax error")
            }
            index += 1
        }
        if isNew, find(arguments[0], now) != nil { return .null }
        keys[arguments[0]] = (.text(arguments[1]), end)
        return .status("OK")
    }
}
