import GoldenFiles
import Testing
internal import Tokens

@testable import Admin
@testable import DataPath
@testable import Gateway
@testable import Handshakes
@testable import Keeping
@testable import TLS
@testable import Telemetry

/// Names and words that scrapers and scripts read of a running gateway.
@Suite struct GoldenOperatorTests {
    @Test func everyMemberOfADocumentHasTheNameThatItHad() throws {
        let documents: [(String, any Decodable.Type)] = [
            ("status", StatusDocument.self), ("readyz", ReadinessDocument.self), ("reset", ResetDocument.self),
            ("purge", PurgeReport.self), ("store", StoreDocument.self), ("login", LoginDocument.self),
            ("redirect", RedirectReply.self), ("run", RunDocument.self), ("place", PlaceDocument.self),
            ("failures", FailuresDocument.self),
        ]
        var lines: [String] = []
        for (name, type) in documents { lines += try MemberList.of(type).map { "\(name) \($0)" } }
        let file = GoldenFile(
            "documents.txt",
            "JSON of the admin address: document, member and kind; [] for items of a list, * for names that are not ours, ? where it may be absent.",
            cost: "scripts that read /status and the commands of an older binary find nothing under the old name.")
        if let difference = file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
    }

    @Test func everyMetricHasTheNameThatItHad() throws {
        var facts = try sampleFacts()
        facts.status.identities[0].failureReasons = [("timed_out", 1)]
        facts.status.identities[0].logins = [("done", 1)]
        facts.status.identities[0].clockSkew = 3
        facts.status.identities[0].login = LoginNeed(word: .good, expiresIn: second)
        facts.status.certificates = [CertificateStatus(listener: "office", file: "/f", notAfter: 1_800_000_000)]
        facts.status.certificateValidities = [
            .init(.client, file: "/f", CertificateValidity(subject: "s", notBefore: 1, notAfter: 2))
        ]
        facts.status.upstreams = [
            UpstreamHealthStatus(
                upstream: "http://u", path: "/h",
                addresses: [
                    .init(
                        address: "127.0.0.1:1", isHealthy: true, checks: 2, failures: 1, lastFailure: nil,
                        lastFailureAgo: 0)
                ])
        ]
        facts.status.shared = SharedStatus(state: .serving, detail: nil, server: "p", format: "both", isSealed: false)
        facts.status.audit = AuditStatus(records: 1, hash: "00", dropped: 0, writing: true)
        facts.status.storeSize = StoreSizeStatus(databaseBytes: 1, logBytes: 1, rows: [("token", 1)])
        facts.status.issuers = [IssuerStatus(issuer: "https://i", breaker: .closed, pauses: 0)]
        let plan = try MetricPlan(routes: ["hr"], identities: ["hr"], upstreams: ["http://u"], concealing: [0])
        let board = MetricBoard()
        let block = board.adopt(plan.schema, writers: 1)[0]
        for family in [plan.requests, plan.incomplete, plan.problems] {
            for cell in 0..<3 { block.add(family[0][cell]) }
        }
        block.observe(plan.durations[0], nanoseconds: 1_000_000)
        block.observe(plan.upstreamDurations[0], nanoseconds: 1_000_000)
        facts.snapshot = board.snapshot()
        let process = ProcessFacts(
            cpuSeconds: 1, startTime: 1, threads: 1, residentMemory: 1, residentAnonymous: 1, virtualMemory: 1,
            openDescriptors: 1, maximumDescriptors: 1)
        let text = exposition(of: facts, process: process)
        var kinds: [Substring: Substring] = [:]
        var labels: [Substring: Set<String>] = [:]
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            if line.hasPrefix("# TYPE ") { kinds[words[2]] = words[3] }
            guard !line.hasPrefix("#") else { continue }
            let name = line.prefix { $0 != "{" && $0 != " " }
            let family =
                ["_bucket", "_sum", "_count"].first { name.hasSuffix($0) && kinds[name] == nil }
                .map { name.dropLast($0.count) } ?? name
            guard let start = line.firstIndex(of: "{"), let end = line.lastIndex(of: "}") else { continue }
            // Every other piece between quotes is a label's name.
            let pieces = line[line.index(after: start)..<end].split(separator: "\"", omittingEmptySubsequences: false)
            for (index, piece) in pieces.enumerated() where index % 2 == 0 && !piece.isEmpty {
                labels[family, default: []].insert(piece.filter { $0 != "," && $0 != "=" })
            }
        }
        let lines = kinds.map { name, kind in
            "\(name) \(kind) " + labels[name, default: []].subtracting(["le"]).sorted().joined(separator: ",")
        }
        let file = GoldenFile(
            "metrics.txt", "Name, kind and labels of every metric.",
            cost: "dashboards and alerts show nothing, and stay silent when they should not.")
        if let difference = file.difference(from: lines.map { $0.hasSuffix(" ") ? String($0.dropLast()) : $0 }.sorted())
        {
            Issue.record("\(difference)")
        }
    }

    @Test func everyWordOfOperatorsIsTheOneThatItWas() {
        var lines = Fault.Kind.allCases.map { kind in
            let answer = Fault(kind).answer
            return "problem \(kind.word): \(answer.status), side \(Fault(kind).side.rawValue)"
                + (answer.proxyError.map { ", Proxy-Status \($0)" } ?? "")
        }
        lines += IdentityState.allCases.map { "state of an identity or a token: \($0.rawValue)" }
        lines += StoreState.allCases.map { "state of the store: \($0.rawValue)" }
        lines += SharedStatus.State.allCases.map { "state of the shared server: \($0.rawValue)" }
        lines += Breaker.State.allCases.map { "state of an issuer: \($0.rawValue)" }
        lines += Glitch.allCases.map { "glitch: \($0.rawValue)" }
        lines += GrantFailure.Reason.allCases.map { "reason of a failed grant: \($0.rawValue)" }
        lines += [LoginReport.State.running, .done, .failed, .expired, .cancelled].map {
            "state of a login: \($0.rawValue)"
        }
        lines += CertificateValidityStatus.Use.allCases.map { "use of a certificate: \($0.rawValue)" }
        lines += StoreTask.allCases.map { "task of the store: \($0.rawValue)" }
        lines += AccessRecord.CacheState.allCases.map { "where a token was found: \($0.word)" }
        let file = GoldenFile(
            "words.txt", "Words in answers, in /status, in the log and as labels of metrics.",
            cost: "callers that look for a problem's type, and alerts on a state, no longer find it.")
        if let difference = file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
    }
}
