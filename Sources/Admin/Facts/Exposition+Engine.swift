internal import Gateway
internal import Keeping
internal import Telemetry
internal import Tokens

/// Metrics of the token engine as a whole: issuers that are left alone, tokens in memory and on disk.
extension Scrape {
    mutating func writeEngine(_ status: GatewayStatus) {
        write(status.issuers)
        write(status.hotCache)
        if begins(
            "cardea_refresh_tokens_refused_total",
            "Refresh tokens that the issuer refused: expired, revoked or reused.",
            .counter)
        {
            for identity in status.identities {
                text.sample([("identity", identity.name)], identity.refreshTokensRefused)
            }
        }
        guard status.storeState != .memory else { return }
        if begins("cardea_store_lookups_total", "Tokens that were looked up in the store, by outcome.", .counter) {
            text.sample([("result", "found")], status.storeLookups.found)
            text.sample([("result", "missing")], status.storeLookups.missing)
            text.sample([("result", "failed")], status.storeLookups.failed)
        }
        guard let size = status.storeSize else { return }
        if begins("cardea_store_bytes", "Size of the store's files.", .gauge) {
            text.sample([("file", "database")], size.databaseBytes)
            text.sample([("file", "log")], size.logBytes)
        }
        if begins("cardea_store_rows", "Rows of the store, by what they hold.", .gauge) {
            for (kind, count) in size.rows { text.sample([("kind", kind)], count) }
        }
    }

    private mutating func write(_ issuers: [IssuerStatus]) {
        guard !issuers.isEmpty else { return }
        if begins("cardea_issuer_breaker_state", "1 for the state of an issuer's circuit breaker.", .gauge) {
            for issuer in issuers {
                for state in Breaker.State.allCases {
                    text.sample(
                        [("issuer", issuer.issuer), ("state", state.rawValue)], state == issuer.breaker ? 1 : 0)
                }
            }
        }
        if begins("cardea_issuer_breaker_opened_total", "Times that an issuer was left alone after failures.", .counter)
        {
            for issuer in issuers { text.sample([("issuer", issuer.issuer)], issuer.pauses) }
        }
    }

    private mutating func write(_ cache: HotCacheStatus) {
        if begins("cardea_hot_cache_tokens", "Tokens in memory, ready to send.", .gauge) {
            text.sample([], cache.tokens)
        }
        if begins("cardea_hot_cache_bytes", "Memory of these tokens.", .gauge) { text.sample([], cache.bytes) }
        if begins("cardea_hot_cache_limit_bytes", "Memory that tokens may take: limits.hot_cache.", .gauge) {
            text.sample([], cache.limit)
        }
        if begins("cardea_hot_cache_evictions_total", "Tokens that memory gave up for others.", .counter) {
            text.sample([], cache.evictions)
        }
    }
}
