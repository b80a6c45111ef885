internal import Telemetry

/// The metric cells of one upstream.
struct UpstreamCells: Sendable {
    let connected: MetricCell
    let failed: MetricCell
    let ejections: MetricCell
    /// Now: connections that carry requests or are being made, idle ones, requests that wait for one.
    let open: MetricCell
    let idle: MetricCell
    let waiting: MetricCell
    let connectTime: MetricHistogram

    /// - Parameter names: origins, one for each upstream; equal ones get a number, for two routes may reach one origin in different ways.
    static func make(_ names: [String], in schema: inout MetricSchema) throws(MetricFault) -> [UpstreamCells] {
        let connects = try schema.family(
            "cardea_upstream_connects_total", help: "Connections to upstreams, by how it went.", kind: .counter,
            labels: ["upstream", "result"])
        let ejections = try schema.family(
            "cardea_upstream_ejections_total", help: "Times that an address was left alone after failures.",
            kind: .counter, labels: ["upstream"])
        let connections = try schema.family(
            "cardea_upstream_connections", help: "Connections to upstreams now, those that are being made too.",
            kind: .gauge, labels: ["upstream", "state"])
        let waiters = try schema.family(
            "cardea_upstream_waiters", help: "Requests that wait for a connection now.", kind: .gauge,
            labels: ["upstream"])
        let times = try schema.family(
            "cardea_upstream_connect_seconds", help: "Time until a connection could take a request, TLS included.",
            kind: .histogram, labels: ["upstream"])
        var cells: [UpstreamCells] = []
        var seen: [String: Int] = [:]
        for name in names {
            seen[name, default: 0] += 1
            let count = seen[name] ?? 1
            let label = count == 1 ? name : "\(name)#\(count)"
            cells.append(
                UpstreamCells(
                    connected: try schema.series(connects, [label, "connected"]),
                    failed: try schema.series(connects, [label, "failed"]),
                    ejections: try schema.series(ejections, [label]),
                    open: try schema.series(connections, [label, "open"]),
                    idle: try schema.series(connections, [label, "idle"]),
                    waiting: try schema.series(waiters, [label]),
                    connectTime: try schema.histogram(times, [label])))
        }
        return cells
    }
}

/// The counters of one upstream on one loop. A class for the reason that `LoopMetrics` has.
package final class UpstreamMetrics: Sendable {
    private let cells: UpstreamCells
    private let block: MetricBlock

    init(cells: UpstreamCells, block: MetricBlock) {
        self.cells = cells
        self.block = block
    }

    func connected(nanoseconds: UInt64) {
        block.add(cells.connected)
        block.observe(cells.connectTime, nanoseconds: nanoseconds)
    }

    func failed() { block.add(cells.failed) }
    /// Adds the changes in the numbers of connections and of waiting requests.
    func count(open: Int, idle: Int, waiting: Int) {
        block.add(cells.open, UInt64(bitPattern: Int64(open)))
        block.add(cells.idle, UInt64(bitPattern: Int64(idle)))
        block.add(cells.waiting, UInt64(bitPattern: Int64(waiting)))
    }
    func ejected() { block.add(cells.ejections) }
}

/// The values that one loop has told an upstream's gauges, in the cells of one edition.
struct UpstreamGauges {
    /// Nil for issuers, whose calls the keeper counts.
    private(set) var metrics: UpstreamMetrics?
    private var told = (open: 0, idle: 0, waiting: 0)

    init(_ metrics: UpstreamMetrics?) { self.metrics = metrics }

    mutating func tell(open: Int, idle: Int, waiting: Int) {
        let now = (open: open, idle: idle, waiting: waiting)
        // Without a count: nothing here lets go of the cells.
        guard now != told, let metrics = metrics.map(Unmanaged.passUnretained) else { return }
        metrics._withUnsafeGuaranteedRef {
            $0.count(open: open - told.open, idle: idle - told.idle, waiting: waiting - told.waiting)
        }
        told = now
    }

    /// Takes back what was told; the next cells have to be told anew.
    mutating func move(to next: UpstreamMetrics?) {
        tell(open: 0, idle: 0, waiting: 0)
        told = (0, 0, 0)
        metrics = next
    }
}
