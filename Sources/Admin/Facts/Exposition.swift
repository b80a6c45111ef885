internal import DataPath
internal import Gateway
internal import Keeping
internal import Telemetry

/// The metrics of one scrape: what the loops counted, then what is known only now.
func exposition(of facts: SiteFacts, process: ProcessFacts) -> String {
    var scrape = Scrape(facts.snapshot)
    scrape.write(facts)
    scrape.write(process)
    return scrape.text.text
}

struct Scrape {
    var text = PrometheusText()
    // A family may move into the loops' own schema; a second one of its name would make the whole scrape invalid.
    private var present: Set<Substring> = []

    init(_ snapshot: MetricSnapshot) {
        text.append(snapshot)
        for line in text.text.split(separator: "\n") where line.hasPrefix("# TYPE ") {
            present.insert(line.dropFirst(7).prefix { $0 != " " })
        }
    }

    /// - Returns: whether the family's samples are to follow.
    mutating func begins(_ name: String, _ help: String, _ kind: MetricSchema.Kind) -> Bool {
        guard present.insert(Substring(name)).inserted else { return false }
        text.begin(name, help: help, kind: kind)
        return true
    }

    mutating func write(_ facts: SiteFacts) {
        let identities = facts.status.identityFacts
        if begins("cardea_grants_total", "Tokens asked for, by outcome.", .counter) {
            for identity in identities {
                text.sample([("identity", identity.status.name), ("result", "granted")], identity.status.grants)
                text.sample([("identity", identity.status.name), ("result", "failed")], identity.status.failures)
            }
        }
        if identities.contains(where: { !$0.status.failureReasons.isEmpty }),
            begins("cardea_grant_failures_total", "Grants that brought no token, by reason.", .counter)
        {
            for identity in identities {
                for (reason, count) in identity.status.failureReasons {
                    text.sample([("identity", identity.status.name), ("reason", reason)], count)
                }
            }
        }
        if begins("cardea_narrower_grants_total", "Grants with fewer scopes than were asked for.", .counter) {
            for identity in identities {
                text.sample([("identity", identity.status.name)], identity.status.narrowerGrants)
            }
        }
        if begins("cardea_wider_tokens_used_total", "Keys that a token with more scopes has served.", .counter) {
            for identity in identities { text.sample([("identity", identity.status.name)], identity.status.borrowings) }
        }
        if begins("cardea_grant_duration_seconds", "Time from a grant's start to its end, good or bad.", .histogram) {
            for identity in identities { text.sample([("identity", identity.status.name)], identity.status.grantTimes) }
        }
        if begins("cardea_negative_hits_total", "Misses answered by a failure that stands, without a grant.", .counter)
        {
            for identity in identities {
                text.sample([("identity", identity.status.name)], identity.status.negativeHits)
            }
        }
        if begins("cardea_clock_skew_seconds", "The issuer's clock minus ours.", .gauge) {
            for identity in identities {
                if let skew = identity.status.clockSkew {
                    text.sample([("identity", identity.status.name)], Double(skew))
                }
            }
        }
        writeSubjects(facts.status.subjects)
        if begins("cardea_token_age_seconds", "Age of the identity's oldest token.", .gauge) {
            for identity in identities {
                if let age = identity.age { text.sample([("identity", identity.status.name)], seconds(age)) }
            }
        }
        if identities.contains(where: { !$0.status.logins.isEmpty }),
            begins(
                "cardea_logins_total", "Logins of a person that ended, by how; a failed one by its reason.", .counter)
        {
            for identity in identities {
                for (result, count) in identity.status.logins {
                    text.sample([("identity", identity.status.name), ("result", result)], count)
                }
            }
        }
        if begins("cardea_login_expires_seconds", "Time until what a person's login brought ends.", .gauge) {
            for identity in identities {
                if let left = identity.status.login?.expiresIn {
                    text.sample([("identity", identity.status.name)], seconds(left))
                }
            }
        }
        if begins("cardea_token_expires_seconds", "Time until the first of the identity's tokens expires.", .gauge) {
            for identity in identities {
                if let left = identity.expiresIn { text.sample([("identity", identity.status.name)], seconds(left)) }
            }
        }
        if begins("cardea_waiters", "Requests that wait for a token.", .gauge) {
            for identity in identities { text.sample([("identity", identity.status.name)], identity.waiting) }
        }
        if begins("cardea_identity_state", "1 for the state that the identity is in.", .gauge) {
            for identity in identities {
                for state in IdentityState.allCases {
                    text.sample(
                        [("identity", identity.status.name), ("state", state.rawValue)], state == identity.state ? 1 : 0
                    )
                }
            }
        }
        if !facts.status.certificates.isEmpty,
            begins("cardea_certificate_expires_timestamp_seconds", "When a listener's certificate expires.", .gauge)
        {
            for certificate in facts.status.certificates {
                text.sample(
                    [("listener", certificate.listener), ("file", certificate.file)], Double(certificate.notAfter))
            }
        }
        writeHealth(of: facts.status.upstreams)
        if begins("cardea_store_state", "1 for the state that the store is in.", .gauge) {
            for state in StoreState.allCases {
                text.sample([("state", state.rawValue)], state == facts.status.storeState ? 1 : 0)
            }
        }
        if begins("cardea_store_commits_total", "Changes of the store, by outcome.", .counter) {
            text.sample([("result", "good")], facts.status.storeCommits.good)
            text.sample([("result", "failed")], facts.status.storeCommits.failed)
        }
        if begins("cardea_store_restored_tokens", "Tokens taken up from the store at start.", .gauge) {
            text.sample([], facts.status.restoredTokens)
        }
        writeEngine(facts.status)
        if let shared = facts.status.shared { write(shared) }
        if begins("cardea_reloads_total", "Reloads, by outcome.", .counter) {
            text.sample([("result", "done")], facts.status.configuration.reloads)
            text.sample([("result", "refused")], facts.status.configuration.refusals)
        }
        if begins("cardea_ready", "1 while traffic should come.", .gauge) { text.sample([], facts.isReady ? 1 : 0) }
        if begins("cardea_log_dropped_total", "Log lines that found no room.", .counter) {
            text.sample([], facts.logDropped)
        }
        if begins("cardea_build_info", "1, with the version as label.", .gauge) {
            text.sample([("version", facts.version)], 1)
        }
    }

    private mutating func writeSubjects(_ subjects: SubjectsStatus) {
        if begins("cardea_subjects", "End users with tokens of their own in memory.", .gauge) {
            text.sample([], subjects.inMemory)
        }
        if begins("cardea_subjects_refused_total", "New end users that were turned away.", .counter) {
            text.sample([], subjects.refused)
        }
        if begins("cardea_subjects_evicted_total", "End users that memory gave up for others.", .counter) {
            text.sample([], subjects.evicted)
        }
    }

    private mutating func write(_ shared: SharedStatus) {
        if begins("cardea_shared_state", "1 for the state that the fleet's shared store is in.", .gauge) {
            for state in SharedStatus.State.allCases {
                text.sample([("state", state.rawValue)], state == shared.state ? 1 : 0)
            }
        }
        if begins("cardea_shared_tokens_total", "Tokens of a fleet, by what became of them here.", .counter) {
            text.sample([("result", "taken")], shared.taken)
            text.sample([("result", "alone")], shared.alone)
            text.sample([("result", "late")], shared.late)
            text.sample([("result", "withheld")], shared.withheld)
        }
    }

    private mutating func writeHealth(of upstreams: [UpstreamHealthStatus]) {
        let upstreams = upstreams.filter { !$0.addresses.isEmpty }
        guard !upstreams.isEmpty else { return }
        // Two routes may have one upstream checked in different ways.
        func each(_ body: ([(String, String)], UpstreamHealthStatus.Address) -> Void) {
            for upstream in upstreams {
                for address in upstream.addresses {
                    body(
                        [("upstream", upstream.upstream), ("path", upstream.path ?? ""), ("address", address.address)],
                        address)
                }
            }
        }
        if begins("cardea_upstream_healthy", "1 for an address that active checks find fit, 0 for another.", .gauge) {
            each { text.sample($0, $1.isHealthy ? 1 : 0) }
        }
        if begins("cardea_upstream_checks_total", "Active checks of an address, by outcome.", .counter) {
            each { labels, address in
                text.sample(labels + [("result", "good")], address.checks - address.failures)
                text.sample(labels + [("result", "bad")], address.failures)
            }
        }
    }

    mutating func write(_ process: ProcessFacts) {
        if let value = process.cpuSeconds, begins("process_cpu_seconds_total", "User and system time.", .counter) {
            text.sample([], value)
        }
        if let value = process.startTime, begins("process_start_time_seconds", "Start, since the epoch.", .gauge) {
            text.sample([], value)
        }
        if let value = process.residentMemory, begins("process_resident_memory_bytes", "Resident memory.", .gauge) {
            text.sample([], value)
        }
        if let value = process.residentAnonymous,
            begins("process_resident_anonymous_bytes", "Resident memory that belongs to no file.", .gauge)
        {
            text.sample([], value)
        }
        if let value = process.virtualMemory, begins("process_virtual_memory_bytes", "Virtual memory.", .gauge) {
            text.sample([], value)
        }
        if let value = process.openDescriptors, begins("process_open_fds", "Open file descriptors.", .gauge) {
            text.sample([], value)
        }
        if let value = process.maximumDescriptors, begins("process_max_fds", "File descriptors at most.", .gauge) {
            text.sample([], value)
        }
        if let value = process.threads, begins("process_threads", "Threads.", .gauge) { text.sample([], value) }
    }

    private func seconds(_ nanoseconds: UInt64) -> Double { Double(nanoseconds) / 1e9 }
}
