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
    mutating func begins(_ family: ExposedFamily) -> Bool {
        let about = family.description
        guard present.insert(Substring(about.name)).inserted else { return false }
        text.begin(about.name, help: about.help, kind: about.kind)
        return true
    }

    mutating func family(_ family: ExposedFamily, _ samples: [(Labels, some SampleValue)]) {
        guard begins(family) else { return }
        for (labels, value) in samples { text.sample(labels, value) }
    }

    /// A family of one sample without labels; nothing where its value is not known.
    mutating func one(_ family: ExposedFamily, _ value: (some SampleValue)?) {
        if let value { self.family(family, [([], value)]) }
    }

    /// A sample for each outcome.
    mutating func outcomes(_ family: ExposedFamily, _ counts: KeyValuePairs<String, some SampleValue>) {
        self.family(family, counts.map { ([("result", $0.key)], $0.value) })
    }

    /// A sample for each identity that has a value.
    mutating func each<Value: SampleValue>(_ family: ExposedFamily, _ value: (IdentityFacts) -> Value?) {
        self.family(
            family,
            identities.compactMap { facts in value(facts).map { ([("identity", facts.status.name)], $0) } })
    }

    /// A sample for each state: 1 for the one that holds, 0 for the others.
    mutating func states<State: CaseIterable & Equatable & RawRepresentable<String>>(
        _ family: ExposedFamily, _ holders: [(labels: Labels, state: State)]
    ) {
        self.family(
            family,
            holders.flatMap { holder in
                State.allCases.map { (holder.labels + [("state", $0.rawValue)], $0 == holder.state ? 1 : 0) }
            })
    }
}

// MARK: - What is known now

extension Scrape {
    mutating func write(_ facts: SiteFacts) {
        family(
            .grants,
            identities.flatMap { facts in
                [("granted", facts.status.grants), ("failed", facts.status.failures)].map {
                    ([("identity", facts.status.name), ("result", $0)], $1)
                }
            })
        let reasons = identities.flatMap { facts in
            facts.status.failureReasons.map { ([("identity", facts.status.name), ("reason", $0)], $1) }
        }
        if !reasons.isEmpty {
            family(.grantFailures, reasons)
        }
        each(.narrowerGrants) { $0.status.narrowerGrants }
        each(.widerTokensUsed) { $0.status.borrowings }
        if begins(.grantDuration) {
            for facts in identities { text.sample([("identity", facts.status.name)], facts.status.grantTimes) }
        }
        each(.negativeHits) { $0.status.negativeHits }
        each(.clockSkew) { $0.status.clockSkew.map { Double($0) } }
        write(facts.status.subjects)
        each(.tokenAge) { $0.age.map(seconds) }
        let logins = identities.flatMap { facts in
            facts.status.logins.map { ([("identity", facts.status.name), ("result", $0)], $1) }
        }
        if !logins.isEmpty {
            family(
                .logins,
                logins)
        }
        each(.loginExpires) { $0.status.login?.expiresIn.map(seconds) }
        each(.tokenExpires) { $0.expiresIn.map(seconds) }
        each(.waiters) { $0.waiting }
        states(
            .identityState,
            identities.map { ([("identity", $0.status.name)], $0.state) })
        if !facts.status.certificates.isEmpty {
            family(
                .certificateExpires,
                facts.status.certificates.map {
                    ([("listener", $0.listener), ("file", $0.file)], Double($0.notAfter))
                })
        }
        writeDates(facts)
        writeHealth(of: facts.status.upstreams)
        states(.storeState, [([], facts.status.storeState)])
        outcomes(
            .storeCommits,
            ["good": facts.status.storeCommits.good, "failed": facts.status.storeCommits.failed])
        one(
            .storeRestoredTokens,
            facts.status.restoredTokens)
        writeEngine(facts.status)
        if let shared = facts.status.shared { write(shared) }
        if let audit = facts.status.audit { write(audit) }
        outcomes(
            .reloads,
            ["done": facts.status.configuration.reloads, "refused": facts.status.configuration.refusals])
        one(.ready, facts.isReady ? 1 : 0)
        one(.logDropped, facts.logDropped)
        if let spans = facts.spans {
            family(.spans, SpanCounts.Outcome.allCases.map { ([("result", $0.rawValue)], spans[$0] ?? 0) })
        }
        family(.buildInfo, [([("version", facts.version)], 1)])
    }

    private mutating func write(_ subjects: SubjectsStatus) {
        one(.subjects, subjects.inMemory)
        one(.subjectsRefused, subjects.refused)
        one(.subjectsEvicted, subjects.evicted)
    }

    private mutating func write(_ shared: SharedStatus) {
        states(.sharedState, [([], shared.state)])
        outcomes(
            .sharedTokens,
            [
                "taken": shared.taken, "alone": shared.alone, "late": shared.late, "withheld": shared.withheld,
            ])
    }

    private mutating func write(_ audit: AuditStatus) {
        one(.auditRecords, audit.records)
        family(.auditHead, [([("hash", audit.hash)], audit.records)])
        one(.auditDropped, audit.dropped)
        one(.auditWriting, audit.writing ? 1 : 0)
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
            .upstreamHealthy,
            all.map { ($0.labels, $0.address.isHealthy ? 1 : 0) })
        family(
            .upstreamChecks,
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
                .issuerBreakerState,
                status.issuers.map { ([("issuer", $0.issuer)], $0.breaker) })
            family(
                .issuerBreakerOpened,
                status.issuers.map { ([("issuer", $0.issuer)], $0.pauses) })
        }
        let cache = status.hotCache
        one(.hotCacheTokens, cache.tokens)
        one(.hotCacheBytes, cache.bytes)
        one(.hotCacheLimit, cache.limit)
        one(.hotCacheEvictions, cache.evictions)
        each(
            .refreshTokensRefused
        ) { $0.status.refreshTokensRefused }
        guard status.storeState != .memory else { return }
        let lookups = status.storeLookups
        outcomes(
            .storeLookups,
            ["found": lookups.found, "missing": lookups.missing, "failed": lookups.failed])
        guard let size = status.storeSize else { return }
        family(
            .storeBytes,
            [([("file", "database")], size.databaseBytes), ([("file", "log")], size.logBytes)])
        family(
            .storeRows,
            size.rows.map { ([("kind", $0)], $1) })
    }

    mutating func write(_ process: ProcessFacts) {
        one(.processCPU, process.cpuSeconds)
        one(.processStart, process.startTime)
        one(.processResidentMemory, process.residentMemory)
        one(
            .processResidentAnonymous,
            process.residentAnonymous)
        one(.processVirtualMemory, process.virtualMemory)
        one(.processOpenDescriptors, process.openDescriptors)
        one(.processMaximumDescriptors, process.maximumDescriptors)
        one(.processThreads, process.threads)
    }
}

func seconds(_ nanoseconds: UInt64) -> Double { Double(nanoseconds) / 1e9 }
