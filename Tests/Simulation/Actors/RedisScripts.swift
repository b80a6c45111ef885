import CLua

/// Runs the gateway's own scripts by the interpreter that the server has: Lua 5.1. Values pass between the two as the server's manual says
/// (EVAL, conversion of types).
final class RedisScripts {
    typealias Call = (_ words: [[UInt8]]) -> RedisData.Reply

    private var state: OpaquePointer?
    private var call: Call = { _ in .null }

    init() {
        state = simulation_lua_open(
            { state in
                guard let state, let place = simulation_lua_place(state) else { return 0 }
                let scripts = Unmanaged<RedisScripts>.fromOpaque(place).takeUnretainedValue()
                return scripts.called(state)
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { lua_close(state) }

    /// - Parameter call: what `redis.call` does.
    func run(_ script: [UInt8], keys: [[UInt8]], arguments: [[UInt8]], call: @escaping Call) -> RedisData.Reply {
        self.call = call
        defer { lua_settop(state, 0) }
        push(keys)
        push(arguments)
        let status = script.withUnsafeBytes { bytes in
            simulation_lua_run(state, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
        }
        guard status == 0 else {
            let words = String(decoding: text(-1), as: UTF8.self)
            return .error(words == RedisServer.isReplica ? words : "ERR \(words)")
        }
        return value(lua_gettop(state))
    }

    private func push(_ words: [[UInt8]]) {
        simulation_lua_table(state)
        for (index, word) in words.enumerated() {
            pushText(word)
            lua_rawseti(state, -2, Int32(index + 1))
        }
    }

    private func pushText(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { lua_pushlstring(state, $0.baseAddress?.assumingMemoryBound(to: CChar.self), $0.count) }
    }

    private func text(_ index: Int32) -> [UInt8] {
        var length = 0
        guard let bytes = simulation_lua_text(state, index, &length) else { return [] }
        return Array(UnsafeRawBufferPointer(start: bytes, count: length))
    }

    /// `redis.call` of a script.
    private func called(_ state: OpaquePointer) -> Int32 {
        let count = lua_gettop(state)
        let words = count == 0 ? [] : (1...count).map { text($0) }
        switch call(words) {
        case .error(let words):
            pushText(Array(words.utf8))
            return lua_error(state)
        case let reply: push(reply)
        }
        return 1
    }

    private func push(_ reply: RedisData.Reply) {
        switch reply {
        case .number(let number): lua_pushnumber(state, Double(number))
        case .text(let bytes): pushText(bytes)
        case .null: lua_pushboolean(state, 0)
        case .status(let words), .error(let words):
            simulation_lua_table(state)
            pushText(Array(words.utf8))
            lua_setfield(state, -2, "ok")
        case .list(let items):
            simulation_lua_table(state)
            for (index, item) in items.enumerated() {
                push(item)
                lua_rawseti(state, -2, Int32(index + 1))
            }
        }
    }

    /// A script's value. A table ends at its first nil.
    private func value(_ index: Int32) -> RedisData.Reply {
        switch lua_type(state, index) {
        case LUA_TNUMBER: return .number(Int64(lua_tonumber(state, index)))
        case LUA_TSTRING: return .text(text(index))
        case LUA_TBOOLEAN: return lua_toboolean(state, index) == 1 ? .number(1) : .null
        case LUA_TTABLE:
            var items: [RedisData.Reply] = []
            while true {
                lua_rawgeti(state, index, Int32(items.count + 1))
                let top = lua_gettop(state)
                let isEnd = lua_type(state, top) == LUA_TNIL
                if !isEnd { items.append(value(top)) }
                simulation_lua_pop(state, 1)
                if isEnd { return .list(items) }
            }
        default: return .null
        }
    }
}
