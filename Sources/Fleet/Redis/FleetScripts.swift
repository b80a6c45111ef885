/// The scripts that the server runs, each in one step. Each script names its keys first; those that tell others take the channel and
/// the news in the old format and in the new one.
///
/// They are scripts because a decision rests on several keys: another gateway could come between a look and a change from outside.
///
/// A value stands in a hash: in the old format as `value` beside its plain `id` or `version`, in the new one as `sealed`, whose envelope
/// nobody here can open. What scripts compare of it is therefore whether it is still what a gateway has seen.
enum FleetScripts {
    /// News go out in each format that is written; a message that is not is empty.
    private static let tell = """
        local function tell(channel, old, new)
          if new ~= '' then redis.call('PUBLISH', channel, new) end
          if old ~= '' then redis.call('PUBLISH', channel, old) end
        end

        """
    /// Milliseconds that a generation is remembered after the last lease.
    private static let remembered = 604_800_000

    /// Puts fields into a hash that has no others; one that is not written is empty.
    private static let put = """
        local function put(key, fields, milliseconds)
          redis.call('DEL', key)
          for name, value in pairs(fields) do
            if value ~= '' then redis.call('HSET', key, name, value) end
          end
          redis.call('PEXPIRE', key, milliseconds)
        end

        """

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
    /// - Parameters: KEYS of the epoch and of settling. The last five of ARGV are the server's run, milliseconds to settle, the channel, and
    ///   the news in both formats.
    private static func settled(epoch: Int, settling: Int, otherwise answer: String) -> String {
        tell + """
            if redis.call('EXISTS', KEYS[\(epoch)]) == 0 then
              redis.call('SET', KEYS[\(epoch)], ARGV[#ARGV - 4])
              redis.call('SET', KEYS[\(settling)], '1', 'PX', ARGV[#ARGV - 3])
              tell(ARGV[#ARGV - 2], ARGV[#ARGV - 1], ARGV[#ARGV])
            end
            if redis.call('EXISTS', KEYS[\(settling)]) == 1 then return \(answer) end

            """
    }

    /// KEYS: value, lease, generation. ARGV: refused identity, 1 when it is dead, owner, lease time, 1 when only sealed values count, channel,
    /// news of the withdrawal.
    static let claim =
        tell + """
            local id = redis.call('HGET', KEYS[1], 'id')
            if id and ARGV[5] == '1' and not redis.call('HGET', KEYS[1], 'sealed') then id = false end
            if id and id == ARGV[1] and ARGV[2] == '1' then
              redis.call('DEL', KEYS[1])
              tell(ARGV[6], ARGV[7], ARGV[8])
              id = false
            end
            if id and id ~= ARGV[1] then
              return {1, id, redis.call('HGET', KEYS[1], 'value'), redis.call('HGET', KEYS[1], 'sealed'), redis.call('PTTL', KEYS[1])}
            end
            if redis.call('SET', KEYS[2], ARGV[3], 'NX', 'PX', ARGV[4]) then
              local generation = redis.call('INCR', KEYS[3])
              redis.call('PEXPIRE', KEYS[3], \(remembered))
              return {0, generation}
            end
            return {2}
            """

    /// KEYS: value.
    static let peek = """
        return {redis.call('HGET', KEYS[1], 'id'), redis.call('HGET', KEYS[1], 'value'), redis.call('HGET', KEYS[1], 'sealed'),
          redis.call('PTTL', KEYS[1])}
        """

    /// KEYS: value or session. ARGV: version and value in the old format as they were seen, what stands beside them in the new one. Not where
    /// others are there by now.
    static let beside = """
        if (redis.call('HGET', KEYS[1], 'version') or '') ~= ARGV[1] then return 0 end
        if (redis.call('HGET', KEYS[1], 'value') or '') ~= ARGV[2] then return 0 end
        redis.call('HSET', KEYS[1], 'sealed', ARGV[3])
        return 1
        """

    /// KEYS: value, lease, generation. ARGV: owner, generation, identity, value, sealed, milliseconds, channel, news, milliseconds since the
    /// lease was asked for.
    ///
    /// A server that stood still takes this up later than it was sent, and the value has less left by then. How much later, the generation
    /// tells, whose own end is set with the lease and by nothing else.
    static let publish =
        tell + put + """
            if redis.call('GET', KEYS[2]) ~= ARGV[1] or redis.call('GET', KEYS[3]) ~= ARGV[2] then return 0 end
            redis.call('DEL', KEYS[2])
            local late = \(remembered) - redis.call('PTTL', KEYS[3]) - ARGV[10]
            local left = ARGV[6]
            if late > 0 then left = math.max(1, left - late) end
            put(KEYS[1], {id = ARGV[3], value = ARGV[4], sealed = ARGV[5]}, string.format('%.0f', left))
            tell(ARGV[7], ARGV[8], ARGV[9])
            return 1
            """

    /// KEYS: value. ARGV: identity, channel, news.
    static let withdraw =
        tell + """
            if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then return 0 end
            redis.call('DEL', KEYS[1])
            tell(ARGV[2], ARGV[3], ARGV[4])
            return 1
            """

    /// KEYS: lease, generation, session, spending, settling, epoch. ARGV: owner, lease time, 1 when it spends, time of silence, news of that in
    /// the new format; `settled`. In one step, so that whoever has a later turn, by whatever means, has heard of it before.
    static let turn =
        settled(epoch: 6, settling: 5, otherwise: "{3}") + """
            if redis.call('EXISTS', KEYS[4]) == 1 then return {2} end
            if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return {2} end
            local generation = redis.call('INCR', KEYS[2])
            redis.call('PEXPIRE', KEYS[2], \(remembered))
            if ARGV[3] == '1' then
              redis.call('SET', KEYS[4], ARGV[1], 'PX', ARGV[4])
              tell(ARGV[#ARGV - 2], '', ARGV[5])
            end
            return {0, generation, redis.call('HGET', KEYS[3], 'version'), redis.call('HGET', KEYS[3], 'value'),
              redis.call('HGET', KEYS[3], 'sealed'), redis.call('PTTL', KEYS[3])}
            """

    /// KEYS: session.
    static let look = """
        return {redis.call('HGET', KEYS[1], 'version'), redis.call('HGET', KEYS[1], 'value'), redis.call('HGET', KEYS[1], 'sealed'),
          redis.call('PTTL', KEYS[1])}
        """

    /// KEYS: session, lease, spending. ARGV: owner, version, value, sealed, milliseconds, channel, news. A turn that was too slow still
    /// commits while its mark of spending has kept everybody else away.
    static let commit =
        tell + put + """
            if redis.call('GET', KEYS[2]) ~= ARGV[1] and redis.call('GET', KEYS[3]) ~= ARGV[1] then return 0 end
            put(KEYS[1], {version = ARGV[2], value = ARGV[3], sealed = ARGV[4]}, ARGV[5])
            tell(ARGV[6], ARGV[7], ARGV[8])
            return 1
            """

    /// Ends the spending of ARGV[1], and tells so: who has heard of its beginning would believe in it for as long as a silence lasts.
    private static func spentOut(mark: Int, channel: Int, news: Int) -> String {
        """
        if redis.call('GET', KEYS[\(mark)]) == ARGV[1] then redis.call('DEL', KEYS[\(mark)]) end
        tell(ARGV[\(channel)], '', ARGV[\(news)])

        """
    }

    /// KEYS: session, spending. ARGV: owner whose spending is over; version, value and sealed as they were seen; version, value and sealed as
    /// they are to be; milliseconds, channel, news, and news of the end of the spending in the new format. 0: somebody has come in between.
    /// Which of two sessions is the newer one only a gateway can tell, that opens them.
    static let replace =
        tell + put + spentOut(mark: 2, channel: 9, news: 12) + """
            for index, name in ipairs({'version', 'value', 'sealed'}) do
              if (redis.call('HGET', KEYS[1], name) or '') ~= ARGV[index + 1] then return 0 end
            end
            put(KEYS[1], {version = ARGV[5], value = ARGV[6], sealed = ARGV[7]}, ARGV[8])
            tell(ARGV[9], ARGV[10], ARGV[11])
            return 1
            """

    /// ARGV: channel, news.
    static let news =
        tell + """
            tell(ARGV[1], ARGV[2], ARGV[3])
            return 1
            """

    /// KEYS: spending. ARGV: owner whose spending is over, channel, news of that in the new format.
    static let spentOut = tell + spentOut(mark: 1, channel: 2, news: 3) + "return 1"

    /// KEYS: lease, spending. ARGV: owner, lease time, time of silence, 1 when it spends, channel, news of that. A server that has lost the mark
    /// is told again, and so are the others.
    static let renew =
        tell + """
            if ARGV[4] == '1' then
              redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[3])
              if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
              tell(ARGV[5], ARGV[6], ARGV[7])
            end
            if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
            return redis.call('PEXPIRE', KEYS[1], ARGV[2])
            """

    /// KEYS: lease, spending. ARGV: owner, channel, news, and those of the end of its spending.
    static let release =
        tell + """
            tell(ARGV[2], '', ARGV[5])
            if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
            if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
            redis.call('DEL', KEYS[1])
            tell(ARGV[2], ARGV[3], ARGV[4])
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

    /// KEYS: attempts of the account. ARGV: secret, number, channel, news.
    static let reject =
        tell + """
            redis.call('HSET', KEYS[1], ARGV[1] .. ':' .. ARGV[2], '1')
            tell(ARGV[3], ARGV[4], ARGV[5])
            return 1
            """

    /// KEYS: attempts of the account. ARGV: channel, news.
    static let reset =
        tell + """
            redis.call('DEL', KEYS[1])
            tell(ARGV[1], ARGV[2], ARGV[3])
            return 1
            """
}
