internal import DataPath
internal import Gateway
internal import Keeping
internal import Telemetry

/// The metrics of one scrape: what the loops counted, then what is known only now.
func exposition(of facts: SiteFacts, process: ProcessFacts) -> String {
    var scrape = Scrape(facts)
    scrape.write(facts)
    scrape.write(process)
    return scrape.text.text
}

struct Scrape {
    var text = PrometheusText()
    // A family may move into the loops' own schema; a second one of its name would make the whole scrape invalid.
    private var present: Set<Substring> = []
    private let identities: [IdentityFacts]

    init(_ facts: SiteFacts) {
        identities = facts.status.identityFacts
        text.append(facts.snapshot)
        for line in text.text.split(separator: "\n") where line.hasPrefix("# TYPE ") {
            present.insert(line.dropFirst(7).prefix { $0 != " " })
        }
    }
}

// MARK: - Families

extension Scrape {
    typealias Labels = [(String, String)]

    /// - Returns: whether the family's samples are to follow.
    mutating func begins(_ name: String, _ help: String, _ kind: MetricSchema.Kind) -> Bool {
        guard present.insert(Substring(name)).inserted else { return false }
        text.begin(name, help: help, kind: kind)
        return true
    }

    mutating func family(
        _ name: String, _ help: String, _ kind: MetricSchema.Kind, _ samples: [(Labels, some SampleValue)]
    ) {
        guard begins(name, help, kind) else { return }
        for (labels, value) in samples { text.sample(labels, value) }
    }

    /// A family of one sample without labels; nothing where its value is not known.
    mutating func one(_ name: String, _ help: String, _ kind: MetricSchema.Kind, _ value: (some SampleValue)?) {
        if let value { family(name, help, kind, [([], value)]) }
    }

    /// A sample for each outcome.
    mutating func outcomes(_ name: String, _ help: String, _ counts: KeyValuePairs<String, some SampleValue>) {
        family(name, help, .counter, counts.map { ([("result", $0.key)], $0.value) })
    }

    /// A sample for each identity that has a value.
    mutating func each<Value: SampleValue>(
        _ name: String, _ help: String, _ kind: MetricSchema.Kind, _ value: (IdentityFacts) -> Value?
    ) {
        family(
            name, help, kind,
            identities.compactMap { facts in value(facts).map { ([("identity", facts.status.name)], $0) } })
    }

    /// A sample for each state: 1 for the one that holds, 0 for the others.
    mutating func states<State: CaseIterable & Equatable & RawRepresentable<String>>(
        _ name: String, _ help: String, _ holders: [(labels: Labels, state: State)]
    ) {
        family(
            name, help, .gauge,
            holders.flatMap { holder in
                State.allCases.map { (holder.labels + [("state", $0.rawValue)], $0 == holder.state ? 1 : 0) }
            })
    }
}

// MARK: - What is known now

extension Scrape {
    mutating func write(_ facts: SiteFacts) {
        family(
            "cardea_grants_total", "Tokens asked for, by outcome.", .counter,
            identities.flatMap { facts in
                [("granted", facts.status.grants), ("failed", facts.status.failures)].map {
                    ([("identity", facts.status.name), ("result", $0)], $1)
                }
            })
        let reasons = identities.flatMap { facts in
            facts.status.failureReasons.map { ([("identity", facts.status.name), ("reason", $0)], $1) }
        }
        if !reasons.isEmpty {
            family("cardea_grant_failures_total", "Grants that brought no token, by reason.", .counter, reasons)
        }
        each("cardea_narrower_grants_total", "Grants with fewer scopes than were asked for.", .counter) {
            $0.status.narrowerGrants
        }
        each("cardea_wider_tokens_used_total", "Keys that a token with more scopes has served.", .counter) {
            $0.status.borrowings
        }
        if begins("cardea_grant_duration_seconds", "Time from a grant's start to its end, good or bad.", .histogram) {
            for facts in identities { text.sample([("identity", facts.status.name)], facts.status.grantTimes) }
        }
        each("cardea_negative_hits_total", "Misses answered by a failure that stands, without a grant.", .counter) {
            $0.status.negativeHits
        }
        each("cardea_clock_skew_seconds", "The issuer's clock minus ours.", .gauge) {
            $0.status.clockSkew.map { Double($0) }
        }
        write(facts.status.subjects)
        each("cardea_token_age_seconds", "Age of the identity's oldest token.", .gauge) { $0.age.map(seconds) }
        let logins = identities.flatMap { facts in
            facts.status.logins.map { ([("identity", facts.status.name), ("result", $0)], $1) }
        }
        if !logins.isEmpty {
            family(
                "cardea_logins_total", "Logins of a person that ended, by how; a failed one by its reason.", .counter,
                logins)
        }
        each("cardea_login_expires_seconds", "Time until what a person's login brought ends.", .gauge) {
            $0.status.login?.expiresIn.map(seconds)
        }
        each("cardea_token_expires_seconds", "Time until the first of the identity's tokens expires.", .gauge) {
            $0.expiresIn.map(seconds)
        }
        each("cardea_waiters", "Requests that wait for a token.", .gauge) { $0.waiting }
        states(
            "cardea_identity_state", "1 for the state that the identity is in.",
            identities.map { ([("identity", $0.status.name)], $0.state) })
        if !facts.status.certificates.isEmpty {
            family(
                "cardea_certificate_expires_timestamp_seconds", "When a listener's certificate expires.", .gauge,
                facts.status.certificates.map {
                    ([("listener", $0.listener), ("file", $0.file)], Double($0.notAfter))
                })
        }
        writeHealth(of: facts.status.upstreams)
        states("cardea_store_state", "1 for the state that the store is in.", [([], facts.status.storeState)])
        outcomes(
            "cardea_store_commits_total", "Changes of the store, by outcome.",
            ["good": facts.status.storeCommits.good, "failed": facts.status.storeCommits.failed])
        one(
            "cardea_store_restored_tokens", "Tokens taken up from the store at start.", .gauge,
            facts.status.restoredTokens)
        writeEngine(facts.status)
        if let shared = facts.status.shared { write(shared) }
        outcomes(
            "cardea_reloads_total", "Reloads, by outcome.",
            ["done": facts.status.configuration.reloads, "refused": facts.status.configuration.refusals])
        one("cardea_ready", "1 while traffic should come.", .gauge, facts.isReady ? 1 : 0)
        one("cardea_log_dropped_total", "Log lines that found no room.", .counter, facts.logDropped)
        family("cardea_build_info", "1, with the version as label.", .gauge, [([("version", facts.version)], 1)])
    }

    private mutating func write(_ subjects: SubjectsStatus) {
        one("cardea_subjects", "End users with tokens of their own in memory.", .gauge, subjects.inMemory)
        one("cardea_subjects_refused_total", "New end users that were turned away.", .counter, subjects.refused)
        one("cardea_subjects_evicted_total", "End users that memory gave up for others.", .counter, subjects.evicted)
    }

    private mutating func write(_ shared: SharedStatus) {
        states(
            "cardea_shared_state", "1 for the state that the fleet's shared store is in.", [([], shared.state)])
        outcomes(
            "cardea_shared_tokens_total", "Tokens of a fleet, by what became of them here.",
            [
                "taken": shared.taken, "alone": shared.alone, "late": shared.late, "withheld": shared.withheld,
            ])
    }

    private mutating func writeHealth(of upstreams: [UpstreamHealthStatus]) {
        let all = upstreams.flatMap { upstream in
            upstream.addresses.map { address in
                (
                    labels: [
                        ("upstream", upstream.upstream), ("path", upstream.path ?? ""), ("address", address.address),
                    ], address: address
                )
            }
        }
        guard !all.isEmpty else { return }
        family(
            "cardea_upstream_healthy", "1 for an address that active checks find fit, 0 for another.", .gauge,
            all.map { ($0.labels, $0.address.isHealthy ? 1 : 0) })
        family(
            "cardea_upstream_checks_total", "Active checks of an address, by outcome.", .counter,
            all.flatMap { labels, address in
                [("good", address.checks - address.failures), ("bad", address.failures)].map {
                    (labels + [("result", $0)], $1)
                }
            })
    }

    /// Metrics of the token engine as a whole: issuers that are left alone, tokens in memory and on disk.
    private mutating func writeEngine(_ status: GatewayStatus) {
        if !status.issuers.isEmpty {
            states(
                "cardea_issuer_breaker_state", "1 for the state of an issuer's circuit breaker.",
                status.issuers.map { ([("issuer", $0.issuer)], $0.breaker) })
            family(
                "cardea_issuer_breaker_opened_total", "Times that an issuer was left alone after failures.", .counter,
                status.issuers.map { ([("issuer", $0.issuer)], $0.pauses) })
        }
        let cache = status.hotCache
        one("cardea_hot_cache_tokens", "Tokens in memory, ready to send.", .gauge, cache.tokens)
        one("cardea_hot_cache_bytes", "Memory of these tokens.", .gauge, cache.bytes)
        one("cardea_hot_cache_limit_bytes", "Memory that tokens may take: limits.hot_cache.", .gauge, cache.limit)
        one("cardea_hot_cache_evictions_total", "Tokens that memory gave up for others.", .counter, cache.evictions)
        each(
            "cardea_refresh_tokens_refused_total",
            "Refresh tokens that the issuer refused: expired, revoked or reused.",
            .counter
        ) { $0.status.refreshTokensRefused }
        guard status.storeState != .memory else { return }
        let lookups = status.storeLookups
        outcomes(
            "cardea_store_lookups_total", "Tokens that were looked up in the store, by outcome.",
            ["found": lookups.found, "missing": lookups.missing, "failed": lookups.failed])
        guard let size = status.storeSize else { return }
        family(
            "cardea_store_bytes", "Size of the store's files.", .gauge,
            [([("file", "database")], size.databaseBytes), ([("file", "log")], size.logBytes)])
        family(
            "cardea_store_rows", "Rows of the store, by what they hold.", .gauge,
            size.rows.map { ([("kind", $0)], $1) })
    }

    mutating func write(_ process: ProcessFacts) {
        one("process_cpu_seconds_total", "User and system time.", .counter, process.cpuSeconds)
        one("process_start_time_seconds", "Start, since the epoch.", .gauge, process.startTime)
        one("process_resident_memory_bytes", "Resident memory.", .gauge, process.residentMemory)
        one(
            "process_resident_anonymous_bytes", "Resident memory that belongs to no file.", .gauge,
            process.residentAnonymous)
        one("process_virtual_memory_bytes", "Virtual memory.", .gauge, process.virtualMemory)
        one("process_open_fds", "Open file descriptors.", .gauge, process.openDescriptors)
        one("process_max_fds", "File descriptors at most.", .gauge, process.maximumDescriptors)
        one("process_threads", "Threads.", .gauge, process.threads)
    }
}

private func seconds(_ nanoseconds: UInt64) -> Double { Double(nanoseconds) / 1e9 }
