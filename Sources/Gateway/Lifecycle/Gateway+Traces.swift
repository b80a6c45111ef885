internal import DataPath
internal import Keeping
internal import Reactor
public import Telemetry
internal import World

/// Spans on their way out.
extension Gateway {
    /// - Parameter destination: nil: none from now on.
    func exportSpans(to destination: SpanDestination?) {
        let exporter = spanExporter
        _ = keeperLoop.post { exporter.take(destination) }
    }

    /// What has become of spans since the process began; nil where none were exported.
    public var spanCounts: [SpanCounts.Outcome: UInt64]? {
        guard spans.isUsed else { return nil }
        let counts = spans.counts
        return Dictionary(uniqueKeysWithValues: SpanCounts.Outcome.allCases.map { ($0, counts.count(of: $0)) })
    }

    /// Exports what has come until now, for the end of the process. Blocks, at most for so many milliseconds; on a thread that is no loop.
    public func exportLastSpans(within milliseconds: UInt32) {
        guard spans.isUsed else { return }
        spans.flush()
        let exporter = spanExporter
        for _ in 0..<(milliseconds / Self.look) {
            if spans.isEmpty, keeperLoop.ask({ exporter.isIdle }) != false { return }
            platform.time.pause(milliseconds: Self.look)
        }
    }

    /// Milliseconds between two looks.
    private static let look: UInt32 = 10
}
