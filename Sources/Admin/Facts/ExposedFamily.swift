internal import Keeping
package import Telemetry
internal import Tokens

/// The families of metrics that are known only at a scrape; those that the loops count stand in their schema.
package enum ExposedFamily: CaseIterable {
    case grants, grantFailures, narrowerGrants, widerTokensUsed, grantDuration, negativeHits, clockSkew, tokenAge,
        logins, loginExpires, tokenExpires, waiters, identityState, certificateExpires, certificateNotBefore,
        certificateNotAfter, tokenIssuedAt, tokenExpiresAt, loginExpiresAt, reloadSuccessful, restartNeeded, storeState,
        storeCommits,
        storeRestoredTokens, reloads, ready, logDropped, spans, buildInfo, subjects, subjectsRefused, subjectsEvicted,
        sharedState, sharedTokens, auditRecords, auditHead, auditDropped, auditWriting, upstreamHealthy, upstreamChecks,
        issuerBreakerState, issuerBreakerOpened,
        hotCacheTokens, hotCacheBytes, hotCacheLimit, hotCacheEvictions, refreshTokensRefused, storeLookups,
        storeBytes, storeRows, processCPU, processStart, processResidentMemory, processResidentAnonymous,
        processVirtualMemory, processOpenDescriptors, processMaximumDescriptors, processThreads

    /// Name, kind, help and labels, as the exposition and docs/reference/metrics.md have them.
    package var description: MetricDescription {
        switch self {
        case .grants:
            .init(
                "cardea_grants_total", .counter, "Tokens asked for, by outcome.",
                [.init("identity"), .init("result", ["granted", "failed"])])
        case .grantFailures:
            .init(
                "cardea_grant_failures_total", .counter, "Grants that brought no token, by reason.",
                [.init("identity"), .init("reason", IdentityStatus.failureWords)])
        case .narrowerGrants:
            .init(
                "cardea_narrower_grants_total", .counter, "Grants with fewer scopes than were asked for.",
                [.init("identity")])
        case .widerTokensUsed:
            .init(
                "cardea_wider_tokens_used_total", .counter, "Keys that a token with more scopes has served.",
                [.init("identity")])
        case .grantDuration:
            .init(
                "cardea_grant_duration_seconds", .histogram, "Time from a grant's start to its end, good or bad.",
                [.init("identity")])
        case .negativeHits:
            .init(
                "cardea_negative_hits_total", .counter, "Misses answered by a failure that stands, without a grant.",
                [.init("identity")])
        case .clockSkew:
            .init("cardea_clock_skew_seconds", .gauge, "The issuer's clock minus ours.", [.init("identity")])
        case .tokenAge:
            .init(
                "cardea_token_age_seconds", .gauge,
                "Deprecated, see cardea_token_issued_timestamp_seconds: age of the identity's oldest token.",
                [.init("identity")])
        case .logins:
            .init(
                "cardea_logins_total", .counter, "Logins of a person that ended, by how; a failed one by its reason.",
                [.init("identity"), .init("result", IdentityStatus.loginResults)])
        case .loginExpires:
            .init(
                "cardea_login_expires_seconds", .gauge,
                "Deprecated, see cardea_login_expires_timestamp_seconds: time until what a person's login brought ends.",
                [.init("identity")])
        case .tokenExpires:
            .init(
                "cardea_token_expires_seconds", .gauge,
                "Deprecated, see cardea_token_expires_timestamp_seconds: time until the first of the identity's tokens expires.",
                [.init("identity")])
        case .waiters:
            .init("cardea_waiters", .gauge, "Requests that wait for a token.", [.init("identity")])
        case .identityState:
            .init(
                "cardea_identity_state", .gauge, "1 for the state that the identity is in.",
                [.init("identity"), .init("state", IdentityState.allCases.map(\.rawValue))])
        case .certificateExpires:
            .init(
                "cardea_certificate_expires_timestamp_seconds", .gauge,
                "Deprecated, see cardea_certificate_not_after_timestamp_seconds: when a listener's certificate expires.",
                [.init("listener"), .init("file")])
        case .certificateNotBefore:
            .init(
                "cardea_certificate_not_before_timestamp_seconds", .gauge,
                "From when on a certificate or an authority of a file is good.", Self.certificateLabels)
        case .certificateNotAfter:
            .init(
                "cardea_certificate_not_after_timestamp_seconds", .gauge,
                "Until when a certificate or an authority of a file is good.", Self.certificateLabels)
        case .tokenIssuedAt:
            .init(
                "cardea_token_issued_timestamp_seconds", .gauge, "When the identity's oldest token was sent for.",
                [.init("identity")])
        case .tokenExpiresAt:
            .init(
                "cardea_token_expires_timestamp_seconds", .gauge,
                "When the first of the identity's tokens expires.", [.init("identity")])
        case .loginExpiresAt:
            .init(
                "cardea_login_expires_timestamp_seconds", .gauge, "When what a person's login brought ends.",
                [.init("identity")])
        case .reloadSuccessful:
            .init(
                "cardea_configuration_last_reload_successful", .gauge,
                "0 while the last reload was refused, else 1.")
        case .restartNeeded:
            .init(
                "cardea_configuration_restart_needed", .gauge, "1 while keys of the file wait for the next start.")
        case .storeState:
            .init(
                "cardea_store_state", .gauge, "1 for the state that the store is in.",
                [.init("state", StoreState.allCases.map(\.rawValue))])
        case .storeCommits:
            .init(
                "cardea_store_commits_total", .counter, "Changes of the store, by outcome.",
                [.init("result", ["good", "failed"])])
        case .storeRestoredTokens:
            .init("cardea_store_restored_tokens", .gauge, "Tokens taken up from the store at start.")
        case .reloads:
            .init("cardea_reloads_total", .counter, "Reloads, by outcome.", [.init("result", ["done", "refused"])])
        case .ready:
            .init("cardea_ready", .gauge, "1 while traffic should come.")
        case .logDropped:
            .init("cardea_log_dropped_total", .counter, "Log lines that found no room.")
        case .spans:
            .init(
                "cardea_spans_total", .counter,
                "Spans for tracing.endpoint, by outcome; of a request that found no room, dropped counts one.",
                [.init("result", SpanCounts.Outcome.allCases.map(\.rawValue))])
        case .buildInfo:
            .init("cardea_build_info", .gauge, "1, with the version as label.", [.init("version")])
        case .subjects:
            .init("cardea_subjects", .gauge, "End users with tokens of their own in memory.")
        case .subjectsRefused:
            .init("cardea_subjects_refused_total", .counter, "New end users that were turned away.")
        case .subjectsEvicted:
            .init("cardea_subjects_evicted_total", .counter, "End users that memory gave up for others.")
        case .sharedState:
            .init(
                "cardea_shared_state", .gauge, "1 for the state that the fleet's shared store is in.",
                [.init("state", SharedStatus.State.allCases.map(\.rawValue))])
        case .sharedTokens:
            .init(
                "cardea_shared_tokens_total", .counter, "Tokens of a fleet, by what became of them here.",
                [.init("result", ["taken", "alone", "late", "withheld"])])
        case .auditRecords:
            .init("cardea_audit_records_total", .counter, "Records of the audit log on disk, in all its files.")
        case .auditHead:
            .init(
                "cardea_audit_head", .gauge,
                "Records of the audit log on disk; with the hash of the last one what audit verify --head takes.",
                [.init("hash")])
        case .auditDropped:
            .init("cardea_audit_dropped_total", .counter, "Records of the audit log that found no place.")
        case .auditWriting:
            .init("cardea_audit_writing", .gauge, "1 while the disk takes the audit log.")
        case .upstreamHealthy:
            .init(
                "cardea_upstream_healthy", .gauge, "1 for an address that active checks find fit, 0 for another.",
                [.init("upstream"), .init("path"), .init("address")])
        case .upstreamChecks:
            .init(
                "cardea_upstream_checks_total", .counter, "Active checks of an address, by outcome.",
                [.init("upstream"), .init("path"), .init("address"), .init("result", ["good", "bad"])])
        case .issuerBreakerState:
            .init(
                "cardea_issuer_breaker_state", .gauge, "1 for the state of an issuer's circuit breaker.",
                [.init("issuer"), .init("state", Breaker.State.allCases.map(\.rawValue))])
        case .issuerBreakerOpened:
            .init(
                "cardea_issuer_breaker_opened_total", .counter, "Times that an issuer was left alone after failures.",
                [.init("issuer")])
        case .hotCacheTokens:
            .init("cardea_hot_cache_tokens", .gauge, "Tokens in memory, ready to send.")
        case .hotCacheBytes:
            .init("cardea_hot_cache_bytes", .gauge, "Memory of the tokens that are ready to send.")
        case .hotCacheLimit:
            .init("cardea_hot_cache_limit_bytes", .gauge, "Memory that tokens may take: limits.hot_cache.")
        case .hotCacheEvictions:
            .init("cardea_hot_cache_evictions_total", .counter, "Tokens that memory gave up for others.")
        case .refreshTokensRefused:
            .init(
                "cardea_refresh_tokens_refused_total", .counter,
                "Refresh tokens that the issuer refused: expired, revoked or reused.", [.init("identity")])
        case .storeLookups:
            .init(
                "cardea_store_lookups_total", .counter, "Tokens that were looked up in the store, by outcome.",
                [.init("result", ["found", "missing", "failed"])])
        case .storeBytes:
            .init("cardea_store_bytes", .gauge, "Size of the store's files.", [.init("file", ["database", "log"])])
        case .storeRows:
            .init(
                "cardea_store_rows", .gauge, "Rows of the store, by what they hold.",
                [.init("kind", RowKind.names.map(\.name))])
        case .processCPU:
            .init("process_cpu_seconds_total", .counter, "User and system time.")
        case .processStart:
            .init("process_start_time_seconds", .gauge, "Start, since the epoch.")
        case .processResidentMemory:
            .init("process_resident_memory_bytes", .gauge, "Resident memory.")
        case .processResidentAnonymous:
            .init("process_resident_anonymous_bytes", .gauge, "Resident memory that belongs to no file.")
        case .processVirtualMemory:
            .init("process_virtual_memory_bytes", .gauge, "Virtual memory.")
        case .processOpenDescriptors:
            .init("process_open_fds", .gauge, "Open file descriptors.")
        case .processMaximumDescriptors:
            .init("process_max_fds", .gauge, "File descriptors at most.")
        case .processThreads:
            .init("process_threads", .gauge, "Threads.")
        }
    }

    private static let certificateLabels: [MetricDescription.Label] = [
        .init("use", CertificateValidityStatus.Use.allCases.map(\.rawValue)), .init("file"), .init("subject"),
    ]
}
