/// How much a peer may ask of us without getting on: a bucket for streams that it opens and takes back, and one for frames that carry
/// nothing.
///
/// Rapid reset, floods of SETTINGS, PING, PRIORITY, WINDOW_UPDATE, empty DATA frames and frames of unknown types are all legal one by one (RFC 9113 §10.5);
/// only their number is not. Body bytes that move earn credit, as a large transfer needs its window updates.
struct FloodGauge: Sendable {
    private var resets = Bucket(capacity: 200, perSecond: 40)
    private var frames = Bucket(capacity: 2000, perSecond: 400)

    struct Bucket: Sendable {
        let capacity: UInt64
        let perSecond: UInt64
        private var level: UInt64
        /// Nanoseconds.
        private var filledAt: UInt64 = 0

        init(capacity: UInt64, perSecond: UInt64) {
            self.capacity = capacity
            self.perSecond = perSecond
            level = capacity
        }

        /// - Returns: false when less is left; what there was is gone.
        mutating func spend(_ amount: UInt64 = 1, now: UInt64) -> Bool {
            let step = 1_000_000_000 / perSecond
            if now > filledAt {
                let earned = (now - filledAt) / step
                if filledAt == 0 || earned >= capacity {
                    level = capacity
                    filledAt = now
                } else if earned > 0 {
                    level = min(capacity, level + earned)
                    filledAt += earned * step
                }
            }
            guard level >= amount else {
                level = 0
                return false
            }
            level -= amount
            return true
        }

        mutating func earn(_ amount: UInt64) { level = min(capacity, level + amount) }
    }
}

// MARK: -

extension FloodGauge {
    /// The peer took back a stream that it had opened.
    mutating func admitReset(now: UInt64) -> Bool { resets.spend(now: now) }

    /// A frame that moves no request on.
    mutating func admitFrame(now: UInt64) -> Bool { frames.spend(now: now) }

    /// Bytes of frames that were passed over: those of a closed stream that its peer need not know of yet are not among them.
    mutating func admitIgnored(_ bytes: Int, now: UInt64) -> Bool {
        frames.spend(UInt64(max(0, bytes)) / 1024, now: now)
    }

    /// Body bytes went through, in either direction.
    mutating func moved(_ bytes: Int) { frames.earn(UInt64(max(0, bytes)) / 256 + 1) }
}
