import Testing
import World

@testable import Telemetry

@Suite struct MetricTests {
    private func requests(_ routes: [String]) throws -> (MetricSchema, [MetricRow], [MetricHistogram], MetricCell) {
        var schema = MetricSchema()
        let total = try schema.family(
            "cardea_requests_total", help: "Requests by final status.", kind: .counter, labels: ["route", "code"],
            omitsZeros: true)
        let duration = try schema.family(
            "cardea_request_duration_seconds", help: "Time to the last byte.", kind: .histogram, labels: ["route"])
        let waiters = try schema.family("cardea_waiters", help: "Parked requests.", kind: .gauge)
        let rows = try routes.map { try schema.row(total, [$0], columns: StatusColumns.labels) }
        let histograms = try routes.map { try schema.histogram(duration, [$0]) }
        let parked = try schema.series(waiters)
        return (schema, rows, histograms, parked)
    }

    @Test func rendersTheExpositionExactly() throws {
        let (schema, rows, histograms, waiters) = try requests(["hr \"x\"\n\\"])
        let board = MetricBoard()
        let blocks = board.adopt(schema, writers: 2)
        blocks[0].add(rows[0][StatusColumns.column(of: 200)])
        blocks[1].add(rows[0][StatusColumns.column(of: 200)], 2)
        blocks[1].add(rows[0][StatusColumns.column(of: 599)])
        blocks[0].observe(histograms[0], nanoseconds: 500_000)
        blocks[1].observe(histograms[0], nanoseconds: 61_000_000_000)
        blocks[0].add(waiters, 5)
        blocks[1].subtract(waiters, 7)
        var text = PrometheusText()
        text.append(board.snapshot())
        let label = #"route="hr \"x\"\n\\""#
        let bounds = [
            "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10",
            "30", "60",
        ]
        let buckets = bounds.map { "cardea_request_duration_seconds_bucket{\(label),le=\"\($0)\"} 1\n" }.joined()
        let expected =
            """
            # HELP cardea_requests_total Requests by final status.
            # TYPE cardea_requests_total counter
            cardea_requests_total{\(label),code="200"} 3
            cardea_requests_total{\(label),code="5xx"} 1
            # HELP cardea_request_duration_seconds Time to the last byte.
            # TYPE cardea_request_duration_seconds histogram
            \(buckets)cardea_request_duration_seconds_bucket{\(label),le="+Inf"} 2
            cardea_request_duration_seconds_sum{\(label)} 61.0005
            cardea_request_duration_seconds_count{\(label)} 2
            # HELP cardea_waiters Parked requests.
            # TYPE cardea_waiters gauge
            cardea_waiters -2

            """
        #expect(text.text == expected)
    }

    @Test func histogramsThatSawNothingMayBeLeftOut() throws {
        var schema = MetricSchema()
        let family = try schema.family(
            "cardea_x_seconds", help: "X.", kind: .histogram, labels: ["route"], omitsZeros: true)
        _ = try schema.histogram(family, ["idle"])
        let busy = try schema.histogram(family, ["busy"])
        let board = MetricBoard()
        board.adopt(schema, writers: 1)[0].observe(busy, nanoseconds: 1)
        var text = PrometheusText()
        text.append(board.snapshot())
        #expect(text.text.contains(#"cardea_x_seconds_count{route="busy"} 1"#) && !text.text.contains("idle"))
    }

    @Test func countersGoOnAcrossReloads() throws {
        let (first, oldRows, oldHistograms, oldWaiters) = try requests(["gone", "kept"])
        let (second, newRows, newHistograms, newWaiters) = try requests(["new", "kept"])
        let board = MetricBoard()
        let old = board.adopt(first, writers: 1)[0]
        let ok = StatusColumns.column(of: 200)
        old.add(oldRows[0][ok], 100)
        old.add(oldRows[1][ok], 10)
        old.observe(oldHistograms[1], nanoseconds: 1)
        old.add(oldWaiters, 3)
        let new = board.adopt(second, writers: 1)[0]
        // The loop has not changed over yet.
        old.add(oldRows[1][ok])
        new.add(newRows[1][ok], 5)
        new.subtract(newWaiters, 1)
        func check() {
            let snapshot = board.snapshot()
            #expect(snapshot.value(newRows[0][ok]) == 0)
            #expect(snapshot.value(newRows[1][ok]) == 16)
            #expect(snapshot.distribution(newHistograms[1]).count == 1)
            #expect(snapshot.value(newWaiters) == 2)
        }
        check()
        board.retire(old)
        board.retire(old)
        check()
        let third = board.adopt(second, writers: 1)[0]
        board.retire(new)
        third.add(newRows[0][ok])
        let snapshot = board.snapshot()
        #expect(snapshot.value(newRows[0][ok]) == 1)
        #expect(snapshot.value(newRows[1][ok]) == 16)
    }

    /// A row and single series are the same to whoever asks and to a later schema, however each has them.
    @Test func aRowIsItsSeries() throws {
        func schema(_ build: (inout MetricSchema, MetricFamily) throws -> Void) throws -> MetricSchema {
            var schema = MetricSchema()
            let family = try schema.family("a", help: "", kind: .counter, labels: ["x", "y"])
            try build(&schema, family)
            return schema
        }
        let first = try schema { schema, family in
            let row = try schema.row(family, ["1"], columns: ["p", "q", "r"])
            #expect(try schema.series(family, ["1", "q"]) == row[1])
            #expect(throws: MetricFault.duplicate("a")) { try schema.row(family, ["1"], columns: ["s"]) }
            #expect(throws: MetricFault.wrongLabelCount("a")) { try schema.row(family, [], columns: ["s"]) }
        }
        let board = MetricBoard()
        let blocks = board.adopt(first, writers: 1)
        for column in 0..<3 { blocks[0].add(MetricRow(base: 0, count: 3)[column], UInt64(column + 1)) }
        // Other columns in another order, then single ones, then the first again.
        for columns in [["r", "new", "p"], [], ["p", "q", "r"]] {
            let next = try schema { schema, family in
                if columns.isEmpty {
                    for column in ["p", "r"] { _ = try schema.series(family, ["1", column]) }
                } else {
                    _ = try schema.row(family, ["1"], columns: columns)
                }
            }
            _ = board.adopt(next, writers: 1)
        }
        board.retire(blocks[0])
        #expect(board.snapshot().values == [1, 0, 3])
    }

    @Test func twoReloadsWhileAnOldBlockIsStillWritten() throws {
        let (first, rows, _, _) = try requests(["a", "b"])
        let (second, _, _, _) = try requests(["b"])
        let (third, last, _, _) = try requests(["c", "b"])
        let board = MetricBoard()
        let block = board.adopt(first, writers: 1)[0]
        _ = board.adopt(second, writers: 1)
        _ = board.adopt(third, writers: 1)
        block.add(rows[1][0], 4)
        #expect(board.snapshot().value(last[1][0]) == 4)
    }

    @Test func refusesWhatPrometheusWould() throws {
        var schema = MetricSchema()
        #expect(throws: MetricFault.invalidName("a-b")) { try schema.family("a-b", help: "", kind: .counter) }
        #expect(throws: MetricFault.invalidName("0a")) { try schema.family("0a", help: "", kind: .counter) }
        #expect(throws: MetricFault.invalidName("le")) {
            try schema.family("a", help: "", kind: .histogram, labels: ["le"])
        }
        let family = try schema.family("a", help: "", kind: .counter, labels: ["x"])
        #expect(throws: MetricFault.duplicate("a")) { try schema.family("a", help: "", kind: .counter) }
        #expect(throws: MetricFault.wrongLabelCount("a")) { try schema.series(family, []) }
        #expect(throws: MetricFault.wrongKind("a")) { try schema.histogram(family, ["y"]) }
        #expect(try schema.series(family, ["y"]) == schema.series(family, ["y"]))
        #expect(throws: MetricFault.duplicate("a")) { try schema.row(family, [], columns: ["z", "y"]) }
        let wide = (0...MetricSchema.maximumCells).map(String.init)
        #expect(throws: MetricFault.tooManySeries) { try schema.row(family, [], columns: wide) }
    }

    @Test func everyDurationFindsItsBucket() {
        for (index, bound) in DurationBuckets.bounds.enumerated() {
            #expect(DurationBuckets.bucket(of: bound) == index)
            #expect(DurationBuckets.bucket(of: bound + 1) == index + 1)
        }
        #expect(DurationBuckets.bucket(of: 0) == 0)
        #expect(DurationBuckets.bucket(of: .max) == 16)
        #expect(
            DurationBuckets.labels.compactMap(Double.init).map { UInt64(($0 * 1e9).rounded()) }
                == DurationBuckets.bounds)
    }

    @Test func estimatesQuantiles() {
        var buckets = [UInt64](repeating: 0, count: 17)
        #expect(DurationDistribution(buckets: buckets, sum: 0).estimate(quantile: 0.5) == nil)
        buckets[0] = 50
        buckets[2] = 50
        let distribution = DurationDistribution(buckets: buckets, sum: 0)
        #expect(distribution.estimate(quantile: 0.5) == 500_000)
        #expect(distribution.estimate(quantile: 0.75) == 1_750_000)
        #expect(distribution.estimate(quantile: 1) == 2_500_000)
        #expect(distribution.since(distribution).count == 0)
        buckets[16] = 1000
        #expect(DurationDistribution(buckets: buckets, sum: 0).estimate(quantile: 0.99) == 60_000_000_000)
    }

    @Test(arguments: [
        (200, "200"), (418, "418"), (299, "2xx"), (100, "100"), (199, "1xx"), (599, "5xx"), (600, "other"),
        (0, "other"),
        (-1, "other"), (99_999, "other"),
    ])
    func statusColumns(status: Int, label: String) {
        #expect(StatusColumns.labels[StatusColumns.column(of: status)] == label)
    }

    @Test func spellsNumbers() {
        #expect(PrometheusText.number(.infinity) == "+Inf")
        #expect(PrometheusText.number(-.infinity) == "-Inf")
        #expect(PrometheusText.number(.nan) == "NaN")
        #expect(PrometheusText.number(3) == "3")
        #expect(PrometheusText.number(0.25) == "0.25")
        #expect(PrometheusText.seconds(1_000_000_001) == "1.000000001")
        #expect(PrometheusText.seconds(2_500_000_000) == "2.5")
        #expect(PrometheusText.seconds(0) == "0")
    }

    @Test func readersSeeOneWritersCountsGrow() throws {
        let (schema, rows, _, _) = try requests(["r"])
        let board = MetricBoard()
        let block = board.adopt(schema, writers: 1)[0]
        let writer = try WorkerThread(name: "writer") {
            for _ in 0..<20_000 { block.add(rows[0][4]) }
        }
        var last: UInt64 = 0
        for _ in 0..<200 {
            let seen = board.snapshot().value(rows[0][4])
            #expect(seen >= last)
            last = seen
        }
        writer.join()
        #expect(board.snapshot().value(rows[0][4]) == 20_000)
    }
}
