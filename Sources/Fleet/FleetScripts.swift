/// What the server does in one step. Each script names its keys first; the last argument of those that tell others is the channel.
///
/// Scripts, because what is decided stands in several keys: between a look and a change from outside another gateway would come.
enum FleetScripts {
    /// KEYS: epoch, settling. ARGV: the server's run, milliseconds to settle. A run that the fleet has not met may have lost what the one
    /// before knew; until gateways have brought back what they know, nobody spends a password or a refresh token. It writes in any case: a
    /// server that takes no writes, a replica for instance, is of no use, and would else count as working until the next grant meets it.
    static let greet = """
        local before = redis.call('GET', KEYS[1])
        redis.call('SET', KEYS[1], ARGV[1])
        if before ~= ARGV[1] then
          redis.call('SET', KEYS[2], '1', 'PX', ARGV[2])
          return 1
        end
        return 0
        """

    /// Before whatever spends something: a server that was wiped while it ran has forgotten it as one that was started anew. Who notices
    /// tells the others, and nobody goes on before they have brought back what they know.
    /// - Parameters: KEYS of the epoch and of settling. The last three of ARGV are the server's run, milliseconds to settle, and the channel.
    private static func settled(epoch: Int, settling: Int, otherwise answer: String) -> String {
        """
        if redis.call('EXISTS', KEYS[\(epoch)]) == 0 then
          redis.call('SET', KEYS[\(epoch)], ARGV[#ARGV - 2])
          redis.call('SET', KEYS[\(settling)], '1', 'PX', ARGV[#ARGV - 1])
          redis.call('PUBLISH', ARGV[#ARGV], 'forgotten')
        end
        if redis.call('EXISTS', KEYS[\(settling)]) == 1 then return \(answer) end

        """
    }

    /// KEYS: value, lease, generation. ARGV: refused identity, 1 when it is dead, owner, lease time, name, channel.
    static let claim = """
        local id = redis.call('HGET', KEYS[1], 'id')
        if id and id == ARGV[1] and ARGV[2] == '1' then
          redis.call('DEL', KEYS[1])
          redis.call('PUBLISH', ARGV[6], 'withdrawn ' .. ARGV[5] .. ' ' .. id)
          id = false
        end
        if id and id ~= ARGV[1] then
          return {1, id, redis.call('HGET', KEYS[1], 'value'), redis.call('PTTL', KEYS[1])}
        end
        if redis.call('SET', KEYS[2], ARGV[3], 'NX', 'PX', ARGV[4]) then
          local generation = redis.call('INCR', KEYS[3])
          redis.call('EXPIRE', KEYS[3], 604800)
          return {0, generation}
        end
        return {2}
        """

    /// KEYS: value.
    static let peek = """
        return {redis.call('HGET', KEYS[1], 'value'), redis.call('PTTL', KEYS[1])}
        """

    /// KEYS: value, lease, generation. ARGV: owner, generation, identity, value, milliseconds, name, channel.
    static let publish = """
        if redis.call('GET', KEYS[2]) ~= ARGV[1] or redis.call('GET', KEYS[3]) ~= ARGV[2] then return 0 end
        redis.call('DEL', KEYS[1], KEYS[2])
        redis.call('HSET', KEYS[1], 'id', ARGV[3], 'value', ARGV[4])
        redis.call('PEXPIRE', KEYS[1], ARGV[5])
        redis.call('PUBLISH', ARGV[7], 'published ' .. ARGV[6] .. ' ' .. ARGV[3])
        return 1
        """

    /// KEYS: value. ARGV: identity, name, channel.
    static let withdraw = """
        if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then return 0 end
        redis.call('DEL', KEYS[1])
        redis.call('PUBLISH', ARGV[3], 'withdrawn ' .. ARGV[2] .. ' ' .. ARGV[1])
        return 1
        """

    /// KEYS: lease, generation, session, spending, settling, epoch. ARGV: owner, lease time, 1 when it spends, time of silence; `settled`.
    static let turn =
        settled(epoch: 6, settling: 5, otherwise: "{3}") + """
            if redis.call('EXISTS', KEYS[4]) == 1 then return {2} end
            if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return {2} end
            local generation = redis.call('INCR', KEYS[2])
            redis.call('EXPIRE', KEYS[2], 604800)
            if ARGV[3] == '1' then redis.call('SET', KEYS[4], ARGV[1], 'PX', ARGV[4]) end
            return {0, generation, redis.call('HGET', KEYS[3], 'version'), redis.call('HGET', KEYS[3], 'value'),
              redis.call('PTTL', KEYS[3])}
            """

    /// KEYS: session.
    static let look = """
        return {redis.call('HGET', KEYS[1], 'version'), redis.call('HGET', KEYS[1], 'value'), redis.call('PTTL', KEYS[1])}
        """

    /// KEYS: session, lease, spending. ARGV: owner, version, value, milliseconds, name, channel. A turn that was too slow still commits
    /// while its mark of spending has kept everybody else away.
    static let commit = """
        if redis.call('GET', KEYS[2]) ~= ARGV[1] and redis.call('GET', KEYS[3]) ~= ARGV[1] then return 0 end
        redis.call('HSET', KEYS[1], 'version', ARGV[2], 'value', ARGV[3])
        redis.call('PEXPIRE', KEYS[1], ARGV[4])
        redis.call('PUBLISH', ARGV[6], 'session ' .. ARGV[5])
        return 1
        """

    /// KEYS: session, spending. ARGV: version, value, milliseconds, name, channel, owner whose spending is over.
    static let offer = """
        if redis.call('GET', KEYS[2]) == ARGV[6] then redis.call('DEL', KEYS[2]) end
        local version = tonumber(redis.call('HGET', KEYS[1], 'version') or -1)
        if version >= tonumber(ARGV[1]) then return 0 end
        redis.call('HSET', KEYS[1], 'version', ARGV[1], 'value', ARGV[2])
        redis.call('PEXPIRE', KEYS[1], ARGV[3])
        redis.call('PUBLISH', ARGV[5], 'session ' .. ARGV[4])
        return 1
        """

    /// KEYS: session. ARGV: version, name, channel, milliseconds. The version stays: what comes next counts on from it, and a gateway
    /// that was away does not bring back one of the sessions before it.
    static let end = """
        local version = tonumber(redis.call('HGET', KEYS[1], 'version') or -1)
        if version > tonumber(ARGV[1]) or version < 0 and ARGV[1] == '0' then return 0 end
        redis.call('HSET', KEYS[1], 'version', ARGV[1])
        redis.call('HDEL', KEYS[1], 'value')
        if version < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
        redis.call('PUBLISH', ARGV[3], 'ended ' .. ARGV[2])
        return 1
        """

    /// KEYS: lease, spending. ARGV: owner, lease time, time of silence, 1 when it spends. A server that has lost the mark is told again.
    static let renew = """
        if ARGV[4] == '1' then
          redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[3])
          if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
        end
        if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
        return redis.call('PEXPIRE', KEYS[1], ARGV[2])
        """

    /// KEYS: lease, spending. ARGV: owner, name, channel.
    static let release = """
        if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
        if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
        redis.call('DEL', KEYS[1])
        redis.call('PUBLISH', ARGV[3], 'released ' .. ARGV[2])
        return 1
        """

    /// KEYS: attempts of the account, settling, epoch. ARGV: secret, number, limit; `settled`. The attempt itself does not count, so that one that is booked
    /// again for want of an answer is still one.
    static let spend =
        settled(epoch: 3, settling: 2, otherwise: "2") + """
            local mine = ARGV[1] .. ':' .. ARGV[2]
            local count = 0
            for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
              if field ~= mine and string.sub(field, 1, #ARGV[1]) == ARGV[1] then count = count + 1 end
            end
            if count >= tonumber(ARGV[3]) then return 0 end
            redis.call('HSET', KEYS[1], mine, '1')
            return 1
            """

    /// KEYS: attempts of the account, settling, epoch. ARGV: secret; `settled`.
    static let spent =
        settled(epoch: 3, settling: 2, otherwise: "-1") + """
            local count = 0
            for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
              if string.sub(field, 1, #ARGV[1]) == ARGV[1] then count = count + 1 end
            end
            return count
            """

    /// KEYS: attempts of the account. ARGV: secret, number, name, channel.
    static let reject = """
        redis.call('HSET', KEYS[1], ARGV[1] .. ':' .. ARGV[2], '1')
        redis.call('PUBLISH', ARGV[4], 'rejected ' .. ARGV[3])
        return 1
        """

    /// KEYS: attempts of the account. ARGV: name, channel.
    static let reset = """
        redis.call('DEL', KEYS[1])
        redis.call('PUBLISH', ARGV[2], 'reset ' .. ARGV[1])
        return 1
        """
}
