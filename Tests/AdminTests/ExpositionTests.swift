import Testing
internal import Tokens

@testable import Admin
@testable import Gateway
@testable import Keeping
@testable import TLS
@testable import Telemetry

@Suite struct ExpositionTests {
    private let process = ProcessFacts(
        cpuSeconds: 12.5, startTime: 1_700_000_000.25, threads: 9, residentMemory: 31 << 20, residentAnonymous: 9 << 20,
        virtualMemory: 1 << 33, openDescriptors: 42, maximumDescriptors: 1024)

    @Test func everyLineParses() throws {
        let samples = try parse(exposition(of: try sampleFacts(), process: process))
        #expect(samples["cardea_grants_total{identity=hr,result=granted}"] == "4")
        #expect(samples["cardea_grants_total{identity=billing,result=failed}"] == "3")
        #expect(samples["cardea_token_age_seconds{identity=hr}"] == "760")
        #expect(samples["cardea_token_expires_seconds{identity=hr}"] == "140")
        #expect(samples["cardea_token_expires_seconds{identity=archive}"] == nil)
        #expect(samples["cardea_waiters{identity=reports}"] == "17")
        #expect(samples["cardea_identity_state{identity=payroll,state=quarantined}"] == "1")
        #expect(samples["cardea_identity_state{identity=payroll,state=fresh}"] == "0")
        #expect(samples["cardea_store_state{state=serving}"] == "1")
        #expect(samples["cardea_build_info{version=1.0.0}"] == "1")
        #expect(samples["cardea_log_dropped_total{}"] == "0")
        #expect(samples["cardea_requests_total{route=hr,code=200}"] == "48213")
        #expect(samples["process_cpu_seconds_total{}"] == "12.5")
        #expect(samples["process_open_fds{}"] == "42")
    }

    @Test func theEngineIsToldWithWordsOfItsOwn() throws {
        var facts = try sampleFacts()
        #expect(try parse(exposition(of: facts, process: process))["cardea_store_rows{kind=token}"] == nil)
        facts.status.storeSize = StoreSizeStatus(
            databaseBytes: 8192, logBytes: 0, rows: [("token", 7), ("session", 1)])
        facts.status.issuers = [IssuerStatus(issuer: "https://idp.example.com", breaker: .halfOpen, pauses: 3)]
        facts.status.hotCache.evictions = 12
        facts.status.storeLookups.found = 5
        facts.status.identities[1].refreshTokensRefused = 1
        let samples = try parse(exposition(of: facts, process: process))
        #expect(samples["cardea_store_rows{kind=token}"] == "7" && samples["cardea_store_rows{kind=session}"] == "1")
        #expect(samples["cardea_store_bytes{file=database}"] == "8192")
        #expect(samples["cardea_issuer_breaker_state{issuer=https://idp.example.com,state=half_open}"] == "1")
        #expect(samples["cardea_issuer_breaker_state{issuer=https://idp.example.com,state=closed}"] == "0")
        #expect(samples["cardea_issuer_breaker_opened_total{issuer=https://idp.example.com}"] == "3")
        #expect(samples["cardea_hot_cache_evictions_total{}"] == "12")
        #expect(samples["cardea_store_lookups_total{result=found}"] == "5")
        #expect(samples["cardea_refresh_tokens_refused_total{identity=billing}"] == "1")
    }

    @Test func datesAreMoments() throws {
        var facts = try sampleFacts()
        facts.status.identities[3].login = LoginNeed(word: .soon, expiresIn: 90 * second)
        func validity(_ subject: String, _ last: Int64) -> CertificateValidity {
            CertificateValidity(subject: subject, notBefore: 5, notAfter: last)
        }
        facts.status.certificateValidities = [
            .init(.listener, file: "/etc/c.pem", validity("api.example.com", 1_900_000_000)),
            .init(.authority, file: "/etc/ca.pem", validity("Root", 1_900_000_001)),
        ]
        facts.status.configuration.needsRestart = ["threads"]
        var samples = try parse(exposition(of: facts, process: process))
        #expect(samples["cardea_token_issued_timestamp_seconds{identity=hr}"] == "1799999240")
        #expect(samples["cardea_token_expires_timestamp_seconds{identity=hr}"] == "1800000140")
        #expect(samples["cardea_token_expires_timestamp_seconds{identity=archive}"] == nil)
        #expect(samples["cardea_login_expires_timestamp_seconds{identity=tv}"] == "1800000090")
        let name = "cardea_certificate_not"
        let root = "use=authority,file=/etc/ca.pem,subject=Root"
        #expect(samples["\(name)_after_timestamp_seconds{\(root)}"] == "1900000001")
        #expect(samples["\(name)_before_timestamp_seconds{\(root)}"] == "5")
        #expect(samples["cardea_configuration_last_reload_successful{}"] == "1")
        #expect(samples["cardea_configuration_restart_needed{}"] == "1")
        facts.status.configuration.refusal = "line 3"
        samples = try parse(exposition(of: facts, process: process))
        #expect(samples["cardea_configuration_last_reload_successful{}"] == "0")
    }

    @Test func exactlyOneStateAnIdentity() throws {
        let facts = try sampleFacts()
        let samples = try parse(exposition(of: facts, process: process))
        for identity in facts.status.identities {
            let on = samples.filter {
                $0.key.hasPrefix("cardea_identity_state{identity=\(identity.name),") && $0.value == "1"
            }
            #expect(on.count == 1)
        }
    }

    @Test(arguments: hostileTexts.indices)
    func hostileNamesStayLabels(index: Int) throws {
        let text = hostileTexts[index]
        let samples = try parse(exposition(of: try facts(saying: text), process: process))
        #expect(samples["cardea_identity_state{identity=\(text),state=quarantined}"] == "1")
        #expect(samples["cardea_requests_total{route=\(text),code=200}"] == "1")
    }

    @Test func whatTheLoopsCountIsNotTwice() throws {
        var facts = try sampleFacts()
        var schema = MetricSchema()
        let family = try schema.family("cardea_waiters", help: "By the loops.", kind: .gauge, labels: ["identity"])
        let cell = try schema.series(family, ["hr"])
        let board = MetricBoard()
        board.adopt(schema, writers: 1)[0].add(cell, 5)
        facts.snapshot = board.snapshot()
        let samples = try parse(exposition(of: facts, process: ProcessFacts()))
        #expect(samples["cardea_waiters{identity=hr}"] == "5")
        #expect(samples["cardea_waiters{identity=reports}"] == nil)
        #expect(!samples.keys.contains { $0.hasPrefix("process_") })
    }

    /// A strict reader of the text format: families once, TYPE before samples, samples under their family, no series twice.
    private func parse(_ text: String) throws -> [String: String] {
        #expect(text.hasSuffix("\n"))
        var samples: [String: String] = [:]
        var families: Set<String> = []
        var current = ""
        var kind = ""
        for line in text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
            let words = line.split(separator: " ", maxSplits: 3).map { String($0) }
            if words.first == "#" {
                try #require(words.count >= 3 && (words[1] == "HELP" || words[1] == "TYPE"), "\(String(line))")
                if words[1] == "HELP" { #expect(families.insert(words[2]).inserted, "twice: \(words[2])") }
                if words[1] == "TYPE" {
                    current = words[2]
                    kind = words[3]
                    #expect(families.contains(current) && ["counter", "gauge", "histogram"].contains(kind))
                    #expect(kind != "counter" || current.hasSuffix("_total"))
                }
                continue
            }
            var rest = Substring.UnicodeScalarView(line)
            let name = String(rest.prefix { $0 != "{" && $0 != " " })
            rest = rest.dropFirst(name.unicodeScalars.count)
            #expect(kind == "histogram" ? name.hasPrefix(current + "_") : name == current)
            var labels: [String] = []
            if rest.first == "{" {
                while rest.first == "{" || rest.first == "," {
                    rest = rest.dropFirst()
                    let label = String(rest.prefix { $0 != "=" })
                    #expect(MetricSchema.isLabelName(label) || label == "le")
                    rest = rest.dropFirst(label.unicodeScalars.count + 1)
                    try #require(rest.first == "\"")
                    rest = rest.dropFirst()
                    var value = String.UnicodeScalarView()
                    while let scalar = rest.first, scalar != "\"" {
                        rest = rest.dropFirst()
                        if scalar == "\\" {
                            let escaped = try #require(rest.first)
                            rest = rest.dropFirst()
                            try #require(escaped == "n" || escaped == "\\" || escaped == "\"")
                            value.append(escaped == "n" ? "\n" : escaped)
                        } else {
                            value.append(scalar)
                        }
                    }
                    rest = rest.dropFirst()
                    labels.append("\(label)=\(String(value))")
                }
                try #require(rest.first == "}")
                rest = rest.dropFirst()
            }
            try #require(rest.first == " ")
            let value = String(rest.dropFirst())
            #expect(["NaN", "+Inf", "-Inf"].contains(value) || Double(value) != nil, "\(value)")
            let key = "\(name){\(labels.joined(separator: ","))}"
            #expect(samples.updateValue(value, forKey: key) == nil, "twice: \(key)")
        }
        return samples
    }
}
